-- lock_graph: there is one writer, so nobody else changes who follows whom
SELECT 1 WHERE ?1 IS NULL;

-- graph_jobs: what a check needs to know of jobs
SELECT id, name, key, paused, until, spec FROM jobs WHERE +tenant = ? AND id IN (SELECT value FROM json_each(?));

-- newest_runs: of each of some jobs the newest run that waits, that has a slot, and that ended
SELECT asked.value, w.scheduled_at, 2, 0, 0, 0 FROM json_each(:job_ids) AS asked
CROSS JOIN waiting AS w ON w.job_id = asked.value
    AND w.scheduled_at = (SELECT max(scheduled_at) FROM waiting WHERE job_id = asked.value)
UNION ALL
SELECT asked.value, max(b.scheduled_at), 2, 0, 0, 0 FROM json_each(:job_ids) AS asked
CROSS JOIN blocked AS b ON b.job_id = asked.value GROUP BY asked.value
UNION ALL
SELECT asked.value, max(r.scheduled_at), 1, r.phase, r.due_at, r.tries FROM json_each(:job_ids) AS asked
CROSS JOIN running AS r ON r.job_id = asked.value GROUP BY asked.value
UNION ALL
SELECT asked.value, h.scheduled_at, 0, h.state, 0, 0 FROM json_each(:job_ids) AS asked
CROSS JOIN history AS h ON h.id = (
    SELECT id FROM history WHERE job_id = asked.value
        AND finished_at >= coalesce((SELECT :now - kept_us FROM short_histories WHERE job_id = asked.value), 0)
    ORDER BY scheduled_at DESC, attempt DESC LIMIT 1);

-- runs_at: the runs of some jobs for one nominal time, wherever they are
SELECT asked.value, :scheduled_at, 2, 0, 0, 0 FROM json_each(:job_ids) AS asked
WHERE EXISTS (SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = asked.value)
    OR EXISTS (SELECT 1 FROM waiting WHERE job_id = asked.value AND scheduled_at = :scheduled_at)
    OR EXISTS (SELECT 1 FROM blocked WHERE job_id = asked.value AND scheduled_at = :scheduled_at)
UNION ALL
SELECT asked.value, r.scheduled_at, 1, r.phase, r.due_at, r.tries FROM json_each(:job_ids) AS asked
CROSS JOIN running AS r ON r.job_id = asked.value AND r.scheduled_at = :scheduled_at
UNION ALL
SELECT asked.value, h.scheduled_at, 0, h.state, 0, 0 FROM json_each(:job_ids) AS asked
CROSS JOIN history AS h ON h.id = (
    SELECT id FROM history WHERE job_id = asked.value AND scheduled_at = :scheduled_at
        AND finished_at >= coalesce((SELECT :now - kept_us FROM short_histories WHERE job_id = asked.value), 0)
    ORDER BY attempt DESC LIMIT 1);

-- children_now: who follows some jobs at present
SELECT parent_id, child_id FROM edges
WHERE parent_id IN (SELECT value FROM json_each(?)) AND until_at = 4611686018427387903 LIMIT ?;

-- parents_among: which of some jobs others follow or followed
SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM edges WHERE edges.parent_id = value);

-- add_edge: a job follows another from now on
INSERT INTO edges (parent_id, child_id, since_at, until_at)
VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET until_at = excluded.until_at;

-- ended_ahead: runs of some jobs for times to come that have ended already, cancelled as a rule
SELECT job_id, scheduled_at, state, trigger FROM history
WHERE job_id IN (SELECT value FROM json_each(?)) AND scheduled_at > ? AND state IN (3, 4, 5, 6) LIMIT 10000;

-- end_edges: a job follows others no longer, but for times up to an instant
UPDATE edges SET until_at = max(since_at, :until)
WHERE child_id = :child_id AND parent_id IN (SELECT value FROM json_each(:parent_ids))
    AND until_at = 4611686018427387903;

-- purge_edges: edges that nothing can wait by any more
DELETE FROM edges WHERE (parent_id, child_id, since_at) IN (
    SELECT parent_id, child_id, since_at FROM edges
    WHERE until_at < ? AND until_at < 4611686018427387903 ORDER BY until_at LIMIT ?);

-- tell_children: the ended runs of a batch that others follow
INSERT INTO descents (job_id, scheduled_at, state, trigger)
SELECT d.job_id, d.scheduled_at, CASE d.event WHEN 1 THEN 3 WHEN 3 THEN 4 WHEN 4 THEN 5 WHEN 7 THEN 6 END, r.trigger
FROM temp.done AS d CROSS JOIN running AS r ON r.job_id = d.job_id AND r.slot = d.slot
WHERE d.event IN (1, 3, 4, 7) AND EXISTS (SELECT 1 FROM edges WHERE edges.parent_id = d.job_id);

-- add_descent: children are to be told how a run ended
INSERT INTO descents (job_id, scheduled_at, state, trigger)
VALUES (?, ?, ?, ?);

-- take_descents: the oldest runs whose children have not been told
DELETE FROM descents WHERE id IN (SELECT id FROM descents ORDER BY id LIMIT ?)
RETURNING id, job_id, scheduled_at, state, trigger;

-- is_descending: whether children of a run are yet to be told
SELECT 1 FROM descents WHERE job_id = ? AND scheduled_at = ? LIMIT 1;

-- children_of: who follows or followed runs, each of a job at a time, and whether they do so at that time
SELECT asked.value ->> 0, asked.value ->> 1, e.child_id,
    max(e.since_at < asked.value ->> 1 AND e.until_at >= asked.value ->> 1)
FROM json_each(?) AS asked CROSS JOIN edges AS e ON e.parent_id = asked.value ->> 0
GROUP BY 1, 2, 3;

-- parents_at: whom runs follow, each of a job at a time
SELECT e.child_id, asked.value ->> 1, e.parent_id FROM json_each(?) AS asked
CROSS JOIN edges AS e ON e.child_id = asked.value ->> 0
    AND e.since_at < asked.value ->> 1 AND e.until_at >= asked.value ->> 1;

-- share_jobs: jobs by id; there is one writer, so nobody else changes them
SELECT * FROM job_records WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id;

-- add_waiting: runs that wait for their parents
INSERT INTO waiting (job_id, scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- hold_waiting: waiting runs
SELECT w.job_id, w.scheduled_at, w.made_at, w.deadline_at, w.look_at, w.fence, w.trigger, w.parents
FROM json_each(?) AS asked
CROSS JOIN waiting AS w ON w.job_id = asked.value ->> 0 AND w.scheduled_at = asked.value ->> 1;

-- runs_elsewhere: which of some runs are planned, running, blocked, dead or over
SELECT asked.value ->> 0, asked.value ->> 1 FROM json_each(?) AS asked
WHERE EXISTS (SELECT 1 FROM planned WHERE scheduled_at = asked.value ->> 1 AND job_id = asked.value ->> 0)
    OR EXISTS (SELECT 1 FROM running WHERE job_id = asked.value ->> 0 AND scheduled_at = asked.value ->> 1)
    OR EXISTS (SELECT 1 FROM blocked WHERE job_id = asked.value ->> 0 AND scheduled_at = asked.value ->> 1)
    OR EXISTS (SELECT 1 FROM history WHERE job_id = asked.value ->> 0 AND scheduled_at = asked.value ->> 1);

-- drop_waiting: runs that need wait no longer
DELETE FROM waiting WHERE (job_id, scheduled_at) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
RETURNING job_id, scheduled_at;

-- waiting_of: a job's runs that wait for their parents, the newest first
SELECT scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents FROM waiting
WHERE job_id = ? ORDER BY scheduled_at DESC LIMIT ?;

-- waiting_at: one run that waits for its parents
SELECT scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents FROM waiting
WHERE job_id = ? AND scheduled_at = ?;

-- add_signal: how a parent of a waiting run ended; what was heard first stands
INSERT INTO signals (job_id, scheduled_at, parent_id, state)
VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- signals_of: what waiting runs have heard
SELECT s.job_id, s.scheduled_at, s.parent_id, s.state FROM json_each(?) AS asked
CROSS JOIN signals AS s ON s.job_id = asked.value ->> 0 AND s.scheduled_at = asked.value ->> 1;

-- drop_signals: what runs had heard that need wait no longer
DELETE FROM signals WHERE (job_id, scheduled_at) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?));

-- forget_signals: parents of a waiting run that are to be heard of again
DELETE FROM signals WHERE job_id = ? AND scheduled_at = ? AND parent_id IN (SELECT value FROM json_each(?));

-- waits_to_look_at: runs whose parents may never come
SELECT job_id, scheduled_at FROM waiting WHERE look_at <= ? ORDER BY look_at LIMIT ?;

-- look_later: when to look at waiting runs again
UPDATE waiting SET look_at = later.value ->> 2 FROM json_each(?) AS later
WHERE waiting.job_id = later.value ->> 0 AND waiting.scheduled_at = later.value ->> 1;

-- ended_as: how a run ended last, and under which fence
SELECT state, attempt, detail FROM history
WHERE job_id = :job_id AND scheduled_at = :scheduled_at ORDER BY attempt DESC LIMIT 1;

-- drop_waiting_of: a job's runs that wait for their parents; says which were there
DELETE FROM waiting WHERE job_id = ?
RETURNING job_id, scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents;

-- drop_signals_of: what a job's runs had heard
DELETE FROM signals WHERE job_id = ?;

-- drop_waiting_after: a job's runs after an instant that wait for their parents
DELETE FROM waiting WHERE job_id = ? AND scheduled_at > ?;

-- drop_signals_after: what a job's runs after an instant had heard
DELETE FROM signals WHERE job_id = ? AND scheduled_at > ?;

-- edges_at: whom a job follows at a time, and since when
SELECT parent_id, since_at FROM edges WHERE child_id = ?1 AND since_at < ?2 AND until_at >= ?2 ORDER BY parent_id;
