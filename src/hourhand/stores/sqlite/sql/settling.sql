-- clear_done: forget the last batch
DELETE FROM temp.done;

-- add_done: what became of one claimed run
INSERT INTO temp.done (place, job_id, slot, scheduled_at, fence, event, version, tries, due_at, started_at,
    finished_at, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- drop_refused: settlements whose run is no longer in that slot under that fence; what its target has accepted began,
-- so that it cannot be released (5)
DELETE FROM temp.done WHERE NOT EXISTS (
    SELECT 1 FROM running AS r WHERE r.job_id = done.job_id AND r.slot = done.slot AND r.fence = done.fence
        AND r.scheduled_at = done.scheduled_at AND (r.phase = 1 OR (r.phase = 2 AND done.event <> 5)))
RETURNING place;

-- write_history: a row per attempt; events 1 succeed, 2 retry, 3 exhaust, 4 skip, 7 cancel
INSERT INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version,
    worker, detail)
SELECT d.job_id, d.scheduled_at, d.fence,
    CASE d.event WHEN 1 THEN 3 WHEN 2 THEN 2 WHEN 3 THEN 4 WHEN 4 THEN 5 WHEN 7 THEN 6 END,
    r.trigger, d.tries, r.due_at, d.started_at, d.finished_at, d.version, ?, d.detail
FROM temp.done AS d CROSS JOIN running AS r ON r.job_id = d.job_id AND r.slot = d.slot
WHERE d.event IN (1, 2, 3, 4, 7);

-- exhausted: runs whose tries are used up, with what a dead letter keeps
SELECT d.job_id, d.scheduled_at, j.tenant, d.finished_at, r.trigger, d.fence, d.tries, r.lane, d.detail
FROM temp.done AS d JOIN running AS r ON r.job_id = d.job_id AND r.slot = d.slot
JOIN jobs AS j ON j.id = d.job_id WHERE d.event = 3;

-- add_dead: a dead letter
INSERT INTO dead (job_id, scheduled_at, tenant, failed_at, trigger, fence, tries, lane, error, fingerprint)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- write_retries: failed runs keep their slot and wait for their next attempt
UPDATE running SET phase = 3, node_id = NULL, deadline_at = NULL, due_at = d.due_at, tries = d.tries
FROM temp.done AS d WHERE d.event = 2 AND running.job_id = d.job_id AND running.slot = d.slot;

-- write_releases: unstarted runs keep their slot and wait for another worker, some until a given time
UPDATE running SET phase = 0, node_id = NULL, deadline_at = NULL,
    due_at = max(running.due_at, d.due_at), was_due_at = CASE WHEN d.due_at > running.due_at THEN running.due_at END
FROM temp.done AS d WHERE d.event = 5 AND running.job_id = d.job_id AND running.slot = d.slot;

-- write_reports: accepted runs wait for their report, held by nobody
UPDATE running SET phase = 2, node_id = NULL
FROM temp.done AS d WHERE d.event = 6 AND running.job_id = d.job_id AND running.slot = d.slot;

-- free_slots: ended runs leave
DELETE FROM running WHERE (job_id, slot) IN (SELECT job_id, slot FROM temp.done WHERE event IN (1, 3, 4, 7));

-- any_blocked: whether anything waits for a slot at all
SELECT 1 FROM blocked LIMIT 1;

-- freed_jobs: jobs that freed a slot and have runs waiting for one
SELECT DISTINCT d.job_id FROM temp.done AS d WHERE d.event IN (1, 3, 4, 7)
    AND EXISTS (SELECT 1 FROM blocked AS b WHERE b.job_id = d.job_id);

-- idle_cancelled: runs that somebody wants cancelled and nobody executes
SELECT job_id, scheduled_at FROM running WHERE cancel = 1 AND phase <> 1 AND node_id IS NULL;

-- front_of_blocked: the runs of jobs that get the next free slots
SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries FROM (
    SELECT b.*, row_number() OVER (PARTITION BY b.job_id ORDER BY b.rank, b.scheduled_at) AS turn, j.concurrency
    FROM json_each(?) AS n CROSS JOIN blocked AS b ON b.job_id = n.value JOIN jobs AS j ON j.id = b.job_id)
WHERE turn <= ifnull(concurrency, 1000) ORDER BY job_id, turn;

-- add_ready: a slot is handed on
INSERT INTO running (job_id, slot, scheduled_at, lane, due_at, trigger, fence, tries, phase)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);
