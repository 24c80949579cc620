-- count_own: jobs and dead letters of a tenant, up to a bound
SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = :tenant ORDER BY tenant, id LIMIT :bound::bigint) AS few),
    (SELECT count(*) FROM (SELECT 1 FROM dead WHERE tenant = :tenant ORDER BY tenant, failed_at LIMIT :bound::bigint) AS few);

-- own_planned: rows of some lanes that were looked at, how many of them are a tenant's, and when the first of those is due
SELECT count(*), count(own), min(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = p.job_id) = :tenant THEN p.due_at END AS own
    FROM unnest(:lanes::integer[]) AS l (lane) CROSS JOIN LATERAL (
        SELECT job_id, due_at FROM planned WHERE lane = l.lane ORDER BY lane, due_at LIMIT :bound::bigint) AS p
    LIMIT :bound::bigint) AS looked;

-- own_running: runs with a slot that were looked at, and how many of them are a tenant's
SELECT count(*), count(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = r.job_id) = :tenant THEN 1 END AS own
    FROM running AS r ORDER BY r.job_id LIMIT :bound::bigint) AS looked;

-- own_blocked: the same of runs that wait for a slot
SELECT count(*), count(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = b.job_id) = :tenant THEN 1 END AS own
    FROM blocked AS b ORDER BY b.job_id LIMIT :bound::bigint) AS looked;

-- own_waiting: the same of runs that wait for their parents
SELECT count(*), count(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = w.job_id) = :tenant THEN 1 END AS own
    FROM waiting AS w ORDER BY w.job_id LIMIT :bound::bigint) AS looked;
