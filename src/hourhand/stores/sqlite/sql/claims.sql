-- lease_of: until when a node's lease runs
SELECT lease_until FROM nodes WHERE id = ?;

-- waiting_lanes: lanes of a pool in which runs wait, with the first due time of each
WITH RECURSIVE lanes (lane) AS (
    SELECT min(lane) FROM planned WHERE lane >= :first AND lane < :last
    UNION ALL
    SELECT (SELECT min(lane) FROM planned WHERE lane > lanes.lane AND lane < :last) FROM lanes WHERE lane IS NOT NULL)
SELECT lane, (SELECT min(due_at) FROM planned WHERE planned.lane = lanes.lane) FROM lanes WHERE lane IS NOT NULL;

-- ready_lanes: lanes of a pool in which ready and retrying runs wait, with the first due time of each
WITH RECURSIVE lanes (lane) AS (
    SELECT min(lane) FROM running WHERE phase IN (0, 3) AND lane >= :first AND lane < :last
    UNION ALL
    SELECT (SELECT min(lane) FROM running WHERE phase IN (0, 3) AND lane > lanes.lane AND lane < :last)
    FROM lanes WHERE lane IS NOT NULL)
SELECT lane, (SELECT min(due_at) FROM running WHERE phase IN (0, 3) AND running.lane = lanes.lane)
FROM lanes WHERE lane IS NOT NULL;

-- later_waiting: the first run of a lane that is due after an instant
SELECT min(due_at) FROM planned WHERE lane = ? AND due_at > ?;

-- later_ready: the first ready or retrying run of a lane that is due after an instant
SELECT min(due_at) FROM running WHERE phase IN (0, 3) AND lane = ? AND due_at > ?;

-- clear_candidates: forget the last claim
DELETE FROM temp.candidate;

-- look_due: runs of a lane that are due; late: past the grace; fate 0 take, 1 full, 2 several slots, 3 deleted
INSERT INTO temp.candidate (job_id, scheduled_at, lane, due_at, rank, late, fate, slot, trigger, fence,
    tries, deadline_at, version, tenant, spec)
SELECT p.job_id, p.scheduled_at, p.lane, p.due_at, :rank + row_number() OVER (),
    p.trigger = 0 AND p.due_at + j.grace_us < :now,
    CASE WHEN j.id IS NULL THEN 3
        WHEN j.concurrency IS NULL THEN 0
        WHEN j.concurrency > 1 THEN 2
        WHEN EXISTS (SELECT 1 FROM running AS r WHERE r.job_id = p.job_id) THEN 1
        ELSE 0 END,
    CASE WHEN j.concurrency IS NULL THEN p.scheduled_at ELSE 0 END,
    p.trigger, p.fence, p.tries, max(p.due_at, :now) + j.timeout_us, j.version, j.tenant, j.spec
FROM (SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries FROM planned
    WHERE lane = :lane AND due_at <= :until ORDER BY due_at, scheduled_at, job_id LIMIT :limit) AS p
LEFT JOIN jobs AS j ON j.id = p.job_id;

-- look_newest: runs of a lane that were due last, beside those that were looked at, one for so many of them; none whose
-- job has the run before it still waiting
INSERT INTO temp.candidate (job_id, scheduled_at, lane, due_at, rank, late, fate, slot, trigger, fence,
    tries, deadline_at, version, tenant, spec)
SELECT p.job_id, p.scheduled_at, p.lane, p.due_at, :step * row_number() OVER (),
    p.trigger = 0 AND p.due_at + j.grace_us < :now,
    CASE WHEN j.id IS NULL THEN 3
        WHEN j.concurrency IS NULL THEN 0
        WHEN j.concurrency > 1 THEN 2
        WHEN EXISTS (SELECT 1 FROM running AS r WHERE r.job_id = p.job_id) THEN 1
        ELSE 0 END,
    CASE WHEN j.concurrency IS NULL THEN p.scheduled_at ELSE 0 END,
    p.trigger, p.fence, p.tries, max(p.due_at, :now) + j.timeout_us, j.version, j.tenant, j.spec
FROM (SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries, after_at FROM planned
    WHERE lane = :lane AND due_at <= :now
        AND (due_at, scheduled_at, job_id) > (SELECT c.due_at, c.scheduled_at, c.job_id FROM temp.candidate AS c
            WHERE c.lane = :lane ORDER BY c.due_at DESC, c.scheduled_at DESC, c.job_id DESC LIMIT 1)
    ORDER BY due_at DESC, scheduled_at DESC, job_id DESC LIMIT :limit) AS p
LEFT JOIN jobs AS j ON j.id = p.job_id
WHERE p.after_at IS NULL OR NOT EXISTS (
    SELECT 1 FROM planned AS b WHERE b.scheduled_at = p.after_at AND b.job_id = p.job_id);

-- look_ahead: runs of a lane that are due within the lead, after a cursor; fate 4 not yet: at most once, or the run
-- before it still waits; with several slots behind_at says so, since that one may be taken by the same claim
INSERT INTO temp.candidate (job_id, scheduled_at, lane, due_at, rank, late, fate, slot, trigger, fence,
    tries, deadline_at, version, tenant, spec, behind_at)
SELECT p.job_id, p.scheduled_at, p.lane, p.due_at, :rank + :step * row_number() OVER (), 0,
    CASE WHEN j.id IS NULL THEN 3
        WHEN j.at_most_once THEN 4
        WHEN j.concurrency IS NULL THEN 0
        WHEN (SELECT count(*) FROM running AS r WHERE r.job_id = p.job_id) >= j.concurrency THEN 1
        WHEN j.concurrency > 1 THEN 2
        WHEN p.after_at IS NOT NULL AND EXISTS (SELECT 1 FROM planned AS b
            WHERE b.scheduled_at = p.after_at AND b.job_id = p.job_id) THEN 4
        ELSE 0 END,
    CASE WHEN j.concurrency IS NULL THEN p.scheduled_at ELSE 0 END,
    p.trigger, p.fence, p.tries, max(p.due_at, :now) + j.timeout_us, j.version, j.tenant, j.spec,
    CASE WHEN p.after_at IS NOT NULL AND j.concurrency > 1 AND EXISTS (SELECT 1 FROM planned AS b
        WHERE b.scheduled_at = p.after_at AND b.job_id = p.job_id) THEN p.after_at END
FROM (SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries, after_at FROM planned
    WHERE lane = :lane AND due_at > :now AND due_at <= :until
        AND (due_at, scheduled_at, job_id) > (:due_at, :scheduled_at, :job_id)
    ORDER BY due_at, scheduled_at, job_id LIMIT :limit) AS p
LEFT JOIN jobs AS j ON j.id = p.job_id;

-- stuck_ahead: whether a lane has runs within the lead that cannot be taken yet
SELECT 1 FROM temp.candidate WHERE lane = ? AND due_at > ? AND fate IN (1, 4) LIMIT 1;

-- last_ahead: the last run of a lane that was looked at ahead of its time
SELECT due_at, scheduled_at, job_id FROM temp.candidate WHERE lane = ? AND due_at > ?
ORDER BY due_at DESC, scheduled_at DESC, job_id DESC LIMIT 1;

-- look_ready: ready and retrying runs of a lane; fate 5 take again, 3 deleted
INSERT INTO temp.candidate (job_id, scheduled_at, lane, due_at, rank, late, fate, slot, trigger, fence,
    tries, deadline_at, version, tenant, spec)
SELECT r.job_id, r.scheduled_at, r.lane, coalesce(r.was_due_at, r.due_at), row_number() OVER (), 0,
    CASE WHEN j.id IS NULL THEN 3 WHEN j.at_most_once AND r.due_at > :now THEN 4 ELSE 5 END, r.slot,
    r.trigger, r.fence, r.tries, max(coalesce(r.was_due_at, r.due_at), :now) + j.timeout_us, j.version, j.tenant, j.spec
FROM (SELECT job_id, scheduled_at, lane, due_at, was_due_at, slot, trigger, fence, tries FROM running
    WHERE phase IN (0, 3) AND lane = :lane AND due_at <= :until ORDER BY due_at LIMIT :limit) AS r
LEFT JOIN jobs AS j ON j.id = r.job_id;

-- look_named: planned runs by their keys, judged as those of lanes are, due or within the lead
INSERT INTO temp.candidate (job_id, scheduled_at, lane, due_at, rank, late, fate, slot, trigger, fence,
    tries, deadline_at, version, tenant, spec, behind_at)
SELECT p.job_id, p.scheduled_at, p.lane, p.due_at,
    row_number() OVER (ORDER BY p.due_at, p.scheduled_at, p.job_id),
    p.trigger = 0 AND p.due_at + j.grace_us < :now,
    CASE WHEN j.id IS NULL THEN 3
        WHEN p.due_at > :now AND j.at_most_once THEN 4
        WHEN j.concurrency IS NULL THEN 0
        WHEN p.due_at > :now
            AND (SELECT count(*) FROM running AS r WHERE r.job_id = p.job_id) >= j.concurrency THEN 1
        WHEN j.concurrency > 1 THEN 2
        WHEN EXISTS (SELECT 1 FROM running AS r WHERE r.job_id = p.job_id) THEN 1
        WHEN p.due_at > :now AND p.after_at IS NOT NULL AND EXISTS (SELECT 1 FROM planned AS b
            WHERE b.scheduled_at = p.after_at AND b.job_id = p.job_id) THEN 4
        ELSE 0 END,
    CASE WHEN j.concurrency IS NULL THEN p.scheduled_at ELSE 0 END,
    p.trigger, p.fence, p.tries, max(p.due_at, :now) + j.timeout_us, j.version, j.tenant, j.spec,
    CASE WHEN p.due_at > :now AND p.after_at IS NOT NULL AND j.concurrency > 1 AND EXISTS (SELECT 1 FROM planned AS b
        WHERE b.scheduled_at = p.after_at AND b.job_id = p.job_id) THEN p.after_at END
FROM json_each(:keys) AS given
CROSS JOIN planned AS p ON p.scheduled_at = given.value ->> 1 AND p.job_id = given.value ->> 0
LEFT JOIN jobs AS j ON j.id = p.job_id
WHERE p.due_at <= :until AND p.lane / 128 IN (SELECT id FROM pools WHERE name IN (SELECT value FROM json_each(:pools)));

-- look_named_ready: ready and retrying runs by their keys, each between two slots; fate 5 take again, 3 deleted
INSERT INTO temp.candidate (job_id, scheduled_at, lane, due_at, rank, late, fate, slot, trigger, fence,
    tries, deadline_at, version, tenant, spec)
SELECT r.job_id, r.scheduled_at, r.lane, coalesce(r.was_due_at, r.due_at), 0, 0,
    CASE WHEN j.id IS NULL THEN 3 WHEN j.at_most_once AND r.due_at > :now THEN 4 ELSE 5 END, r.slot,
    r.trigger, r.fence, r.tries, max(coalesce(r.was_due_at, r.due_at), :now) + j.timeout_us, j.version, j.tenant, j.spec
FROM json_each(:places) AS given
CROSS JOIN running AS r ON r.job_id = given.value ->> 0 AND r.slot BETWEEN given.value ->> 2 AND given.value ->> 3
LEFT JOIN jobs AS j ON j.id = r.job_id
WHERE r.phase NOT IN (1, 2) AND r.scheduled_at = given.value ->> 1 AND r.due_at <= :until
    AND r.lane / 128 IN (SELECT id FROM pools WHERE name IN (SELECT value FROM json_each(:pools)));

-- taken_candidates: what a claim by keys has taken
SELECT job_id, scheduled_at FROM temp.candidate WHERE fate IN (0, 5);

-- still_waiting: those of some runs that wait to be taken, each with its slot between two, and when they are due
SELECT p.job_id, p.scheduled_at, p.due_at FROM json_each(:places) AS given
CROSS JOIN planned AS p ON p.scheduled_at = given.value ->> 1 AND p.job_id = given.value ->> 0
WHERE p.lane / 128 IN (SELECT id FROM pools WHERE name IN (SELECT value FROM json_each(:pools)))
UNION
SELECT r.job_id, r.scheduled_at, r.due_at FROM json_each(:places) AS given
CROSS JOIN running AS r ON r.job_id = given.value ->> 0 AND r.slot BETWEEN given.value ->> 2 AND given.value ->> 3
WHERE r.phase NOT IN (1, 2) AND r.scheduled_at = given.value ->> 1
    AND r.lane / 128 IN (SELECT id FROM pools WHERE name IN (SELECT value FROM json_each(:pools)));

-- pool_names: all pools
SELECT id, name FROM pools;

-- all_lanes: lanes of all pools in which runs wait (0) or are ready (1), with the first due time of each
WITH RECURSIVE waiting (lane) AS (
    SELECT min(lane) FROM planned WHERE lane >= 128
    UNION ALL
    SELECT (SELECT min(lane) FROM planned WHERE lane > waiting.lane) FROM waiting WHERE lane IS NOT NULL),
ready (lane) AS (
    SELECT min(lane) FROM running WHERE phase IN (0, 3) AND lane >= 128
    UNION ALL
    SELECT (SELECT min(lane) FROM running WHERE phase IN (0, 3) AND lane > ready.lane)
    FROM ready WHERE lane IS NOT NULL)
SELECT 0, lane, (SELECT min(due_at) FROM planned WHERE planned.lane = waiting.lane)
FROM waiting WHERE lane IS NOT NULL
UNION ALL
SELECT 1, lane, (SELECT min(due_at) FROM running WHERE phase IN (0, 3) AND running.lane = ready.lane)
FROM ready WHERE lane IS NOT NULL;

-- upcoming_planned: runs that wait in a lane, behind a place, up to an instant
SELECT lane, due_at, scheduled_at, job_id, fence, CASE WHEN :routed THEN
    (SELECT spec ->> '$.durability' FROM jobs WHERE jobs.id = planned.job_id) END
FROM planned WHERE lane = :lane AND due_at >= :due_at AND due_at <= :until
    AND (due_at, scheduled_at, job_id) > (:due_at, :scheduled_at, :job_id)
ORDER BY due_at, scheduled_at, job_id LIMIT :most;

-- upcoming_ready: ready and retrying runs of a lane, behind a place, up to an instant
SELECT lane, due_at, scheduled_at, job_id, fence, CASE WHEN :routed THEN
    (SELECT spec ->> '$.durability' FROM jobs WHERE jobs.id = running.job_id) END
FROM running WHERE phase IN (0, 3) AND lane = :lane AND due_at >= :due_at AND due_at <= :until
    AND (due_at, scheduled_at, job_id) > (:due_at, :scheduled_at, :job_id)
ORDER BY due_at, scheduled_at, job_id LIMIT :most;

-- trim_class: keep the share of a class, every tenant's lane in turn, beginning with the one whose turn it is
DELETE FROM temp.candidate WHERE rowid IN (
    SELECT rowid FROM temp.candidate WHERE lane % 128 / 32 = :class AND (fate IN (0, 3, 5) OR fate = 1 AND due_at <= :now)
    ORDER BY rank, lane < :turn, lane, due_at LIMIT -1 OFFSET :keep);

-- lanes_of_class: the lanes of a class with candidates
SELECT DISTINCT lane FROM temp.candidate WHERE lane % 128 / 32 = ? ORDER BY lane;

-- count_classes: how many candidates each class has
SELECT lane % 128 / 32, count(*) FROM temp.candidate WHERE fate IN (0, 3, 5) OR fate = 1 AND due_at <= ? GROUP BY 1;

-- count_class: how many candidates of a class can be taken or decided now; not those that wait for an earlier run, which
-- may be of a lower class that has not been looked at yet
SELECT count(*) FROM temp.candidate
WHERE lane % 128 / 32 = ? AND fate <> 4 AND behind_at IS NULL AND NOT (fate = 1 AND due_at > ?);

-- drop_class: look at a class again
DELETE FROM temp.candidate WHERE lane % 128 / 32 = ?;

-- late_candidates: what the misfire policy must judge
SELECT c.job_id, p.scheduled_at, p.lane, p.due_at, p.trigger, p.fence, p.tries
FROM temp.candidate AS c JOIN planned AS p ON p.scheduled_at = c.scheduled_at AND p.job_id = c.job_id
WHERE c.late = 1 ORDER BY c.due_at;

-- deleted_candidates: runs of jobs that are gone
SELECT c.job_id, c.scheduled_at FROM temp.candidate AS c WHERE c.fate = 3;

-- several_candidates: runs of jobs with several slots, in the order in which a class keeps them
SELECT c.rowid, c.job_id, c.scheduled_at, j.concurrency, c.behind_at FROM temp.candidate AS c
JOIN jobs AS j ON j.id = c.job_id WHERE c.fate = 2 ORDER BY c.job_id, c.lane % 128 / 32, c.rank;

-- limits_of: the limits of jobs
SELECT id, concurrency FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- slots_of: the slots of jobs that are taken
SELECT job_id, slot FROM running WHERE job_id IN (SELECT value FROM json_each(?));

-- set_slot: a candidate gets its slot
UPDATE temp.candidate SET fate = 0, slot = ? WHERE rowid = ?;

-- set_full: a candidate finds its job full
UPDATE temp.candidate SET fate = 1 WHERE rowid = ?;

-- set_not_yet: a candidate would go ahead of an earlier run of its job
UPDATE temp.candidate SET fate = 4 WHERE rowid = ?;

-- drop_candidate: a candidate that is decided
DELETE FROM temp.candidate WHERE job_id = ? AND scheduled_at = ?;

-- take_planned: those with a free slot become running; of several for one slot the oldest wins
INSERT INTO running (job_id, slot, scheduled_at, lane, due_at, trigger, fence, tries, phase, node_id, deadline_at,
    claimed_at, version)
SELECT job_id, slot, scheduled_at, lane, due_at, trigger, fence + 1, tries, 1, :node_id, deadline_at, :now, version
FROM temp.candidate WHERE fate = 0 ORDER BY job_id, slot, scheduled_at
ON CONFLICT DO NOTHING;

-- mark_losers: candidates that lost their slot to an older run in the same claim
UPDATE temp.candidate SET fate = 1 WHERE fate = 0 AND NOT EXISTS (
    SELECT 1 FROM running AS r WHERE r.job_id = candidate.job_id AND r.slot = candidate.slot
        AND r.scheduled_at = candidate.scheduled_at);

-- drop_taken: what is running is no longer planned
DELETE FROM planned WHERE (scheduled_at, job_id) IN (SELECT scheduled_at, job_id FROM temp.candidate WHERE fate = 0);

-- take_ready: ready and retrying runs go on under the next fence; what was put off is due when it was before
UPDATE running SET phase = 1, node_id = :node_id, fence = running.fence + 1, claimed_at = :now, version = c.version,
    deadline_at = c.deadline_at, due_at = c.due_at, was_due_at = NULL
FROM temp.candidate AS c WHERE c.fate = 5 AND running.job_id = c.job_id AND running.slot = c.slot;

-- full_candidates: due runs that found their job full
SELECT c.job_id, p.scheduled_at, p.lane, p.due_at, p.trigger, p.fence, p.tries, j.version, j.spec
FROM temp.candidate AS c JOIN planned AS p ON p.scheduled_at = c.scheduled_at AND p.job_id = c.job_id
JOIN jobs AS j ON j.id = c.job_id WHERE c.fate = 1 AND c.due_at <= ? ORDER BY c.job_id, p.scheduled_at;

-- claimed_runs: what was taken, as one text, so that rows do not travel one by one
SELECT '[' || group_concat('[' || job_id || ',' || slot || ',' || scheduled_at || ',' || due_at || ','
    || (fence + 1) || ',' || tries || ',' || trigger || ',' || deadline_at || ',' || version || ','
    || json_quote(tenant) || ',' || spec || ']', ',') || ']'
FROM temp.candidate WHERE fate IN (0, 5);

-- scheduled_waiting: scheduled runs of jobs that wait for a slot
SELECT job_id, scheduled_at FROM blocked WHERE job_id IN (SELECT value FROM json_each(?)) AND rank = 0
ORDER BY job_id, scheduled_at;

-- caught_up_waiting: runs of jobs that make up for missed times and wait for a slot
SELECT job_id, scheduled_at FROM blocked
WHERE job_id IN (SELECT value FROM json_each(?)) AND rank = 1 AND trigger = 3
ORDER BY job_id, scheduled_at;

-- add_blocked: a run waits for a slot
INSERT INTO blocked (job_id, rank, scheduled_at, lane, due_at, trigger, fence, tries)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- take_blocked: a waiting run leaves the queue
DELETE FROM blocked WHERE job_id = ? AND scheduled_at = ?
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- take_blocked_rows: waiting runs leave the queue; says which were there
DELETE FROM blocked WHERE (job_id, scheduled_at) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
RETURNING job_id, scheduled_at, lane, due_at, trigger, fence, tries;

-- take_planned_row: a planned run leaves the plan
DELETE FROM planned WHERE scheduled_at = ? AND job_id = ?
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- take_planned_rows: planned runs leave the plan; says which were there
DELETE FROM planned WHERE (scheduled_at, job_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
RETURNING job_id, scheduled_at;

-- take_idle_row: a ready or retrying run leaves its slot
DELETE FROM running WHERE job_id = ? AND scheduled_at = ? AND phase IN (0, 2, 3)
RETURNING scheduled_at, lane, coalesce(was_due_at, due_at), trigger, fence, tries;

-- to_background: late runs go on in the background class
UPDATE planned SET lane = lane / 128 * 128 + 96 + lane % 32, trigger = 3
WHERE (scheduled_at, job_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?));

-- drop_behind: younger runs of the same job in the background wait for the next claim, so the oldest goes first
DELETE FROM temp.candidate WHERE job_id = ? AND lane % 128 / 32 = 3;

-- ask_cancel: ask the workers to cancel what a job runs
UPDATE running SET cancel = 1 WHERE job_id = ? AND phase = 1;

-- hold_slots: there is one writer, so nobody frees a slot meanwhile
SELECT 1 WHERE ? IS NULL;

-- holders_of: the runs that hold the first slots of jobs
SELECT job_id, scheduled_at FROM running
WHERE job_id IN (SELECT value FROM json_each(?)) AND slot < 5 ORDER BY job_id, slot;
