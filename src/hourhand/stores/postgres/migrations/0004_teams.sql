-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens

-- --- deeds: who did what

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
