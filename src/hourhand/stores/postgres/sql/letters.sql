-- dead_page: dead letters of a tenant, newest first
SELECT d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger, d.error, d.fingerprint
FROM dead AS d JOIN jobs AS j ON j.id = d.job_id
WHERE d.tenant = :tenant AND (d.failed_at, d.job_id, d.scheduled_at) < (:failed_at::bigint, :job::bigint, :scheduled_at::bigint)
    AND (:fingerprint::text IS NULL OR d.fingerprint = :fingerprint::text)
    AND d.failed_at >= :failed_from::bigint AND d.failed_at <= :failed_to::bigint
ORDER BY d.tenant DESC, d.failed_at DESC, d.job_id DESC, d.scheduled_at DESC LIMIT :limit;

-- dead_page_of: dead letters of a job, newest first
SELECT d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger, d.error, d.fingerprint
FROM dead AS d JOIN jobs AS j ON j.id = d.job_id
WHERE d.job_id = :job_id::bigint AND d.tenant = :tenant
    AND (d.failed_at, d.job_id, d.scheduled_at) < (:failed_at::bigint, :job::bigint, :scheduled_at::bigint)
    AND (:fingerprint::text IS NULL OR d.fingerprint = :fingerprint::text)
    AND d.failed_at >= :failed_from::bigint AND d.failed_at <= :failed_to::bigint
ORDER BY d.failed_at DESC, d.scheduled_at DESC LIMIT :limit;

-- dead_by_error: dead letters counted by cause, with the newest of each
SELECT g.fingerprint, g.count, d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger,
    d.error, d.fingerprint
FROM (SELECT fingerprint, count(*) AS count, max(failed_at) AS failed_at FROM dead WHERE tenant = $1
    GROUP BY fingerprint ORDER BY 2 DESC LIMIT $2) AS g
CROSS JOIN LATERAL (
    SELECT * FROM dead WHERE tenant = $1 AND failed_at = g.failed_at AND fingerprint = g.fingerprint LIMIT 1) AS d
JOIN jobs AS j ON j.id = d.job_id ORDER BY g.count DESC;

-- dead_by_job: dead letters counted by job, with the newest of each
SELECT j.name, g.count, d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger,
    d.error, d.fingerprint
FROM (SELECT job_id, count(*) AS count, max(failed_at) AS failed_at FROM dead WHERE tenant = $1
    GROUP BY job_id ORDER BY 2 DESC LIMIT $2) AS g
CROSS JOIN LATERAL (
    SELECT * FROM dead WHERE tenant = $1 AND failed_at = g.failed_at AND job_id = g.job_id LIMIT 1) AS d
JOIN jobs AS j ON j.id = d.job_id ORDER BY g.count DESC;

-- take_dead: a dead letter leaves
DELETE FROM dead WHERE job_id = $1 AND scheduled_at = $2 AND tenant = $3 RETURNING fence;

-- ask_cancel_run: ask a run's worker to cancel it
UPDATE running SET cancel = 1 WHERE job_id = $1 AND scheduled_at = $2 AND phase = 1;
