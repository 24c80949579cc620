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

-- --- answers to requests that may be repeated

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
