-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens

-- --- deeds: who did what

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
    set_at          bigint NOT NULL
);

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
