-- use_of: what some tenants have, and what was set for them
SELECT asked.tenant, coalesce(u.jobs, 0), coalesce(u.document_bytes, 0), coalesce(u.rate, 0),
    q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes
FROM unnest($1::text[]) AS asked (tenant)
LEFT JOIN tenant_use AS u ON u.tenant = asked.tenant COLLATE "C"
LEFT JOIN quotas AS q ON q.tenant = asked.tenant COLLATE "C";

-- tenants_page: tenants by name, with the same
SELECT u.tenant, u.jobs, u.document_bytes, u.rate, q.jobs, q.runs_per_minute, q.payload_bytes, q.document_bytes
FROM (SELECT * FROM tenant_use WHERE tenant > $1 ORDER BY tenant LIMIT $2) AS u
LEFT JOIN LATERAL (SELECT * FROM quotas WHERE quotas.tenant = u.tenant OFFSET 0) AS q ON true ORDER BY u.tenant;

-- add_tenant: one that has nothing yet is listed too
INSERT INTO tenant_use (tenant, jobs, document_bytes, rate) VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING;

-- put_quota: what a tenant may have
INSERT INTO quotas (tenant, jobs, runs_per_minute, payload_bytes, document_bytes, set_at)
VALUES (:tenant, :jobs, :runs_per_minute, :payload_bytes, :document_bytes, :set_at)
ON CONFLICT (tenant) DO UPDATE SET jobs = excluded.jobs, runs_per_minute = excluded.runs_per_minute,
    payload_bytes = excluded.payload_bytes, document_bytes = excluded.document_bytes, set_at = excluded.set_at;

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
SELECT id, spec, clock_id, paused FROM jobs WHERE rate IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED;

-- rate_job: how many runs a minute a job makes
UPDATE jobs SET rate = $1 WHERE id = $2;
