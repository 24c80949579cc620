-- add_backfill: a backfill
INSERT INTO backfills (id, job_id, tenant, state, from_at, to_at, newest_first, pace_us, max_open, note, rule,
    present_rule, while_paused, mark, next_at, total, fed, already, succeeded, failed, skipped, cancelled, reason,
    created_at, updated_at, finished_at)
VALUES (:id, :job_id, :tenant, :state, :from_at, :to_at, :newest_first, :pace_us, :max_open, :note, :rule,
    :present_rule, :while_paused, :mark, :next_at, :total, :fed, :already, :succeeded, :failed, :skipped, :cancelled,
    :reason, :created_at, :updated_at, :finished_at);

-- put_backfill: what changes of a backfill
UPDATE backfills SET state = :state, present_rule = :present_rule, while_paused = :while_paused, mark = :mark,
    next_at = :next_at, fed = :fed, already = :already, succeeded = :succeeded, failed = :failed, skipped = :skipped,
    cancelled = :cancelled, reason = :reason, updated_at = :updated_at, finished_at = :finished_at
WHERE id = :id;

-- get_backfill: one backfill
SELECT id, job_id, tenant, state, from_at, to_at, newest_first, pace_us, max_open, note, rule, present_rule,
    while_paused, mark, next_at, total, fed, already, succeeded, failed, skipped, cancelled, reason, created_at,
    updated_at, finished_at
FROM backfills WHERE id = ?1;

-- lock_backfill: one backfill, held until the end
SELECT id, job_id, tenant, state, from_at, to_at, newest_first, pace_us, max_open, note, rule, present_rule,
    while_paused, mark, next_at, total, fed, already, succeeded, failed, skipped, cancelled, reason, created_at,
    updated_at, finished_at
FROM backfills WHERE id = ?1;

-- backfills_page: backfills of a tenant, newest first
SELECT id, job_id, tenant, state, from_at, to_at, newest_first, pace_us, max_open, note, rule, present_rule,
    while_paused, mark, next_at, total, fed, already, succeeded, failed, skipped, cancelled, reason, created_at,
    updated_at, finished_at
FROM backfills WHERE tenant = ?1 AND id < ?2 ORDER BY tenant DESC, id DESC LIMIT ?3;

-- backfills_page_of: backfills of a job, newest first
SELECT id, job_id, tenant, state, from_at, to_at, newest_first, pace_us, max_open, note, rule, present_rule,
    while_paused, mark, next_at, total, fed, already, succeeded, failed, skipped, cancelled, reason, created_at,
    updated_at, finished_at
FROM backfills WHERE tenant = ?1 AND job_id = ?2 AND id < ?3 ORDER BY job_id DESC, id DESC LIMIT ?4;

-- unfinished_backfills: backfills with something to feed or to count, after an id
SELECT id FROM backfills WHERE finished_at IS NULL AND id > ?1
    AND NOT (state = 1 AND fed = succeeded + failed + skipped + cancelled) ORDER BY id LIMIT ?2;

-- open_backfill_of: a job's backfill that still feeds, or could
SELECT id FROM backfills WHERE tenant = ?1 AND job_id = ?2 AND finished_at IS NULL AND state IN (0, 1) LIMIT 1;

-- count_unfinished: how many backfills of a tenant are not over, up to a bound
SELECT count(*) FROM (SELECT 1 FROM backfills WHERE tenant = ?1 AND finished_at IS NULL LIMIT ?2) AS few;

-- feed_runs: runs at times for which the job has none yet, wherever it might be; says at which
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
SELECT t.value, :job_id, :lane, :due_at + t.key + 1, 2, 0, 0 FROM json_each(:times) AS t
WHERE NOT EXISTS (SELECT 1 FROM planned AS p WHERE p.scheduled_at = t.value AND p.job_id = :job_id)
    AND t.value NOT IN (SELECT r.scheduled_at FROM running AS r WHERE r.job_id = :job_id)
    AND t.value NOT IN (SELECT b.scheduled_at FROM blocked AS b WHERE b.job_id = :job_id)
    AND NOT EXISTS (SELECT 1 FROM dead AS d WHERE d.job_id = :job_id AND d.scheduled_at = t.value)
    AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.job_id = :job_id AND h.scheduled_at = t.value)
ON CONFLICT DO NOTHING RETURNING scheduled_at;

-- add_backfill_run: a run of a backfill that is to be counted when it ends
INSERT INTO backfill_runs (backfill_id, scheduled_at) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- backfill_runs_of: runs of a backfill that were not counted yet
SELECT scheduled_at FROM backfill_runs WHERE backfill_id = ?1 ORDER BY scheduled_at LIMIT ?2;

-- drop_backfill_runs: runs of a backfill that were counted
DELETE FROM backfill_runs WHERE backfill_id = ?1 AND scheduled_at IN (SELECT value FROM json_each(?2));

-- last_states: the last that history says of some runs of a job
SELECT asked.value, (SELECT h.state FROM history AS h WHERE h.job_id = ?1 AND h.scheduled_at = asked.value
    ORDER BY h.attempt DESC LIMIT 1) FROM json_each(?2) AS asked;

-- take_fed: planned runs of a backfill at some times
DELETE FROM planned WHERE job_id = ?1 AND scheduled_at IN (SELECT value FROM json_each(?2)) AND trigger = 2
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- take_idle_fed: runs of a backfill at some times that have a slot and that nobody executes
DELETE FROM running WHERE job_id = ?1 AND phase IN (0, 3) AND trigger = 2 AND scheduled_at IN (SELECT value FROM json_each(?2))
RETURNING scheduled_at, lane, coalesce(was_due_at, due_at), trigger, fence, tries;

-- take_waiting: runs of a backfill at some times that wait for a slot
DELETE FROM blocked WHERE job_id = ?1 AND rank = 1 AND scheduled_at IN (SELECT value FROM json_each(?2)) AND trigger = 2
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- end_backfills_of: the backfills of a job that goes end with it; says which
UPDATE backfills SET state = 3, reason = :reason, updated_at = :now, finished_at = :now
WHERE tenant = :tenant AND job_id = :job_id AND finished_at IS NULL RETURNING id;

-- forget_backfill_runs: nothing more is counted for some backfills
DELETE FROM backfill_runs WHERE backfill_id IN (SELECT value FROM json_each(?1));

-- purge_backfills: forget backfills that ended long ago
DELETE FROM backfills WHERE id IN (SELECT id FROM backfills WHERE finished_at < ?1 ORDER BY finished_at LIMIT ?2);
