-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens
-- API tokens. Of a secret only its hash is kept; one that was revoked stays for as long as history, to be seen.
CREATE TABLE tokens (
    id           INTEGER PRIMARY KEY,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    digest       BLOB NOT NULL CHECK (length(digest) = 32),
    created_at   INTEGER NOT NULL,
    created_by   TEXT,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
);
CREATE INDEX tokens_tenant ON tokens (tenant, id);
CREATE INDEX tokens_live ON tokens (tenant, coalesce(expires_at, 9223372036854775807)) WHERE revoked_at IS NULL;
CREATE INDEX tokens_revoked ON tokens (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX tokens_expiring ON tokens (expires_at) WHERE expires_at IS NOT NULL;

-- --- deeds: who did what
-- One row for each thing that somebody changed, written with the change. In order of arrival, so that old ones are dropped
-- from the front, by id. job_id: also of runs and backfills; object_id: of what is neither a job nor a run.
CREATE TABLE deeds (
    id           INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    job_id       INTEGER,
    scheduled_at INTEGER,
    version      INTEGER,
    count        INTEGER,
    tenant       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    via          TEXT NOT NULL,
    action       TEXT NOT NULL,
    object_id    TEXT,
    note         TEXT,
    request_id   TEXT
);
CREATE INDEX deeds_newest ON deeds (tenant, at, id);
CREATE INDEX deeds_job ON deeds (job_id, at, id) WHERE job_id IS NOT NULL;

-- --- limits and quotas

-- Token buckets. full_at: when it is full again; a row whose time has passed may go.
CREATE TABLE buckets (
    key     TEXT PRIMARY KEY,
    full_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX buckets_full ON buckets (full_at);

-- What those who run the system allow a tenant. NULL: what the settings say; 0: no limit.
CREATE TABLE quotas (
    tenant          TEXT PRIMARY KEY,
    jobs            INTEGER,
    runs_per_minute INTEGER,
    payload_bytes   INTEGER,
    document_bytes  INTEGER,
    history_days    INTEGER,
    set_at          INTEGER NOT NULL,
    shorten_at      INTEGER NOT NULL,  -- when to go through its jobs next for history that is too old
    shortened_to    INTEGER NOT NULL   -- and behind which job
) WITHOUT ROWID;
CREATE INDEX quotas_shorten ON quotas (shorten_at) WHERE history_days > 0;

-- Jobs whose tenant may have less history than is kept for all.
CREATE VIEW short_histories AS
SELECT j.id AS job_id, q.history_days * 86400000000 AS kept_us
FROM jobs AS j JOIN quotas AS q ON q.tenant = j.tenant WHERE q.history_days > 0;

-- How many runs a minute a job's rule makes on average, in thousandths; NULL: not computed yet.
ALTER TABLE jobs ADD COLUMN rate INTEGER;
CREATE INDEX jobs_unrated ON jobs (id) WHERE rate IS NULL;

-- What each tenant has, counted by the database itself.
CREATE TABLE tenant_use (
    tenant         TEXT PRIMARY KEY,
    jobs           INTEGER NOT NULL,
    document_bytes INTEGER NOT NULL,
    rate           INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate)
SELECT tenant, count(*), sum(length(CAST(spec AS BLOB))), 0 FROM jobs GROUP BY tenant;

CREATE TRIGGER jobs_added AFTER INSERT ON jobs BEGIN
    INSERT INTO tenant_use (tenant, jobs, document_bytes, rate)
    VALUES (NEW.tenant, 1, length(CAST(NEW.spec AS BLOB)), coalesce(NEW.rate, 0))
    ON CONFLICT (tenant) DO UPDATE SET jobs = jobs + 1, document_bytes = document_bytes + excluded.document_bytes,
        rate = rate + excluded.rate;
END;
CREATE TRIGGER jobs_removed AFTER DELETE ON jobs BEGIN
    UPDATE tenant_use SET jobs = jobs - 1, document_bytes = document_bytes - length(CAST(OLD.spec AS BLOB)),
        rate = rate - coalesce(OLD.rate, 0) WHERE tenant = OLD.tenant;
END;
CREATE TRIGGER jobs_changed AFTER UPDATE OF spec, rate ON jobs BEGIN
    UPDATE tenant_use SET
        document_bytes = document_bytes + length(CAST(NEW.spec AS BLOB)) - length(CAST(OLD.spec AS BLOB)),
        rate = rate + coalesce(NEW.rate, 0) - coalesce(OLD.rate, 0) WHERE tenant = OLD.tenant;
END;
-- --- lists of a tenant's jobs, among those of many
CREATE INDEX jobs_tenant ON jobs (tenant, id);

-- --- answers to requests that may be repeated
CREATE TABLE answers (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    sum BLOB NOT NULL, -- of what makes the request what it is
    fence INTEGER NOT NULL, -- of whoever has the key at present
    since INTEGER NOT NULL, -- fence of the first who had it for this request
    lease_until INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    status INTEGER, -- with headers and body, once it is answered
    headers TEXT,
    body BLOB,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX answers_by_age ON answers (began_at);

-- What was changed under a key, in the database where it was changed.
CREATE TABLE answer_marks (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    fence INTEGER NOT NULL, -- what is written under an earlier one is refused
    since INTEGER NOT NULL,
    applied INTEGER NOT NULL, -- something was changed that cannot be told again
    made_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX answer_marks_by_age ON answer_marks (made_at);

-- Jobs that were made under a key, by their place in the request: a repeat finds them.
CREATE TABLE answer_makes (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    since INTEGER NOT NULL,
    place INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key, since, place)
) WITHOUT ROWID;
CREATE INDEX answer_makes_by_age ON answer_makes (made_at);

-- --- operations on many jobs

-- One action on all that match a filter. The body has everything; beside it stands what statements look for.
CREATE TABLE operations (
    id          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    finished_at INTEGER,
    body        TEXT NOT NULL
);
CREATE INDEX operations_tenant ON operations (tenant, id);
CREATE INDEX operations_unfinished ON operations (id) WHERE finished_at IS NULL;
CREATE INDEX operations_unfinished_of ON operations (tenant) WHERE finished_at IS NULL;
CREATE INDEX operations_old ON operations (finished_at) WHERE finished_at IS NOT NULL;

-- --- webhooks

-- Endpoints of tenants. kinds: the events it wants, a bit each. due_at: when something of it may be due, NULL where nothing
-- waits; held_until: who sends for it has it in hand so long, under the fence; rest_until: it is left alone so long.
CREATE TABLE webhooks (
    id              INTEGER PRIMARY KEY,
    due_at          INTEGER,
    held_until      INTEGER NOT NULL DEFAULT 0,
    rest_until      INTEGER NOT NULL DEFAULT 0,
    rotated_at      INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    succeeded_at    INTEGER,
    failed_at       INTEGER,
    failing_since   INTEGER,
    dropped         INTEGER NOT NULL DEFAULT 0,
    kinds           INTEGER NOT NULL,
    fence           INTEGER NOT NULL DEFAULT 0,
    failures        INTEGER NOT NULL DEFAULT 0,
    enabled         INTEGER NOT NULL,
    tenant          TEXT NOT NULL,
    url             TEXT NOT NULL,
    types           TEXT NOT NULL,
    jobs            TEXT NOT NULL,
    tags            TEXT NOT NULL,
    description     TEXT NOT NULL,
    secrets         TEXT NOT NULL,
    disabled_reason TEXT,
    error           TEXT
);
CREATE INDEX webhooks_tenant ON webhooks (tenant, id);
CREATE INDEX webhooks_due ON webhooks (due_at) WHERE enabled = 1 AND due_at IS NOT NULL;

-- What happened where some webhook wants to hear of it, written with what happened, until it is made into deliveries.
CREATE TABLE webhook_events (
    id           INTEGER PRIMARY KEY,
    kind         INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER,
    due_at       INTEGER,
    started_at   INTEGER,
    attempt      INTEGER NOT NULL,
    version      INTEGER,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    detail       TEXT
);

-- One event on its way to one webhook. state: 0 pending, 1 delivered, 2 failed.
CREATE TABLE webhook_deliveries (
    id         INTEGER PRIMARY KEY,
    webhook_id INTEGER NOT NULL,
    made_at    INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    tried_at   INTEGER,
    took_ms    INTEGER,
    kind       INTEGER NOT NULL,
    state      INTEGER NOT NULL DEFAULT 0,
    tries      INTEGER NOT NULL DEFAULT 0,
    status     INTEGER,
    event_id   TEXT NOT NULL,
    error      TEXT,
    body       TEXT NOT NULL,
    UNIQUE (webhook_id, event_id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE state = 0;
CREATE INDEX webhook_deliveries_made ON webhook_deliveries (webhook_id, made_at, id);
