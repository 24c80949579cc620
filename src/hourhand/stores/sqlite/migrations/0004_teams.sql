-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens

-- --- deeds: who did what

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
    set_at          INTEGER NOT NULL
) WITHOUT ROWID;

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
