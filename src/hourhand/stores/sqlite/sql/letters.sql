-- dead_page: dead letters of a tenant, newest first
SELECT d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger, d.error, d.fingerprint
FROM dead AS d JOIN jobs AS j ON j.id = d.job_id
WHERE d.tenant = :tenant AND (d.failed_at, d.job_id, d.scheduled_at) < (:failed_at, :job, :scheduled_at)
    AND (:fingerprint IS NULL OR d.fingerprint = :fingerprint)
    AND d.failed_at >= :failed_from AND d.failed_at <= :failed_to
ORDER BY d.failed_at DESC, d.job_id DESC, d.scheduled_at DESC LIMIT :limit;

-- dead_page_of: dead letters of a job, newest first
SELECT d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger, d.error, d.fingerprint
FROM dead AS d JOIN jobs AS j ON j.id = d.job_id
WHERE d.job_id = :job_id AND d.tenant = :tenant
    AND (d.failed_at, d.job_id, d.scheduled_at) < (:failed_at, :job, :scheduled_at)
    AND (:fingerprint IS NULL OR d.fingerprint = :fingerprint)
    AND d.failed_at >= :failed_from AND d.failed_at <= :failed_to
ORDER BY d.failed_at DESC, d.scheduled_at DESC LIMIT :limit;

-- dead_by_error: the newest 20,000 dead letters counted by cause, with the newest of each
SELECT g.fingerprint, g.count, d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger, d.error,
    d.fingerprint
FROM (SELECT fingerprint, count(*) AS count, max(failed_at) AS failed_at
    FROM (SELECT fingerprint, failed_at FROM dead WHERE tenant = ?1 ORDER BY failed_at DESC LIMIT 20000)
    GROUP BY fingerprint ORDER BY 2 DESC LIMIT ?2) AS g
CROSS JOIN dead AS d ON (d.job_id, d.scheduled_at) = (
    SELECT n.job_id, n.scheduled_at FROM dead AS n
    WHERE n.tenant = ?1 AND n.failed_at = g.failed_at AND n.fingerprint = g.fingerprint LIMIT 1)
JOIN jobs AS j ON j.id = d.job_id ORDER BY g.count DESC;

-- dead_by_job: the newest 20,000 dead letters counted by job, with the newest of each
SELECT j.name, g.count, d.job_id, d.scheduled_at, d.tenant, j.name, d.failed_at, d.tries, d.fence, d.trigger, d.error,
    d.fingerprint
FROM (SELECT job_id, count(*) AS count, max(failed_at) AS failed_at
    FROM (SELECT job_id, failed_at FROM dead WHERE tenant = ?1 ORDER BY failed_at DESC LIMIT 20000)
    GROUP BY job_id ORDER BY 2 DESC LIMIT ?2) AS g
CROSS JOIN dead AS d ON (d.job_id, d.scheduled_at) = (
    SELECT n.job_id, n.scheduled_at FROM dead AS n
    WHERE n.tenant = ?1 AND n.failed_at = g.failed_at AND n.job_id = g.job_id LIMIT 1)
JOIN jobs AS j ON j.id = d.job_id ORDER BY g.count DESC;

-- dead_at: a run's dead letter
SELECT failed_at, tries, error FROM dead WHERE job_id = ? AND scheduled_at = ?;

-- take_dead: a dead letter leaves
DELETE FROM dead WHERE job_id = ? AND scheduled_at = ? AND tenant = ? RETURNING fence;

-- ask_cancel_run: ask a run's worker to cancel it
UPDATE running SET cancel = 1 WHERE job_id = ? AND scheduled_at = ? AND phase = 1;
