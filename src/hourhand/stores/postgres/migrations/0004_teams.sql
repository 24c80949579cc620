-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens
-- API tokens. Of a secret only its hash is kept; one that was revoked stays for as long as history, to be seen.
CREATE TABLE tokens (
    id           bigint PRIMARY KEY,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    revoked_at   bigint,
    last_used_at bigint,
    tenant       text COLLATE "C" NOT NULL,
    name         text NOT NULL,
    role         text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_by   text,
    digest       bytea NOT NULL CHECK (length(digest) = 32)
) WITH (fillfactor = 50);
CREATE INDEX tokens_tenant ON tokens (tenant, id);
CREATE INDEX tokens_live ON tokens (tenant, coalesce(expires_at, 9223372036854775807)) WHERE revoked_at IS NULL;
CREATE INDEX tokens_revoked ON tokens (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX tokens_expiring ON tokens (expires_at) WHERE expires_at IS NOT NULL;

-- --- deeds: who did what
-- One row for each thing that somebody changed, written with the change. One partition a day, by its time, which is
-- dropped as a whole: what a large import leaves behind costs nothing to forget. job_id: also of runs and backfills;
-- object_id: of what is neither a job nor a run.
CREATE SEQUENCE deeds_id;
CREATE TABLE deeds (
    at           bigint NOT NULL,
    id           bigint NOT NULL DEFAULT nextval('deeds_id'),
    job_id       bigint,
    scheduled_at bigint,
    version      integer,
    count        integer,
    tenant       text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    via          text COLLATE "C" NOT NULL,
    action       text COLLATE "C" NOT NULL,
    object_id    text,
    note         text,
    request_id   text
) PARTITION BY RANGE (at);

-- --- limits and quotas

-- Token buckets that processes share. full_at: when it is full again; a row whose time has passed may go.
CREATE TABLE buckets (
    key     text COLLATE "C" PRIMARY KEY,
    full_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX buckets_full ON buckets (full_at);

-- What those who run the system allow a tenant. NULL: what the settings say; 0: no limit.
CREATE TABLE quotas (
    tenant          text COLLATE "C" PRIMARY KEY,
    jobs            bigint,
    runs_per_minute bigint,
    payload_bytes   bigint,
    document_bytes  bigint,
    history_days    integer,
    set_at          bigint NOT NULL,
    shorten_at      bigint NOT NULL,  -- when to go through its jobs next for history that is too old
    shortened_to    bigint NOT NULL   -- and behind which job
);
CREATE INDEX quotas_shorten ON quotas (shorten_at) WHERE history_days > 0;

-- Jobs whose tenant may have less history than is kept for all.
CREATE VIEW short_histories AS
SELECT j.id AS job_id, q.history_days::bigint * 86400000000 AS kept_us
FROM jobs AS j JOIN quotas AS q ON q.tenant = j.tenant WHERE q.history_days > 0;

-- How many runs a minute a job's rule makes on average, in thousandths; NULL: not computed yet.
ALTER TABLE jobs ADD COLUMN rate bigint;
CREATE INDEX jobs_unrated ON jobs (id) WHERE rate IS NULL;

-- What each tenant has. Counted by the database, so that it is right whichever version of the code writes jobs. The
-- row is held from the statement that changes jobs to the end of its transaction; so that comes last.
CREATE TABLE tenant_use (
    tenant         text COLLATE "C" PRIMARY KEY,
    jobs           bigint NOT NULL,
    document_bytes bigint NOT NULL,
    rate           bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION count_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tenant_use AS u (tenant, jobs, document_bytes, rate)
        SELECT tenant, count(*), sum(octet_length(spec)), coalesce(sum(rate), 0) FROM added
        GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE SET jobs = u.jobs + excluded.jobs,
            document_bytes = u.document_bytes + excluded.document_bytes, rate = u.rate + excluded.rate;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO tenant_use AS u (tenant, jobs, document_bytes, rate)
        SELECT tenant, -count(*), -sum(octet_length(spec)), -coalesce(sum(rate), 0) FROM removed
        GROUP BY tenant ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE SET jobs = u.jobs + excluded.jobs,
            document_bytes = u.document_bytes + excluded.document_bytes, rate = u.rate + excluded.rate;
    ELSE
        INSERT INTO tenant_use AS u (tenant, jobs, document_bytes, rate)
        SELECT tenant, 0, sum(bytes), sum(rate) FROM (
            SELECT tenant, octet_length(spec) AS bytes, coalesce(rate, 0) AS rate FROM added
            UNION ALL SELECT tenant, -octet_length(spec), -coalesce(rate, 0) FROM removed) AS moved
        GROUP BY tenant HAVING sum(bytes) <> 0 OR sum(rate) <> 0 ORDER BY tenant
        ON CONFLICT (tenant) DO UPDATE SET document_bytes = u.document_bytes + excluded.document_bytes,
            rate = u.rate + excluded.rate;
    END IF;
    RETURN NULL;
END $$;

-- These lock jobs against writers until the end of this step, so the first count is exact.
CREATE TRIGGER jobs_added AFTER INSERT ON jobs REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_jobs();
CREATE TRIGGER jobs_removed AFTER DELETE ON jobs REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_jobs();
CREATE TRIGGER jobs_changed AFTER UPDATE ON jobs REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_jobs();
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate)
SELECT tenant, count(*), sum(octet_length(spec)), 0 FROM jobs GROUP BY tenant;

-- --- answers to requests that may be repeated
CREATE TABLE answers (
    tenant text NOT NULL,
    key text NOT NULL,
    sum bytea NOT NULL, -- of what makes the request what it is
    fence bigint NOT NULL, -- of whoever has the key at present
    since bigint NOT NULL, -- fence of the first who had it for this request
    lease_until bigint NOT NULL,
    began_at bigint NOT NULL,
    status integer, -- with headers and body, once it is answered
    headers text,
    body bytea,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX answers_by_age ON answers (began_at);

-- What was changed under a key, in the database where it was changed.
CREATE TABLE answer_marks (
    tenant text NOT NULL,
    key text NOT NULL,
    fence bigint NOT NULL, -- what is written under an earlier one is refused
    since bigint NOT NULL,
    applied integer NOT NULL, -- something was changed that cannot be told again
    made_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX answer_marks_by_age ON answer_marks (made_at);

-- Jobs that were made under a key, by their place in the request: a repeat finds them.
CREATE TABLE answer_makes (
    tenant text NOT NULL,
    key text NOT NULL,
    since bigint NOT NULL,
    place integer NOT NULL,
    job_id bigint NOT NULL,
    made_at bigint NOT NULL,
    PRIMARY KEY (tenant, key, since, place)
);
CREATE INDEX answer_makes_by_age ON answer_makes (made_at);

-- --- operations on many jobs

-- One action on all that match a filter. The body has everything; beside it stands what statements look for.
CREATE TABLE operations (
    id          bigint PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    revision    bigint NOT NULL,
    finished_at bigint,
    body        text NOT NULL
);
CREATE INDEX operations_tenant ON operations (tenant, id);
CREATE INDEX operations_unfinished ON operations (id) WHERE finished_at IS NULL;
CREATE INDEX operations_unfinished_of ON operations (tenant) WHERE finished_at IS NULL;
CREATE INDEX operations_old ON operations (finished_at) WHERE finished_at IS NOT NULL;

-- --- webhooks

-- Endpoints of tenants. kinds: the events it wants, a bit each. due_at: when something of it may be due, NULL where nothing
-- waits; held_until: who sends for it has it in hand so long, under the fence; rest_until: it is left alone so long.
CREATE TABLE webhooks (
    id              bigint PRIMARY KEY,
    due_at          bigint,
    held_until      bigint NOT NULL DEFAULT 0,
    rest_until      bigint NOT NULL DEFAULT 0,
    rotated_at      bigint NOT NULL,
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL,
    succeeded_at    bigint,
    failed_at       bigint,
    failing_since   bigint,
    dropped         bigint NOT NULL DEFAULT 0,
    kinds           integer NOT NULL,
    fence           integer NOT NULL DEFAULT 0,
    failures        integer NOT NULL DEFAULT 0,
    enabled         smallint NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    url             text NOT NULL,
    types           text NOT NULL,
    jobs            text NOT NULL,
    tags            text NOT NULL,
    description     text NOT NULL,
    secrets         text NOT NULL,
    disabled_reason text,
    error           text
) WITH (fillfactor = 50);
CREATE INDEX webhooks_tenant ON webhooks (tenant, id);
CREATE INDEX webhooks_due ON webhooks (due_at) WHERE enabled = 1 AND due_at IS NOT NULL;

-- What happened where some webhook wants to hear of it, written with what happened, until it is made into deliveries.
CREATE TABLE webhook_events (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           bigint NOT NULL,
    job_id       bigint NOT NULL,
    scheduled_at bigint,
    due_at       bigint,
    started_at   bigint,
    attempt      integer NOT NULL,
    version      integer,
    kind         smallint NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    name         text NOT NULL,
    detail       text
);
ALTER TABLE webhook_events SET (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);

-- One event on its way to one webhook. state: 0 pending, 1 delivered, 2 failed.
CREATE TABLE webhook_deliveries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint NOT NULL,
    made_at    bigint NOT NULL,
    due_at     bigint NOT NULL,
    tried_at   bigint,
    took_ms    integer,
    kind       smallint NOT NULL,
    state      smallint NOT NULL DEFAULT 0,
    tries      smallint NOT NULL DEFAULT 0,
    status     smallint,
    event_id   text COLLATE "C" NOT NULL,
    error      text,
    body       text NOT NULL,
    UNIQUE (webhook_id, event_id)
) WITH (fillfactor = 80);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE state = 0;
CREATE INDEX webhook_deliveries_made ON webhook_deliveries (webhook_id, made_at, id);
ALTER TABLE webhook_deliveries SET (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
