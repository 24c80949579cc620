-- pool_id: the number of a pool
SELECT id FROM pools WHERE name = $1;

-- add_pool: give a pool its number
INSERT INTO pools (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id;

-- taken_ids: which of these ids exist or existed
SELECT id FROM jobs WHERE id = ANY ($1::bigint[])
UNION ALL SELECT job_id FROM versions WHERE version = 1 AND job_id = ANY ($1::bigint[]);

-- taken_keys: which of these keys a tenant uses
SELECT found.key FROM unnest($2::text[]) AS asked (key)
CROSS JOIN LATERAL (SELECT key FROM jobs WHERE tenant = $1 AND jobs.key = asked.key LIMIT 1) AS found;

-- add_job: one job
INSERT INTO jobs (id, tenant, key, name, version, version_from, paused, note, paused_until, clock_id, since,
    until, once_at, attend_at, created_at, updated_at, lane, concurrency, at_most_once, grace_us,
    timeout_us, spec, rate)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::smallint[],
    $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
    $15::bigint[], $16::bigint[], $17::integer[], $18::integer[], $19::smallint[], $20::bigint[],
    $21::bigint[], $22::text[], $23::bigint[]);

-- replace_job: the present version of a job becomes another
UPDATE jobs SET key = :key, name = :name, version = :version, version_from = :version_from, paused = :paused,
    note = :note, paused_until = :paused_until, clock_id = :clock_id, since = :since, until = :until,
    once_at = :once_at, attend_at = :attend_at, updated_at = :updated_at, lane = :lane,
    concurrency = :concurrency, at_most_once = :at_most_once, grace_us = :grace_us,
    timeout_us = :timeout_us, spec = :spec, rate = :rate
WHERE id = :id;

-- drop_job: remove a job
DELETE FROM jobs WHERE id = $1;

-- get_job: one job by id
SELECT * FROM job_records WHERE id = $1;

-- get_jobs: jobs by id
SELECT * FROM job_records WHERE id = ANY ($1::bigint[]);

-- lock_job: one job by id, held until the end
SELECT id, tenant, version, version_from, paused, note, paused_until, clock_id, since, until, once_at, attend_at,
    created_at, updated_at, lane, spec
FROM jobs WHERE id = $1 FOR UPDATE;

-- job_by_key: one job by key
SELECT * FROM job_records WHERE id = (SELECT id FROM jobs WHERE tenant = $1 AND key = $2);

-- jobs_by_name: jobs with a name
SELECT * FROM job_records WHERE id = ANY (ARRAY(
    SELECT id FROM jobs WHERE tenant = $1 AND name >= $2 AND name <= $2 ORDER BY tenant, name, id LIMIT $3)) ORDER BY id;

-- jobs_page: jobs of a tenant, newest first. Compared as pairs, which only the index over both can serve: by id alone a
-- small tenant's would be looked for among everybody's
SELECT * FROM job_records WHERE (tenant, id) < ($2, $1) AND (tenant, id) >= ($2, 0)
ORDER BY tenant DESC, id DESC LIMIT $3;

-- jobs_with_text: of the next jobs of a tenant those whose text holds another, newest first
SELECT * FROM (
    SELECT * FROM job_records WHERE (tenant, id) < ($2, $1) AND (tenant, id) >= ($2, 0)
    ORDER BY tenant DESC, id DESC LIMIT $4::bigint) AS looked_at
WHERE position($3 IN spec) > 0 ORDER BY tenant DESC, id DESC LIMIT $5::bigint;

-- look_end: how many the next jobs of a tenant are, up to a bound, and the last of them
SELECT count(*), min(id) FROM (
    SELECT id FROM jobs WHERE (tenant, id) < ($2, $1) AND (tenant, id) >= ($2, 0)
    ORDER BY tenant DESC, id DESC LIMIT $3::bigint) AS looked_at;

-- paused_page: paused jobs of a tenant, newest first
SELECT * FROM job_records WHERE id < $1 AND tenant = $2 AND paused = 1 ORDER BY tenant DESC, id DESC LIMIT $3;

-- set_page: jobs of a set, newest first
SELECT r.* FROM (
    SELECT job_id FROM job_sets WHERE job_id < $1 AND tenant = $2 AND set_name = $3
    ORDER BY tenant DESC, set_name DESC, job_id DESC LIMIT $4) AS s
JOIN job_records AS r ON r.id = s.job_id ORDER BY r.id DESC;

-- count_of_tenant: jobs of a tenant, up to a bound
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = $1 LIMIT $2::bigint) AS counted;

-- count_paused: paused jobs of a tenant, up to a bound
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = $1 AND paused = 1 LIMIT $2::bigint) AS counted;

-- count_named: jobs whose name begins so, up to a bound
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = $1 AND name >= $2 AND name < $3
    ORDER BY tenant, name LIMIT $4::bigint) AS counted;

-- count_in_set: jobs of a set, up to a bound
SELECT count(*) FROM (SELECT 1 FROM job_sets WHERE tenant = $1 AND set_name = $2 LIMIT $3::bigint) AS counted;

-- add_to_set: jobs that are applied from a set of files
INSERT INTO job_sets (tenant, set_name, job_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING;

-- drop_from_set: a job leaves its set
DELETE FROM job_sets WHERE tenant = $1 AND set_name = $2 AND job_id = $3;

-- named_page: jobs whose name begins so, newest first. The limit is there for the planner, which else may walk through all
-- jobs by their ids; so many there are not
WITH named AS MATERIALIZED (
    SELECT id FROM jobs WHERE tenant = :tenant AND name >= :low AND name < :high ORDER BY tenant, name LIMIT 1000000)
SELECT * FROM job_records WHERE id = ANY (ARRAY(
    SELECT id FROM named WHERE id < :before::bigint ORDER BY id DESC LIMIT :limit::bigint))
ORDER BY id DESC;

-- failing_page: jobs with something in dead letters or retrying, newest first
WITH RECURSIVE letters (job_id) AS (
    (SELECT job_id FROM dead WHERE tenant = $2 AND job_id < $1 ORDER BY tenant DESC, job_id DESC LIMIT 1)
    UNION ALL
    SELECT older.job_id FROM letters CROSS JOIN LATERAL (
        SELECT dead.job_id FROM dead WHERE tenant = $2 AND dead.job_id < letters.job_id
        ORDER BY tenant DESC, dead.job_id DESC LIMIT 1) AS older),
failing AS (
    (SELECT job_id FROM letters WHERE EXISTS (SELECT 1 FROM jobs WHERE id = letters.job_id) LIMIT $3)
    UNION
    (SELECT DISTINCT r.job_id FROM running AS r WHERE phase = 3 AND job_id < $1
        AND (SELECT tenant FROM jobs WHERE id = r.job_id) = $2 ORDER BY r.job_id DESC LIMIT $3))
SELECT * FROM job_records WHERE id = ANY (ARRAY(SELECT job_id FROM failing ORDER BY job_id DESC LIMIT $3))
ORDER BY id DESC;

-- over_versions: versions of a job that are over
SELECT version, version_from, until, paused, deleted, note, spec FROM versions WHERE job_id = $1 ORDER BY version;

-- version_tenant: whose job this is or was
SELECT tenant FROM versions WHERE job_id = $1 LIMIT 1;

-- add_version: keep a version that is over
INSERT INTO versions (job_id, version, tenant, version_from, until, paused, deleted, note, spec)
SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[], $5::bigint[], $6::smallint[],
    $7::smallint[], $8::text[], $9::text[]);

-- find_clocks: the clocks of some rules, each in its segment
SELECT c.rule, c.segment, c.id
FROM (SELECT value ->> 0 AS rule, (value ->> 1)::integer AS segment FROM jsonb_array_elements($1::text::jsonb))
    AS wanted
CROSS JOIN LATERAL (
    SELECT rule, segment, id FROM clocks
    WHERE clocks.segment = wanted.segment AND clocks.rule = wanted.rule COLLATE "C" OFFSET 0) AS c;

-- lock_clocks: hold the clocks of some rules, each in its segment, in the order in which everybody locks clocks
SELECT c.rule, c.segment, c.id, c.next_at
FROM (SELECT value ->> 0 AS rule, (value ->> 1)::integer AS segment FROM jsonb_array_elements($1::text::jsonb)
    ORDER BY 2, (value ->> 0) COLLATE "C") AS wanted
CROSS JOIN LATERAL (
    SELECT rule, segment, id, next_at FROM clocks
    WHERE clocks.segment = wanted.segment AND clocks.rule = wanted.rule COLLATE "C" FOR NO KEY UPDATE) AS c;

-- add_clock: a rule that this segment has not had
INSERT INTO clocks (segment, rule, next_at)
SELECT * FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS new (segment, rule, next_at) ORDER BY 1, 2
ON CONFLICT DO NOTHING;

-- clock_next: how far a clock is planned
SELECT next_at FROM clocks WHERE id = $1;

-- wake_clock: a sleeping clock gets a member again
UPDATE clocks SET next_at = $1 WHERE id = $2;

-- add_member: a job joins its clock
INSERT INTO members (clock_id, job_id, lane, jitter_us, since, until, policy, grace_us, catch_up)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::text[], $8::bigint[], $9::integer[]);

-- drop_member: a job leaves its clock
DELETE FROM members WHERE clock_id = $1 AND job_id = $2;

-- add_planned: runs that no rule computes
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::smallint[], $6::integer[],
    $7::smallint[])
ON CONFLICT DO NOTHING;

-- add_scheduled: runs that are written outside a clock's own planning; after_at: the time before, where that is near
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries, after_at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::smallint[], $6::integer[],
    $7::smallint[], $8::bigint[])
ON CONFLICT DO NOTHING;

-- lock_planned: wait for claims that have unstarted runs of a job at computed times in hand, and hold the others
SELECT scheduled_at FROM planned WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[])
ORDER BY scheduled_at FOR UPDATE;

-- drop_planned: unstarted runs of a job at computed times; says which were there
DELETE FROM planned WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[])
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- move_planned: unstarted runs of a job at computed times change lane and due time
UPDATE planned SET lane = (m.value ->> 1)::integer, due_at = (m.value ->> 2)::bigint
FROM jsonb_array_elements(:moves::text::jsonb) AS m
WHERE planned.job_id = :job_id AND planned.scheduled_at = (m.value ->> 0)::bigint;

-- planned_beside: unstarted runs of a job that no rule computes
SELECT scheduled_at, lane, due_at, trigger, fence, tries FROM planned
WHERE job_id = $1 AND trigger <> 0 ORDER BY scheduled_at;

-- move_running: claimable and later rows of a job change lane; background ones stay such
UPDATE running SET lane = CASE WHEN lane % 128 / 32 = 3 THEN :background::integer ELSE :lane::integer END
WHERE job_id = :job_id;

-- move_blocked: waiting rows of a job change lane; background ones stay such
UPDATE blocked SET lane = CASE WHEN lane % 128 / 32 = 3 THEN :background::integer ELSE :lane::integer END
WHERE job_id = :job_id;

-- newest_run: the newest nominal time of a job that ran or that somebody may hold
SELECT max(scheduled_at) FROM (
    SELECT max(scheduled_at) AS scheduled_at FROM running WHERE job_id = :job_id
    UNION ALL SELECT max(scheduled_at) FROM blocked WHERE job_id = :job_id
    UNION ALL (SELECT scheduled_at FROM history WHERE job_id = :job_id ORDER BY scheduled_at DESC LIMIT 1)
    UNION ALL SELECT max(scheduled_at) FROM dead WHERE job_id = :job_id) AS runs;

-- run_exists: whether a run is anywhere
SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id
UNION ALL SELECT 1 FROM running WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM blocked WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM waiting WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM history WHERE job_id = :job_id AND scheduled_at = :scheduled_at
    AND bucket IN (0, (:scheduled_at / 86400000000)::integer)
LIMIT 1;

-- run_is_live: whether a run has not ended
SELECT 1 FROM planned WHERE scheduled_at = :scheduled_at AND job_id = :job_id
UNION ALL SELECT 1 FROM running WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM blocked WHERE job_id = :job_id AND scheduled_at = :scheduled_at
UNION ALL SELECT 1 FROM waiting WHERE job_id = :job_id AND scheduled_at = :scheduled_at
LIMIT 1;

-- jobs_to_tend: jobs that want tending
SELECT id FROM jobs WHERE attend_at <= $1 ORDER BY attend_at LIMIT $2;

-- next_attend: when the next job wants tending
SELECT min(attend_at) FROM jobs WHERE attend_at IS NOT NULL;

-- attend_later: when to tend a job next
UPDATE jobs SET attend_at = $1 WHERE id = $2;

-- forget_clock: a job that has had its last time is no member any more
UPDATE jobs SET clock_id = NULL, rate = 0 WHERE id = $1;

-- waiting_beside: how many runs of a job that no rule computes wait, without those of backfills
SELECT (SELECT count(*) FROM planned WHERE job_id = :job_id AND trigger <> 0 AND trigger <> 2)
    + (SELECT count(*) FROM blocked WHERE job_id = :job_id AND rank = 1 AND trigger <> 2);

-- request_key: the run that a request with this key made
SELECT scheduled_at FROM request_keys WHERE job_id = $1 AND key = $2;

-- add_request_key: remember the run that a request made
INSERT INTO request_keys (job_id, key, scheduled_at, made_at)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]);

-- cancel_running_of: ask the workers to cancel a job's runs
UPDATE running SET cancel = 1 WHERE job_id = $1 AND phase BETWEEN 1 AND 1;

-- drop_blocked_of: a job's waiting runs; says which were there
DELETE FROM blocked WHERE job_id = $1 RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- drop_idle_of: a job's runs that are not under way; says which were there
DELETE FROM running WHERE job_id = $1 AND phase NOT BETWEEN 1 AND 2
RETURNING scheduled_at, lane, coalesce(was_due_at, due_at), trigger, fence, tries;

-- drop_reported_of: a job's runs that wait for their reports; says which were there
DELETE FROM running WHERE job_id = $1 AND phase BETWEEN 2 AND 2
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- drop_dead_of: a deleted job's dead letters
DELETE FROM dead WHERE job_id = $1;

-- add_ending: runs that end without an attempt of their own
INSERT INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at,
    version, worker, detail, bucket)
SELECT e.*, CASE WHEN abs(e.scheduled_at - e.finished_at) < 86400000000 THEN e.scheduled_at / 86400000000 ELSE 0 END
FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::smallint[], $5::smallint[], $6::smallint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::integer[], $11::text[], $12::text[])
    AS e (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version, worker,
        detail);
