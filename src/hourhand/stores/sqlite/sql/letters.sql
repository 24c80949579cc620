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

-- dead_by_error: dead letters counted by cause, with the newest of each
SELECT d.fingerprint, count(*), d.job_id, d.scheduled_at, d.tenant, j.name, max(d.failed_at), d.tries, d.fence,
    d.trigger, d.error, d.fingerprint
FROM dead AS d JOIN jobs AS j ON j.id = d.job_id WHERE d.tenant = ? GROUP BY d.fingerprint
ORDER BY 2 DESC LIMIT ?;

-- dead_by_job: dead letters counted by job, with the newest of each
SELECT j.name, count(*), d.job_id, d.scheduled_at, d.tenant, j.name, max(d.failed_at), d.tries, d.fence,
    d.trigger, d.error, d.fingerprint
FROM dead AS d JOIN jobs AS j ON j.id = d.job_id WHERE d.tenant = ? GROUP BY d.job_id
ORDER BY 2 DESC LIMIT ?;

-- take_dead: a dead letter leaves
DELETE FROM dead WHERE job_id = ? AND scheduled_at = ? AND tenant = ? RETURNING fence;

-- ask_cancel_run: ask a run's worker to cancel it
UPDATE running SET cancel = 1 WHERE job_id = ? AND scheduled_at = ? AND phase = 1;
