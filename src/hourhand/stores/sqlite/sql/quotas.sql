-- use_of: what some tenants have, and what was set for them
SELECT asked.tenant, coalesce(u.jobs, 0), coalesce(u.document_bytes, 0), coalesce(u.rate, 0),
    q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes
FROM (SELECT value AS tenant FROM json_each(?)) AS asked
LEFT JOIN tenant_use AS u ON u.tenant = asked.tenant
LEFT JOIN quotas AS q ON q.tenant = asked.tenant;

-- tenants_page: tenants by name, with the same
SELECT u.tenant, u.jobs, u.document_bytes, u.rate, q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes
FROM tenant_use AS u LEFT JOIN quotas AS q ON q.tenant = u.tenant
WHERE u.tenant > ? ORDER BY u.tenant LIMIT ?;

-- add_tenant: one that has nothing yet is listed too
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate) VALUES (?, 0, 0, 0) ON CONFLICT DO NOTHING;

-- put_quota: what a tenant may have
INSERT INTO quotas (tenant, jobs, runs_per_minute, payload_bytes, document_bytes, set_at)
VALUES (:tenant, :jobs, :runs_per_minute, :payload_bytes, :document_bytes, :set_at)
ON CONFLICT (tenant) DO UPDATE SET jobs = excluded.jobs, runs_per_minute = excluded.runs_per_minute,
    payload_bytes = excluded.payload_bytes, document_bytes = excluded.document_bytes, set_at = excluded.set_at;

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
SELECT id, spec, clock_id, paused FROM jobs WHERE rate IS NULL ORDER BY id LIMIT ?;

-- rate_job: how many runs a minute a job makes
UPDATE jobs SET rate = ? WHERE id = ?;
