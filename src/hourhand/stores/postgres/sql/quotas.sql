-- use_of: what some tenants have, and what was set for them
SELECT asked.tenant, coalesce(u.jobs, 0), coalesce(u.document_bytes, 0), coalesce(u.rate, 0),
    q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes, q.history_days
FROM unnest($1::text[]) AS asked (tenant)
LEFT JOIN tenant_use AS u ON u.tenant = asked.tenant COLLATE "C"
LEFT JOIN quotas AS q ON q.tenant = asked.tenant COLLATE "C";

-- tenants_page: tenants by name, with the same
SELECT u.tenant, u.jobs, u.document_bytes, u.rate, q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes, q.history_days
FROM (SELECT * FROM tenant_use WHERE tenant > $1 ORDER BY tenant LIMIT $2) AS u
LEFT JOIN LATERAL (SELECT * FROM quotas WHERE quotas.tenant = u.tenant OFFSET 0) AS q ON true ORDER BY u.tenant;

-- add_tenant: one that has nothing yet is listed too
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate) VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING;

-- put_quota: what a tenant may have, unless that is so already
INSERT INTO quotas (tenant, jobs, runs_per_minute, payload_bytes, document_bytes, history_days, set_at, shorten_at,
    shortened_to)
VALUES (:tenant, :jobs, :runs_per_minute, :payload_bytes, :document_bytes, :history_days, :set_at, :set_at, 0)
ON CONFLICT (tenant) DO UPDATE SET jobs = excluded.jobs, runs_per_minute = excluded.runs_per_minute,
    payload_bytes = excluded.payload_bytes, document_bytes = excluded.document_bytes, history_days = excluded.history_days,
    set_at = excluded.set_at, shorten_at = excluded.shorten_at, shortened_to = 0
WHERE (quotas.jobs, quotas.runs_per_minute, quotas.payload_bytes, quotas.document_bytes, quotas.history_days)
    IS DISTINCT FROM (excluded.jobs, excluded.runs_per_minute, excluded.payload_bytes, excluded.document_bytes,
        excluded.history_days);

-- read_bucket: when a bucket is full again
SELECT full_at FROM buckets WHERE key = $1;

-- lock_bucket: the same, held until the end
SELECT full_at FROM buckets WHERE key = $1 FOR UPDATE;

-- add_bucket: a bucket that is full
INSERT INTO buckets (key, full_at) VALUES ($1, 0) ON CONFLICT DO NOTHING;

-- fill_bucket: tokens were taken
UPDATE buckets SET full_at = $1 WHERE key = $2;

-- purge_buckets: forget those that are full
DELETE FROM buckets WHERE key IN (
    SELECT key FROM buckets WHERE full_at < $1 ORDER BY full_at LIMIT $2 FOR UPDATE SKIP LOCKED);

-- unrated_jobs: jobs that a version wrote that knew no rates, held
SELECT id, spec, clock_id, paused, tenant FROM jobs WHERE rate IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED;

-- rate_job: how many runs a minute a job makes
UPDATE jobs SET rate = $1 WHERE id = $2;

-- history_days_of: how many days of history a tenant may have
SELECT history_days FROM quotas WHERE tenant = $1;

-- tenant_to_shorten: whose history is to be looked through now, from where on; held
SELECT tenant, history_days, shortened_to FROM quotas WHERE history_days > 0 AND shorten_at <= $1
ORDER BY shorten_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- jobs_to_shorten: the next jobs of a tenant
SELECT id FROM jobs WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3;

-- old_history: where rows of some jobs are that finished before an instant
SELECT h.bucket, h.ctid::text FROM unnest(:ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT bucket, ctid FROM history WHERE job_id = asked.id AND scheduled_at < :before_at::bigint
        AND finished_at < :before_at::bigint AND bucket <= :last_day::integer
    ORDER BY scheduled_at LIMIT :limit::bigint) AS h LIMIT :limit::bigint;

-- drop_history: drop rows of a day; they are never rewritten, so they are still where they were
DELETE FROM history WHERE bucket = $1 AND ctid = ANY ($2::text[]::tid[]);

-- old_log: where chunks of logs of some jobs are that came before an instant
SELECT l.bucket, l.ctid::text FROM unnest(:ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT bucket, ctid FROM run_log WHERE job_id = asked.id AND scheduled_at < :before_at::bigint
        AND at < :before_at::bigint AND bucket <= :last_day::integer
    ORDER BY scheduled_at LIMIT :limit::bigint) AS l LIMIT :limit::bigint;

-- drop_log: drop chunks of a day
DELETE FROM run_log WHERE bucket = $1 AND ctid = ANY ($2::text[]::tid[]);

-- shortened: how far a tenant's history was looked through, and when to go on
UPDATE quotas SET shortened_to = $1, shorten_at = $2 WHERE tenant = $3;
