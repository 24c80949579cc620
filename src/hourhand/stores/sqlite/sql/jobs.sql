-- pool_id: the number of a pool
SELECT id FROM pools WHERE name = ?;

-- add_pool: give a pool its number
INSERT INTO pools (name) VALUES (?) RETURNING id;

-- taken_ids: which of these ids exist or existed
SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(?1))
UNION ALL SELECT job_id FROM versions WHERE version = 1 AND job_id IN (SELECT value FROM json_each(?1));

-- taken_keys: which of these keys a tenant uses
SELECT key FROM jobs WHERE tenant = ? AND key IN (SELECT value FROM json_each(?));

-- add_job: one job
INSERT INTO jobs (id, tenant, key, name, version, version_from, paused, note, paused_until, clock_id, since,
    until, once_at, attend_at, created_at, updated_at, lane, concurrency, at_most_once, grace_us,
    timeout_us, spec, rate)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- replace_job: the present version of a job becomes another
UPDATE jobs SET key = :key, name = :name, version = :version, version_from = :version_from, paused = :paused,
    note = :note, paused_until = :paused_until, clock_id = :clock_id, since = :since, until = :until,
    once_at = :once_at, attend_at = :attend_at, updated_at = :updated_at, lane = :lane,
    concurrency = :concurrency, at_most_once = :at_most_once, grace_us = :grace_us,
    timeout_us = :timeout_us, spec = :spec, rate = :rate
WHERE id = :id;

-- drop_job: remove a job
DELETE FROM jobs WHERE id = ?;

-- get_job: one job by id
SELECT * FROM job_records WHERE id = ?;

-- get_jobs: jobs by id
SELECT * FROM job_records WHERE id IN (SELECT value FROM json_each(?));

-- lock_job: one job by id; there is one writer, so nobody else changes it
SELECT * FROM job_records WHERE id = ?;

-- job_by_key: one job by key
SELECT * FROM job_records WHERE id = (SELECT id FROM jobs WHERE tenant = ? AND key = ?);

-- jobs_by_name: jobs with a name
SELECT * FROM job_records WHERE id IN (SELECT id FROM jobs WHERE tenant = ? AND name = ?) ORDER BY id LIMIT ?;

-- jobs_page: jobs of a tenant, newest first
SELECT * FROM job_records WHERE id < ? AND tenant = ? ORDER BY id DESC LIMIT ?;

-- jobs_with_text: of the next jobs of a tenant those whose text holds another, newest first
SELECT * FROM (SELECT * FROM job_records WHERE id < ?1 AND tenant = ?2 ORDER BY id DESC LIMIT ?4)
WHERE instr(spec, ?3) > 0 ORDER BY id DESC LIMIT ?5;

-- look_end: how many the next jobs of a tenant are, up to a bound, and the last of them
SELECT count(*), min(id) FROM (SELECT id FROM jobs WHERE id < ? AND tenant = ? ORDER BY id DESC LIMIT ?);

-- paused_page: paused jobs of a tenant, newest first
SELECT * FROM job_records WHERE id < ? AND tenant = ? AND paused = 1 ORDER BY id DESC LIMIT ?;

-- set_page: jobs of a set, newest first
SELECT r.* FROM job_sets AS s JOIN job_records AS r ON r.id = s.job_id AND r.tenant = s.tenant
WHERE s.job_id < ? AND s.tenant = ? AND s.set_name = ? ORDER BY s.job_id DESC LIMIT ?;

-- count_of_tenant: jobs of a tenant, up to a bound
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = ? LIMIT ?);

-- count_paused: paused jobs of a tenant, up to a bound
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = ? AND paused = 1 LIMIT ?);

-- count_named: jobs whose name begins so, up to a bound
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = ? AND name >= ? AND name < ? LIMIT ?);

-- count_in_set: jobs of a set, up to a bound
SELECT count(*) FROM (SELECT 1 FROM job_sets WHERE tenant = ? AND set_name = ? LIMIT ?);

-- add_to_set: jobs that are applied from a set of files
INSERT INTO job_sets (tenant, set_name, job_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- drop_from_set: a job leaves its set
DELETE FROM job_sets WHERE tenant = ? AND set_name = ? AND job_id = ?;

-- named_page: jobs whose name begins so, newest first
SELECT r.* FROM (
    SELECT id FROM jobs WHERE tenant = :tenant AND +id < :before AND name >= :low AND name < :high ORDER BY +id DESC LIMIT :limit) AS n
CROSS JOIN job_records AS r ON r.id = n.id ORDER BY r.id DESC;

-- failing_page: jobs with something in dead letters or retrying, newest first; leaps from job to job, however many letters each has
WITH RECURSIVE letters (job_id) AS (
    SELECT max(job_id) FROM dead WHERE job_id < ?1
    UNION ALL
    SELECT (SELECT max(dead.job_id) FROM dead WHERE dead.job_id < letters.job_id) FROM letters
    WHERE letters.job_id IS NOT NULL),
failing (job_id) AS (
    SELECT * FROM (SELECT l.job_id FROM letters AS l CROSS JOIN jobs AS j ON j.id = l.job_id WHERE j.tenant = ?2 LIMIT ?3)
    UNION
    SELECT job_id FROM running WHERE phase = 3 AND job_id < ?1)
SELECT r.* FROM failing AS f CROSS JOIN job_records AS r ON r.id = f.job_id WHERE +r.tenant = ?2 ORDER BY r.id DESC LIMIT ?3;

-- over_versions: versions of a job that are over
SELECT version, version_from, until, paused, deleted, note, spec FROM versions WHERE job_id = ? ORDER BY version;

-- version_tenant: whose job this is or was
SELECT tenant FROM versions WHERE job_id = ? LIMIT 1;

-- add_version: keep a version that is over
INSERT INTO versions (job_id, version, tenant, version_from, until, paused, deleted, note, spec)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- find_clocks: the clocks of some rules, each in its segment
SELECT c.rule, c.segment, c.id FROM json_each(?) AS wanted
CROSS JOIN clocks AS c ON c.rule = wanted.value ->> 0 AND c.segment = wanted.value ->> 1;

-- lock_clocks: the clocks of some rules, each in its segment
SELECT c.rule, c.segment, c.id, c.next_at FROM json_each(?) AS wanted
CROSS JOIN clocks AS c ON c.rule = wanted.value ->> 0 AND c.segment = wanted.value ->> 1;

-- add_clock: a rule that this segment has not had
INSERT INTO clocks (segment, rule, next_at) VALUES (?, ?, ?);

-- clock_next: how far a clock is planned
SELECT next_at FROM clocks WHERE id = ?;

-- wake_clock: a sleeping clock gets a member again
UPDATE clocks SET next_at = ? WHERE id = ?;

-- add_member: a job joins its clock
INSERT INTO members (clock_id, job_id, lane, jitter_us, since, until, policy, grace_us, catch_up)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- drop_member: a job leaves its clock
DELETE FROM members WHERE clock_id = ? AND job_id = ?;

-- add_planned: runs that no rule computes
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- add_scheduled: runs that are written outside a clock's own planning; after_at: the time before, where that is near
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries, after_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- lock_planned: there is one writer, so no claim has any of these in hand
SELECT 1 WHERE ?1 IS NULL AND ?2 IS NULL;

-- drop_planned: unstarted runs of a job at computed times; says which were there
DELETE FROM planned WHERE job_id = ? AND scheduled_at IN (SELECT value FROM json_each(?))
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- move_planned: unstarted runs of a job at computed times change lane and due time
UPDATE planned SET lane = m.value ->> 1, due_at = m.value ->> 2 FROM json_each(:moves) AS m
WHERE planned.job_id = :job_id AND planned.scheduled_at = m.value ->> 0;

-- planned_beside: unstarted runs of a job that no rule computes
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM planned
WHERE job_id = ? AND trigger <> 0 ORDER BY scheduled_at;

-- move_running: claimable and later rows of a job change lane; background ones stay such
UPDATE running SET lane = CASE WHEN lane % 128 / 32 = 3 THEN :background ELSE :lane END WHERE job_id = :job_id;

-- move_blocked: waiting rows of a job change lane; background ones stay such
UPDATE blocked SET lane = CASE WHEN lane % 128 / 32 = 3 THEN :background ELSE :lane END WHERE job_id = :job_id;

-- newest_run: the newest nominal time of a job that ran or that somebody may hold
SELECT max(scheduled_at) FROM (
    SELECT max(scheduled_at) AS scheduled_at FROM running WHERE job_id = :job_id
    UNION ALL SELECT max(scheduled_at) FROM blocked WHERE job_id = :job_id
    UNION ALL SELECT max(scheduled_at) FROM history WHERE job_id = :job_id
    UNION ALL SELECT max(scheduled_at) FROM dead WHERE job_id = :job_id);

-- run_exists: whether a run is anywhere
SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id
UNION ALL SELECT 1 FROM running WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM blocked WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM waiting WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM history WHERE job_id = :job_id AND scheduled_at = :scheduled_at
LIMIT 1;

-- run_is_live: whether a run has not ended
SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id
UNION ALL SELECT 1 FROM running WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM blocked WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM waiting WHERE job_id = :job_id AND scheduled_at = :scheduled_at
LIMIT 1;

-- jobs_to_tend: jobs that want tending
SELECT id FROM jobs WHERE attend_at <= ? ORDER BY attend_at LIMIT ?;

-- next_attend: when the next job wants tending
SELECT min(attend_at) FROM jobs WHERE attend_at IS NOT NULL;

-- attend_later: when to tend a job next
UPDATE jobs SET attend_at = ? WHERE id = ?;

-- forget_clock: a job that has had its last time is no member any more
UPDATE jobs SET clock_id = NULL, rate = 0 WHERE id = ?;

-- waiting_beside: how many runs of a job that no rule computes wait, without those of backfills
SELECT (SELECT count(*) FROM planned WHERE job_id = :job_id AND trigger <> 0 AND trigger <> 2)
    + (SELECT count(*) FROM blocked WHERE job_id = :job_id AND rank = 1 AND trigger <> 2);

-- request_key: the run that a request with this key made
SELECT scheduled_at FROM request_keys WHERE job_id = ? AND key = ?;

-- add_request_key: remember the run that a request made
INSERT INTO request_keys (job_id, key, scheduled_at, made_at) VALUES (?, ?, ?, ?);

-- cancel_running_of: ask the workers to cancel a job's runs
UPDATE running SET cancel = 1 WHERE job_id = ? AND phase = 1;

-- drop_blocked_of: a job's waiting runs; says which were there
DELETE FROM blocked WHERE job_id = ? RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- drop_idle_of: a job's runs that are not under way; says which were there
DELETE FROM running WHERE job_id = ? AND phase IN (0, 3)
RETURNING scheduled_at, lane, coalesce(was_due_at, due_at), trigger, fence, tries;

-- drop_reported_of: a job's runs that wait for their reports; says which were there
DELETE FROM running WHERE job_id = ? AND phase = 2
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- drop_dead_of: a deleted job's dead letters
DELETE FROM dead WHERE job_id = ?;

-- add_ending: runs that end without an attempt of their own
INSERT INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at,
    version, worker, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
