-- use_of: what some tenants have, and what was set for them
SELECT asked.tenant, coalesce(u.jobs, 0), coalesce(u.document_bytes, 0), coalesce(u.rate, 0),
    q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes, q.history_days
FROM (SELECT value AS tenant FROM json_each(?)) AS asked
LEFT JOIN tenant_use AS u ON u.tenant = asked.tenant
LEFT JOIN quotas AS q ON q.tenant = asked.tenant;

-- tenants_page: tenants by name, with the same
SELECT u.tenant, u.jobs, u.document_bytes, u.rate, q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes, q.history_days
FROM tenant_use AS u LEFT JOIN quotas AS q ON q.tenant = u.tenant
WHERE u.tenant > ? ORDER BY u.tenant LIMIT ?;

-- add_tenant: one that has nothing yet is listed too
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate) VALUES (?, 0, 0, 0) ON CONFLICT DO NOTHING;

-- put_quota: what a tenant may have, unless that is so already
INSERT INTO quotas (tenant, jobs, runs_per_minute, payload_bytes, document_bytes, history_days, set_at, shorten_at,
    shortened_to)
VALUES (:tenant, :jobs, :runs_per_minute, :payload_bytes, :document_bytes, :history_days, :set_at, :set_at, 0)
ON CONFLICT (tenant) DO UPDATE SET jobs = excluded.jobs, runs_per_minute = excluded.runs_per_minute,
    payload_bytes = excluded.payload_bytes, document_bytes = excluded.document_bytes, history_days = excluded.history_days,
    set_at = excluded.set_at, shorten_at = excluded.shorten_at, shortened_to = 0
WHERE (quotas.jobs, quotas.runs_per_minute, quotas.payload_bytes, quotas.document_bytes, quotas.history_days)
    IS NOT (excluded.jobs, excluded.runs_per_minute, excluded.payload_bytes, excluded.document_bytes,
        excluded.history_days);

-- read_bucket: when a bucket is full again
SELECT full_at FROM buckets WHERE key = ?;

-- lock_bucket: the same; there is one writer
SELECT full_at FROM buckets WHERE key = ?;

-- add_bucket: a bucket that is full
INSERT INTO buckets (key, full_at) VALUES (?, 0) ON CONFLICT DO NOTHING;

-- fill_bucket: tokens were taken
UPDATE buckets SET full_at = ? WHERE key = ?;

-- purge_buckets: forget those that are full
DELETE FROM buckets WHERE key IN (
    SELECT key FROM buckets WHERE full_at < ? ORDER BY full_at LIMIT ?);

-- unrated_jobs: jobs that a version wrote that knew no rates
SELECT id, spec, clock_id, paused, tenant FROM jobs WHERE rate IS NULL ORDER BY id LIMIT ?;

-- rate_job: how many runs a minute a job makes
UPDATE jobs SET rate = ? WHERE id = ?;

-- history_days_of: how many days of history a tenant may have
SELECT history_days FROM quotas WHERE tenant = ?;

-- tenant_to_shorten: whose history is to be looked through now, from where on
SELECT tenant, history_days, shortened_to FROM quotas WHERE history_days > 0 AND shorten_at <= ?
ORDER BY shorten_at LIMIT 1;

-- jobs_to_shorten: the next jobs of a tenant
SELECT id FROM jobs WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?;

-- old_history: where rows of some jobs are that finished before an instant
SELECT 0, h.id FROM json_each(:ids) AS asked CROSS JOIN history AS h ON h.job_id = asked.value
WHERE h.scheduled_at < :before_at AND h.finished_at < :before_at AND :last_day IS NOT NULL LIMIT :limit;

-- drop_history: drop rows
DELETE FROM history WHERE ?1 = 0 AND id IN (SELECT value FROM json_each(?2));

-- old_log: where chunks of logs of some jobs are that came before an instant
SELECT 0, l.id FROM json_each(:ids) AS asked CROSS JOIN run_log AS l ON l.job_id = asked.value
WHERE l.scheduled_at < :before_at AND l.at < :before_at AND :last_day IS NOT NULL LIMIT :limit;

-- drop_log: drop chunks
DELETE FROM run_log WHERE ?1 = 0 AND id IN (SELECT value FROM json_each(?2));

-- shortened: how far a tenant's history was looked through, and when to go on
UPDATE quotas SET shortened_to = ?, shorten_at = ? WHERE tenant = ?;
