-- planned_at: unstarted runs of a job at computed times
SELECT p.scheduled_at, p.lane, p.due_at, p.trigger, p.fence, p.tries
FROM json_each(?2) AS n CROSS JOIN planned AS p ON p.scheduled_at = n.value AND p.job_id = ?1;

-- running_of: runs of a job that hold a slot
SELECT r.scheduled_at, r.due_at, r.was_due_at, r.trigger, r.fence, r.tries, r.phase, n.name, r.version, r.cancel,
    r.claimed_at, r.deadline_at, p.fraction, p.message, p.noted_at
FROM running AS r LEFT JOIN nodes AS n ON n.id = r.node_id
LEFT JOIN progress AS p ON p.job_id = r.job_id AND p.scheduled_at = r.scheduled_at AND p.attempt = r.fence
WHERE r.job_id = ?;

-- blocked_of: runs of a job that wait for a slot
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM blocked WHERE job_id = ?;

-- history_times: nominal times of a job with history, newest first
SELECT DISTINCT scheduled_at FROM history WHERE job_id = ?1 AND scheduled_at < ?2
    AND finished_at >= coalesce((SELECT ?3 - kept_us FROM short_histories WHERE job_id = ?1), 0)
ORDER BY scheduled_at DESC LIMIT ?4;

-- history_of: a job's history at some nominal times, attempts in order
SELECT scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version, worker, detail
FROM history WHERE job_id = ?1 AND scheduled_at IN (SELECT value FROM json_each(?2))
    AND finished_at >= coalesce((SELECT ?3 - kept_us FROM short_histories WHERE job_id = ?1), 0)
ORDER BY scheduled_at, attempt;

-- is_live: whether a one-time job's run has not ended
SELECT EXISTS (SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id)
    OR EXISTS (SELECT 1 FROM running WHERE job_id = :job_id)
    OR EXISTS (SELECT 1 FROM blocked WHERE job_id = :job_id);

-- live_among: those of one-time jobs whose run has not ended
SELECT j.id FROM json_each(?) AS i CROSS JOIN jobs AS j ON j.id = i.value WHERE (
    EXISTS (SELECT 1 FROM planned WHERE scheduled_at = j.once_at AND job_id = j.id)
    OR EXISTS (SELECT 1 FROM running WHERE job_id = j.id)
    OR EXISTS (SELECT 1 FROM blocked WHERE job_id = j.id));

-- newest_history: the last row of history
SELECT max(id) FROM history;

-- oldest_history: the first row of history
SELECT min(id) FROM history;

-- history_time_at: when the first run at or after an id finished
SELECT id, finished_at FROM history WHERE id >= ? ORDER BY id LIMIT 1;

-- history_back: rows of history before an id, newest first
SELECT h.id, h.job_id, h.scheduled_at, h.attempt, h.state
FROM history AS h JOIN jobs AS j ON j.id = h.job_id
WHERE h.id < ? AND h.id >= ? AND j.tenant = ? ORDER BY h.id DESC LIMIT ?;

-- history_back_of: rows of a job's history before an id in a window of finish times, newest first
SELECT id, job_id, scheduled_at, attempt, state FROM history
WHERE job_id = ? AND id < ? AND finished_at >= ? AND finished_at <= ? ORDER BY id DESC LIMIT ?;

-- running_page: runs that hold a slot, of a tenant
SELECT r.job_id, r.scheduled_at, r.phase, r.due_at, r.tries FROM running AS r JOIN jobs AS j ON j.id = r.job_id
WHERE j.tenant = ? ORDER BY r.due_at DESC LIMIT ?;

-- count_jobs: the number of jobs
SELECT count(*) FROM jobs;

-- count_hot: sizes of the hot tables, counted up to a bound
SELECT (SELECT count(*) FROM (SELECT 1 FROM planned LIMIT :bound)),
    (SELECT count(*) FROM (SELECT 1 FROM running LIMIT :bound)),
    (SELECT count(*) FROM (SELECT 1 FROM blocked LIMIT :bound)),
    (SELECT count(*) FROM (SELECT 1 FROM dead LIMIT :bound)),
    (SELECT count(*) FROM (SELECT 1 FROM waiting LIMIT :bound));

-- all_pools: every pool
SELECT id FROM pools;

-- jobs_among: those of these jobs that are a tenant's
SELECT j.id FROM json_each(?2) AS asked CROSS JOIN jobs AS j ON j.id = asked.value WHERE j.tenant = ?1;

-- last_ends: the last ends of runs of some jobs, each job's newest first
SELECT h.job_id, h.scheduled_at, h.state, h.due_at, h.started_at, h.finished_at
FROM json_each(:ids) AS asked CROSS JOIN history AS h ON h.id IN (
    SELECT id FROM history WHERE job_id = asked.value AND state <> :retrying
        AND finished_at >= coalesce((SELECT :now - kept_us FROM short_histories WHERE job_id = asked.value), 0)
    ORDER BY scheduled_at DESC, attempt DESC LIMIT :limit)
ORDER BY h.job_id, h.scheduled_at DESC, h.attempt DESC;

-- running_among: runs of some jobs that hold a slot
SELECT r.job_id, r.phase, r.due_at, r.tries FROM json_each(?) AS asked CROSS JOIN running AS r ON r.job_id = asked.value;
