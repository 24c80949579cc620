-- audit_jobs: jobs by id, with what says when they run
SELECT id, tenant, version, version_from, until, paused, CASE WHEN length(CAST(jobs.spec AS BLOB)) <= :large THEN jobs.spec
    ELSE (SELECT json_group_object(key, CASE WHEN type IN ('object', 'array') THEN json(value) ELSE value END)
        FROM json_each(jobs.spec) WHERE key IN ('timing', 'name', 'starts_at', 'misfire')) END, since
FROM jobs WHERE id > :after AND id <= :last ORDER BY id LIMIT :limit;

-- audit_jobs_of: the same of one tenant; by id, for a file has hardly more than one
SELECT id, tenant, version, version_from, until, paused, CASE WHEN length(CAST(jobs.spec AS BLOB)) <= :large THEN jobs.spec
    ELSE (SELECT json_group_object(key, CASE WHEN type IN ('object', 'array') THEN json(value) ELSE value END)
        FROM json_each(jobs.spec) WHERE key IN ('timing', 'name', 'starts_at', 'misfire')) END, since
FROM jobs WHERE +tenant = :tenant AND id > :after AND id <= :last ORDER BY id LIMIT :limit;

-- audit_gone: jobs that were deleted and had times after an instant, by id
SELECT job_id, tenant FROM versions
WHERE deleted = 1 AND job_id > :after AND job_id <= :last AND version_from >= :from_at ORDER BY job_id LIMIT :limit;

-- audit_versions: versions of some jobs that are over, but for those that ended before an instant
SELECT v.job_id, NULL, v.version, v.version_from, v.until, v.paused, CASE WHEN length(CAST(v.spec AS BLOB)) <= :large THEN v.spec
    ELSE (SELECT json_group_object(key, CASE WHEN type IN ('object', 'array') THEN json(value) ELSE value END)
        FROM json_each(v.spec) WHERE key IN ('timing', 'name', 'starts_at', 'misfire')) END,
    v.deleted, v.next_from
FROM (SELECT o.job_id, o.version, o.version_from, o.until, o.paused, o.spec, o.deleted,
        lead(o.version_from) OVER (PARTITION BY o.job_id ORDER BY o.version) AS next_from
    FROM json_each(:ids) AS asked CROSS JOIN versions AS o ON o.job_id = asked.value) AS v
WHERE v.next_from IS NULL OR v.next_from >= :from_at ORDER BY v.job_id, v.version LIMIT :limit;

-- audit_history: lines of history of some jobs in a window, by job, time and attempt; each column as one list
SELECT json_group_array(job_id), json_group_array(scheduled_at), json_group_array(code) FROM (
    SELECT h.job_id, h.scheduled_at, h.state * 8 + h.trigger AS code
    FROM json_each(:ids) AS asked CROSS JOIN history AS h ON h.job_id = asked.value
    WHERE h.scheduled_at >= :from_at AND h.scheduled_at < :to_at
    ORDER BY asked.key, h.scheduled_at, h.attempt LIMIT :limit);

-- audit_live: runs of some jobs in a window that have not ended, and dead letters; but plain planned ones
SELECT r.job_id, r.scheduled_at, 1, r.trigger FROM json_each(:ids) AS asked CROSS JOIN running AS r ON r.job_id = asked.value
WHERE r.scheduled_at >= :from_at AND r.scheduled_at < :to_at
UNION ALL
SELECT b.job_id, b.scheduled_at, 2, b.trigger FROM json_each(:ids) AS asked CROSS JOIN blocked AS b ON b.job_id = asked.value
WHERE b.scheduled_at >= :from_at AND b.scheduled_at < :to_at
UNION ALL
SELECT w.job_id, w.scheduled_at, 3, w.trigger FROM json_each(:ids) AS asked CROSS JOIN waiting AS w ON w.job_id = asked.value
WHERE w.scheduled_at >= :from_at AND w.scheduled_at < :to_at
UNION ALL
SELECT d.job_id, d.scheduled_at, 4, d.trigger FROM json_each(:ids) AS asked CROSS JOIN dead AS d ON d.job_id = asked.value
WHERE d.scheduled_at >= :from_at AND d.scheduled_at < :to_at
UNION ALL
SELECT p.job_id, p.scheduled_at, 0, p.trigger FROM json_each(:ids) AS asked
CROSS JOIN planned AS p ON p.job_id = asked.value AND p.trigger <> 0
WHERE p.scheduled_at >= :from_at AND p.scheduled_at < :to_at
LIMIT :limit;

-- audit_untold: runs of some jobs in a window that have ended, and whose children are yet to be told
SELECT d.job_id, d.scheduled_at FROM json_each(:ids) AS asked CROSS JOIN descents AS d ON d.job_id = asked.value
WHERE d.scheduled_at >= :from_at AND d.scheduled_at < :to_at LIMIT :limit;

-- audit_planned: which of some runs are planned by the schedule
SELECT p.job_id, p.scheduled_at, p.trigger FROM json_each(?) AS asked
CROSS JOIN planned AS p ON p.scheduled_at = asked.value ->> 1 AND p.job_id = asked.value ->> 0 AND p.trigger = 0;

-- audit_clocks: how far the clocks of some rules are, each in its segment, and what they missed in a window
SELECT c.rule, c.segment, c.next_at, g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran
FROM json_each(:places) AS wanted
CROSS JOIN clocks AS c ON c.rule = wanted.value ->> 0 AND c.segment = wanted.value ->> 1
LEFT JOIN clock_gaps AS g ON g.clock_id = c.id AND g.from_at < :to_at AND g.to_at >= :from_at
LIMIT :limit;
