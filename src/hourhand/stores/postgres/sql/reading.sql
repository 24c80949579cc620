-- planned_at: unstarted runs of a job at computed times
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM planned
WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[]);

-- running_of: runs of a job that hold a slot
SELECT r.scheduled_at, r.due_at, r.trigger, r.fence, r.tries, r.phase, n.name, r.version, r.cancel,
    r.claimed_at
FROM running AS r LEFT JOIN nodes AS n ON n.id = r.node_id WHERE r.job_id = $1;

-- blocked_of: runs of a job that wait for a slot
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM blocked WHERE job_id = $1;

-- history_times: nominal times of a job with history, newest first
SELECT DISTINCT scheduled_at FROM history WHERE job_id = $1 AND scheduled_at < $2 ORDER BY scheduled_at DESC LIMIT $3;

-- history_of: a job's history at some nominal times, attempts in order
SELECT scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version, worker, detail
FROM history WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[])
    AND bucket = ANY (ARRAY(SELECT DISTINCT (at / 86400000000)::integer FROM unnest($2::bigint[]) AS at) || 0)
ORDER BY scheduled_at, attempt;

-- is_live: whether a one-time job's run has not ended
SELECT EXISTS (SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id)
    OR EXISTS (SELECT 1 FROM running WHERE job_id = :job_id)
    OR EXISTS (SELECT 1 FROM blocked WHERE job_id = :job_id);

-- finished_in: the last rows of history that finished in a window, of a tenant, before a place in that order
SELECT h.job_id, h.scheduled_at, h.attempt, h.state, h.finished_at
FROM history AS h JOIN jobs AS j ON j.id = h.job_id
WHERE h.finished_at >= :from_at::bigint AND h.finished_at <= :to_at::bigint AND j.tenant = :tenant
    AND (h.finished_at, h.job_id, h.scheduled_at) < (:finished_at::bigint, :job_id::bigint, :scheduled_at::bigint)
    AND h.bucket = ANY (:buckets::integer[])
ORDER BY h.finished_at DESC, h.job_id DESC, h.scheduled_at DESC LIMIT :limit;

-- finished_of: the last rows of a job's history that finished in a window, before a place in that order
SELECT h.job_id, h.scheduled_at, h.attempt, h.state, h.finished_at FROM history AS h
WHERE h.job_id = :job::bigint AND h.finished_at >= :from_at::bigint AND h.finished_at <= :to_at::bigint
    AND (h.finished_at, h.job_id, h.scheduled_at) < (:finished_at::bigint, :job_id::bigint, :scheduled_at::bigint)
ORDER BY h.finished_at DESC, h.job_id DESC, h.scheduled_at DESC LIMIT :limit;

-- running_page: runs that hold a slot, of a tenant
SELECT r.job_id, r.scheduled_at FROM running AS r JOIN jobs AS j ON j.id = r.job_id
WHERE j.tenant = $1 ORDER BY r.due_at DESC LIMIT $2;

-- count_jobs: the number of jobs; beyond a bound, what the last analysis estimated
SELECT CASE WHEN counted.number < 100000 THEN counted.number ELSE greatest(counted.number, known.reltuples::bigint) END
FROM (SELECT count(*) AS number FROM (SELECT 1 FROM jobs LIMIT 100000) AS few) AS counted,
    (SELECT reltuples FROM pg_class WHERE oid = 'jobs'::regclass) AS known;

-- count_hot: sizes of the hot tables, counted up to a bound
SELECT (SELECT count(*) FROM (SELECT 1 FROM planned LIMIT :bound::bigint) AS few),
    (SELECT count(*) FROM (SELECT 1 FROM running LIMIT :bound::bigint) AS few),
    (SELECT count(*) FROM (SELECT 1 FROM blocked LIMIT :bound::bigint) AS few),
    (SELECT count(*) FROM (SELECT 1 FROM dead LIMIT :bound::bigint) AS few);

-- all_pools: every pool
SELECT id FROM pools;
