-- count_own: jobs and dead letters of a tenant, up to a bound
SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = :tenant LIMIT :bound)),
    (SELECT count(*) FROM (SELECT 1 FROM dead WHERE tenant = :tenant LIMIT :bound));

-- own_planned: rows of some lanes that were looked at, how many of them are a tenant's, and when the first of those is due
SELECT count(*), count(own), min(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = p.job_id) = :tenant THEN p.due_at END AS own
    FROM json_each(:lanes) AS l CROSS JOIN planned AS p ON p.lane = l.value LIMIT :bound);

-- own_running: runs with a slot that were looked at, and how many of them are a tenant's
SELECT count(*), count(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = r.job_id) = :tenant THEN 1 END AS own FROM running AS r LIMIT :bound);

-- own_blocked: the same of runs that wait for a slot
SELECT count(*), count(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = b.job_id) = :tenant THEN 1 END AS own FROM blocked AS b LIMIT :bound);

-- own_waiting: the same of runs that wait for their parents
SELECT count(*), count(own) FROM (
    SELECT CASE WHEN (SELECT tenant FROM jobs WHERE id = w.job_id) = :tenant THEN 1 END AS own FROM waiting AS w LIMIT :bound);
