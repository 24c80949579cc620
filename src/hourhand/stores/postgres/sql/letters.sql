-- dead_page: dead letters of a tenant, all or those of one cause, newest first
SELECT d.job_id, d.scheduled_at, d.tenant, coalesce((SELECT name FROM jobs WHERE id = d.job_id), ''), d.failed_at,
    d.tries, d.fence, d.trigger, d.error, d.fingerprint
FROM (
    (SELECT * FROM dead
    WHERE :fingerprint::text IS NULL AND tenant = :tenant AND failed_at >= :failed_from::bigint
        AND failed_at <= :failed_to::bigint
        AND (failed_at, job_id, scheduled_at) < (:failed_at::bigint, :job::bigint, :scheduled_at::bigint)
    ORDER BY tenant DESC, failed_at DESC, job_id DESC, scheduled_at DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM dead
    WHERE tenant = :tenant AND fingerprint = :fingerprint::text AND failed_at >= :failed_from::bigint
        AND failed_at <= :failed_to::bigint
        AND (failed_at, job_id, scheduled_at) < (:failed_at::bigint, :job::bigint, :scheduled_at::bigint)
    ORDER BY tenant DESC, fingerprint DESC, failed_at DESC, job_id DESC, scheduled_at DESC LIMIT :limit)) AS d
ORDER BY d.failed_at DESC, d.job_id DESC, d.scheduled_at DESC;

-- dead_page_of: dead letters of a job, newest first
SELECT d.job_id, d.scheduled_at, d.tenant, coalesce((SELECT name FROM jobs WHERE id = d.job_id), ''), d.failed_at,
    d.tries, d.fence, d.trigger, d.error, d.fingerprint
FROM dead AS d
WHERE d.tenant = :tenant AND d.job_id = :job_id::bigint AND d.failed_at >= :failed_from::bigint
    AND d.failed_at <= :failed_to::bigint
    AND d.failed_at <= :failed_at::bigint
    AND (d.failed_at, d.job_id, d.scheduled_at) < (:failed_at::bigint, :job::bigint, :scheduled_at::bigint)
    AND (:fingerprint::text IS NULL OR d.fingerprint = :fingerprint::text)
ORDER BY d.tenant DESC, d.job_id DESC, d.failed_at DESC, d.scheduled_at DESC LIMIT :limit;

-- dead_by_error: the newest 20,000 dead letters counted by cause, with the newest of each
SELECT g.fingerprint, g.count, d.job_id, d.scheduled_at, d.tenant, coalesce(j.name, ''), d.failed_at, d.tries, d.fence,
    d.trigger, d.error, d.fingerprint
FROM (SELECT fingerprint, count(*) AS count, max(failed_at) AS failed_at
    FROM (SELECT fingerprint, failed_at FROM dead WHERE tenant = $1 ORDER BY tenant DESC, failed_at DESC LIMIT 20000) AS newest
    GROUP BY fingerprint ORDER BY 2 DESC LIMIT $2) AS g
CROSS JOIN LATERAL (
    SELECT * FROM dead WHERE tenant = $1 AND failed_at = g.failed_at AND fingerprint = g.fingerprint LIMIT 1) AS d
LEFT JOIN LATERAL (SELECT name FROM jobs WHERE id = d.job_id LIMIT 1) AS j ON true ORDER BY g.count DESC;

-- dead_by_job: the newest 20,000 dead letters counted by job, with the newest of each
SELECT coalesce(j.name, ''), g.count, d.job_id, d.scheduled_at, d.tenant, coalesce(j.name, ''), d.failed_at, d.tries, d.fence,
    d.trigger, d.error, d.fingerprint
FROM (SELECT job_id, count(*) AS count, max(failed_at) AS failed_at
    FROM (SELECT job_id, failed_at FROM dead WHERE tenant = $1 ORDER BY tenant DESC, failed_at DESC LIMIT 20000) AS newest
    GROUP BY job_id ORDER BY 2 DESC LIMIT $2) AS g
CROSS JOIN LATERAL (
    SELECT * FROM dead WHERE tenant = $1 AND failed_at = g.failed_at AND job_id = g.job_id LIMIT 1) AS d
LEFT JOIN LATERAL (SELECT name FROM jobs WHERE id = d.job_id LIMIT 1) AS j ON true ORDER BY g.count DESC;

-- dead_at: a run's dead letter
SELECT failed_at, tries, error FROM dead WHERE job_id = $1 AND scheduled_at = $2;

-- take_dead: a dead letter leaves
DELETE FROM dead WHERE job_id = $1 AND scheduled_at = $2 AND tenant = $3 RETURNING fence;

-- ask_cancel_run: ask a run's worker to cancel it
UPDATE running SET cancel = 1 WHERE job_id = $1 AND scheduled_at = $2 AND phase BETWEEN 1 AND 1;
