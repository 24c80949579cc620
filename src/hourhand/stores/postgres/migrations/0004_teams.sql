-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens

-- --- deeds: who did what

-- --- limits and quotas

-- --- answers to requests that may be repeated

-- --- operations on many jobs

-- --- webhooks
