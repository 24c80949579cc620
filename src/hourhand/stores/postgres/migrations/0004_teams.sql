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

-- --- answers to requests that may be repeated

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
