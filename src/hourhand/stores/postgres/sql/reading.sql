-- planned_at: unstarted runs of a job at computed times
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM planned
WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[]);

-- running_of: runs of a job that hold a slot
SELECT r.scheduled_at, r.due_at, r.was_due_at, r.trigger, r.fence, r.tries, r.phase, n.name, r.version, r.cancel,
    r.claimed_at, r.deadline_at, p.fraction, p.message, p.noted_at
FROM running AS r LEFT JOIN nodes AS n ON n.id = r.node_id
LEFT JOIN progress AS p ON p.job_id = r.job_id AND p.scheduled_at = r.scheduled_at AND p.attempt = r.fence
WHERE r.job_id = $1;

-- blocked_of: runs of a job that wait for a slot
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM blocked WHERE job_id = $1;

-- history_times: nominal times of a job with history, newest first
SELECT DISTINCT scheduled_at FROM history WHERE job_id = $1 AND scheduled_at < $2
    AND finished_at >= coalesce((SELECT $3::bigint - kept_us FROM short_histories WHERE job_id = $1), 0)
ORDER BY scheduled_at DESC LIMIT $4;

-- history_of: a job's history at some nominal times, attempts in order
SELECT h.scheduled_at, h.attempt, h.state, h.trigger, h.tries, h.due_at, h.started_at, h.finished_at, h.version,
    h.worker, h.detail
FROM unnest($2::bigint[]) AS asked (at) CROSS JOIN LATERAL (
    SELECT * FROM history WHERE job_id = $1 AND scheduled_at = asked.at AND bucket = (asked.at / 86400000000)::integer
    UNION ALL
    SELECT * FROM history_far WHERE job_id = $1 AND scheduled_at = asked.at) AS h
WHERE h.finished_at >= coalesce((SELECT $3::bigint - kept_us FROM short_histories WHERE job_id = $1), 0)
ORDER BY h.scheduled_at, h.attempt;

-- is_live: whether a one-time job's run has not ended
SELECT EXISTS (SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id)
    OR EXISTS (SELECT 1 FROM running WHERE job_id = :job_id)
    OR EXISTS (SELECT 1 FROM blocked WHERE job_id = :job_id);

-- live_among: those of one-time jobs whose run has not ended; each is looked for by its key
SELECT j.id FROM unnest($1::bigint[]) AS asked (id)
CROSS JOIN LATERAL (SELECT id, once_at FROM jobs WHERE id = asked.id LIMIT 1) AS j
CROSS JOIN LATERAL (
    (SELECT 1 FROM planned WHERE scheduled_at = j.once_at AND job_id = j.id LIMIT 1)
    UNION ALL (SELECT 1 FROM running WHERE job_id = j.id LIMIT 1)
    UNION ALL (SELECT 1 FROM blocked WHERE job_id = j.id LIMIT 1) LIMIT 1) AS live;

-- dense_in: how many rows of history finished in a window, counted up to a bound
SELECT count(*) FROM (
    (SELECT 1 FROM history WHERE finished_at >= :from_at::bigint AND finished_at <= :to_at::bigint
        AND bucket >= :first::integer AND bucket <= :last::integer LIMIT :most::bigint)
    UNION ALL
    (SELECT 1 FROM history_far WHERE finished_at >= :from_at::bigint AND finished_at <= :to_at::bigint
    LIMIT :most::bigint)) AS few;

-- finished_in: the last rows of history that finished in a window, of a tenant, before a place in that order
SELECT h.job_id, h.scheduled_at, h.attempt, h.finished_at
FROM (
    SELECT job_id, scheduled_at, attempt, finished_at FROM history
    WHERE finished_at >= :from_at::bigint AND finished_at <= :to_at::bigint
        AND bucket >= :first::integer AND bucket <= :last::integer AND state = ANY (:states::smallint[])
    UNION ALL
    SELECT job_id, scheduled_at, attempt, finished_at FROM history_far
    WHERE finished_at >= :from_at::bigint AND finished_at <= :to_at::bigint AND state = ANY (:states::smallint[])) AS h
WHERE (h.finished_at, h.job_id, h.scheduled_at) < (:finished_at::bigint, :job_id::bigint, :scheduled_at::bigint)
    AND (SELECT tenant FROM jobs WHERE id = h.job_id) = :tenant
ORDER BY h.finished_at DESC, h.job_id DESC, h.scheduled_at DESC LIMIT :limit;

-- dense_of: how many rows of a job's history finished in a window, counted up to a bound
SELECT count(*) FROM (
    (SELECT 1 FROM history WHERE job_id = :job::bigint AND finished_at >= :from_at::bigint
        AND finished_at <= :to_at::bigint AND bucket >= :first::integer AND bucket <= :last::integer LIMIT :most::bigint)
    UNION ALL
    (SELECT 1 FROM history_far WHERE job_id = :job::bigint AND finished_at >= :from_at::bigint
        AND finished_at <= :to_at::bigint LIMIT :most::bigint)) AS few;

-- finished_of: the last rows of a job's history that finished in a window, before a place in that order
SELECT h.job_id, h.scheduled_at, h.attempt, h.finished_at
FROM (
    SELECT job_id, scheduled_at, attempt, finished_at FROM history
    WHERE job_id = :job::bigint AND finished_at >= :from_at::bigint AND finished_at <= :to_at::bigint
        AND bucket >= :first::integer AND bucket <= :last::integer AND state = ANY (:states::smallint[])
    UNION ALL
    SELECT job_id, scheduled_at, attempt, finished_at FROM history_far
    WHERE job_id = :job::bigint AND finished_at >= :from_at::bigint AND finished_at <= :to_at::bigint
        AND state = ANY (:states::smallint[])) AS h
WHERE (h.finished_at, h.job_id, h.scheduled_at) < (:finished_at::bigint, :job_id::bigint, :scheduled_at::bigint)
ORDER BY h.finished_at DESC, h.job_id DESC, h.scheduled_at DESC LIMIT :limit;

-- running_page: runs that hold a slot, of a tenant, the last due first; of a bounded number that are looked at
SELECT r.job_id, r.scheduled_at, r.phase, r.due_at, r.tries
FROM (SELECT job_id, scheduled_at, phase, due_at, tries FROM running ORDER BY job_id LIMIT 100000) AS r
WHERE (SELECT tenant FROM jobs WHERE id = r.job_id) = $1 ORDER BY r.due_at DESC LIMIT $2;

-- count_jobs: the number of jobs; beyond a bound, what the server has counted along. A plan is made for few rows as
-- long as the bound is not known to it, so it begins at once instead of collecting everything first
SELECT CASE WHEN number < 10000 THEN number ELSE greatest(number, pg_stat_get_live_tuples('jobs'::regclass)) END
FROM (SELECT count(*) AS number FROM (SELECT 1 FROM jobs ORDER BY id LIMIT (SELECT 10000)) AS few) AS counted;

-- count_hot: sizes of the hot tables; beyond a bound, what the server has counted along
SELECT CASE WHEN planned < 10000 THEN planned ELSE greatest(planned, pg_stat_get_live_tuples('planned'::regclass)) END,
    CASE WHEN running < 10000 THEN running ELSE greatest(running, pg_stat_get_live_tuples('running'::regclass)) END,
    CASE WHEN blocked < 10000 THEN blocked ELSE greatest(blocked, pg_stat_get_live_tuples('blocked'::regclass)) END,
    CASE WHEN dead < 10000 THEN dead ELSE greatest(dead, pg_stat_get_live_tuples('dead'::regclass)) END,
    CASE WHEN waiting < 10000 THEN waiting ELSE greatest(waiting, pg_stat_get_live_tuples('waiting'::regclass)) END
FROM (SELECT (SELECT count(*) FROM (SELECT 1 FROM planned ORDER BY scheduled_at LIMIT least(:bound::bigint, 10000)) AS few) AS planned,
    (SELECT count(*) FROM (SELECT 1 FROM running ORDER BY job_id LIMIT least(:bound::bigint, 10000)) AS few) AS running,
    (SELECT count(*) FROM (SELECT 1 FROM blocked ORDER BY job_id LIMIT least(:bound::bigint, 10000)) AS few) AS blocked,
    (SELECT count(*) FROM (SELECT 1 FROM dead ORDER BY job_id LIMIT least(:bound::bigint, 10000)) AS few) AS dead,
    (SELECT count(*) FROM (SELECT 1 FROM waiting ORDER BY job_id LIMIT least(:bound::bigint, 10000)) AS few) AS waiting) AS counted;

-- all_pools: every pool
SELECT id FROM pools;

-- jobs_among: those of these jobs that are a tenant's
SELECT asked.id FROM unnest($2::bigint[]) AS asked (id) WHERE (SELECT tenant FROM jobs WHERE id = asked.id) = $1;

-- last_ends: the last ends of runs of some jobs, each job's newest first
SELECT asked.id, h.scheduled_at, h.state, h.due_at, h.started_at, h.finished_at
FROM unnest(:ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT scheduled_at, attempt, state, due_at, started_at, finished_at FROM history
    WHERE job_id = asked.id AND state <> :retrying::smallint
        AND finished_at >= coalesce((SELECT :now::bigint - kept_us FROM short_histories WHERE job_id = asked.id), 0)
    ORDER BY scheduled_at DESC, attempt DESC LIMIT :limit::bigint) AS h
ORDER BY asked.id, h.scheduled_at DESC, h.attempt DESC;

-- running_among: runs of some jobs that hold a slot
SELECT r.job_id, r.phase, r.due_at, r.tries
FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (SELECT * FROM running WHERE job_id = asked.id) AS r;
