-- lease_of: until when a node's lease runs
SELECT lease_until FROM nodes WHERE id = $1;

-- waiting_lanes: lanes of a pool in which runs wait, with the first due time of each
WITH RECURSIVE front (lane, due_at) AS (
    (SELECT lane, due_at FROM planned WHERE lane >= :first::integer AND lane < :last::integer
    ORDER BY lane, due_at LIMIT 1)
    UNION ALL
    SELECT p.lane, p.due_at FROM front CROSS JOIN LATERAL (
        SELECT lane, due_at FROM planned WHERE planned.lane > front.lane AND planned.lane < :last::integer
        ORDER BY lane, due_at LIMIT 1) AS p)
SELECT lane, due_at FROM front;

-- lanes: lanes of some pools in which runs wait (0) or are ready (1), with the first due time of each
WITH RECURSIVE pool AS (SELECT p.id * 128 AS first, p.id * 128 + 128 AS last FROM pools AS p WHERE p.name = ANY ($1::text[])),
front (kind, lane, due_at, last) AS (
    SELECT kinds.kind, found.lane, found.due_at, pool.last
    FROM pool CROSS JOIN (VALUES (0), (1)) AS kinds (kind) CROSS JOIN LATERAL (
        (SELECT lane, due_at FROM planned WHERE kinds.kind = 0 AND lane >= pool.first AND lane < pool.last
        ORDER BY lane, due_at LIMIT 1)
        UNION ALL
        (SELECT lane, due_at FROM running WHERE kinds.kind = 1 AND phase IN (0, 3) AND lane >= pool.first
            AND lane < pool.last ORDER BY lane, due_at LIMIT 1)) AS found
    UNION ALL
    SELECT front.kind, found.lane, found.due_at, front.last
    FROM front CROSS JOIN LATERAL (
        (SELECT lane, due_at FROM planned WHERE front.kind = 0 AND planned.lane > front.lane
            AND planned.lane < front.last ORDER BY lane, due_at LIMIT 1)
        UNION ALL
        (SELECT lane, due_at FROM running WHERE front.kind = 1 AND phase IN (0, 3) AND running.lane > front.lane
            AND running.lane < front.last ORDER BY lane, due_at LIMIT 1)) AS found)
SELECT kind, lane, due_at FROM front;

-- later_moments: the first run of each lane that is due after an instant
SELECT found.due_at FROM unnest(:kinds::integer[], :lanes::integer[]) AS asked (kind, lane)
CROSS JOIN LATERAL (
    (SELECT due_at FROM planned WHERE asked.kind = 0 AND planned.lane = asked.lane AND due_at > :after::bigint
    ORDER BY due_at LIMIT 1)
    UNION ALL
    (SELECT due_at FROM running WHERE asked.kind = 1 AND phase IN (0, 3) AND running.lane = asked.lane
        AND due_at > :after::bigint ORDER BY due_at LIMIT 1)) AS found;

-- part planned_fates: take those of the runs looked at that have a free slot; answers them and what needs a decision.
-- Jobs are looked up one by one: joined, a lane with a million runs let the planner read all jobs for each claim.
-- fate 0 taken, 1 job full, 2 several slots, 3 deleted, 4 not yet, 6 late. Not yet: at most once, or the run before it
-- still waits, which a lock that somebody has on that one does not hide; with several slots `behind_at` says so.
-- Whoever was faster to a slot is only seen at the insertion: `inserted` is then less than the number of runs with
-- fate 0, and put_back mends it. A run that was edited between the statement's beginning and its lock has a place that
-- the statement does not see: `removed` is then less, the run still stands in the plan, and all must be done again.
judged AS MATERIALIZED (
    SELECT l.*, j.version, j.tenant, j.spec, greatest(l.due_at, :now::bigint) + j.timeout_us AS deadline_at,
        CASE WHEN j.concurrency IS NULL THEN l.scheduled_at ELSE 0 END AS slot,
        CASE WHEN j.id IS NULL THEN 3
            WHEN l.trigger = 0 AND l.due_at + j.grace_us < :now::bigint THEN 6
            WHEN j.at_most_once = 1 AND l.due_at > :now::bigint THEN 4
            WHEN j.concurrency IS NULL THEN 0
            WHEN j.concurrency > 1 THEN 2
            WHEN EXISTS (SELECT 1 FROM running AS r WHERE r.job_id = l.job_id OFFSET 0) THEN 1
            WHEN l.after_at IS NULL OR l.due_at <= :now::bigint THEN 0
            WHEN EXISTS (SELECT 1 FROM planned AS b WHERE b.scheduled_at = l.after_at AND b.job_id = l.job_id OFFSET 0)
                THEN 4
            ELSE 0 END AS fate
    FROM looked AS l LEFT JOIN LATERAL (SELECT * FROM jobs WHERE jobs.id = l.job_id OFFSET 0) AS j ON true),
chosen AS MATERIALIZED (SELECT * FROM judged WHERE fate = 0 LIMIT :wanted::bigint),
taken AS (
    INSERT INTO running (job_id, slot, scheduled_at, lane, due_at, trigger, fence, tries, phase, node_id, deadline_at,
        claimed_at, version)
    SELECT job_id, slot, scheduled_at, lane, due_at, trigger, fence + 1, tries, 1, :node_id::bigint, deadline_at,
        :now::bigint, version
    FROM chosen ORDER BY job_id, slot, scheduled_at
    ON CONFLICT DO NOTHING RETURNING 1),
gone AS (DELETE FROM planned WHERE ctid = ANY (ARRAY(SELECT place FROM chosen)) RETURNING 1)
SELECT job_id, slot, scheduled_at, due_at, fence + 1, tries, trigger, deadline_at, version, tenant, spec, 0 AS fate,
    lane, NULL::bigint AS behind_at, (SELECT count(*) FROM taken) AS inserted, (SELECT count(*) FROM gone) AS removed
FROM chosen
UNION ALL
SELECT job_id, slot, scheduled_at, due_at, fence, tries, trigger, deadline_at, version, tenant, spec, fate, lane,
    CASE WHEN fate <> 2 OR after_at IS NULL OR due_at <= :now::bigint THEN NULL
        WHEN EXISTS (SELECT 1 FROM planned AS b WHERE b.scheduled_at = judged.after_at AND b.job_id = judged.job_id
            OFFSET 0) THEN after_at END, 0, 0
FROM judged WHERE fate > 0;

-- take_planned: take runs with a free slot, so many of each lane
WITH looked AS MATERIALIZED (
    SELECT p.* FROM unnest(:lanes::integer[], :due_ats::bigint[], :scheduled_ats::bigint[], :job_ids::bigint[],
        :uptos::bigint[], :limits::bigint[]) AS page (lane, due_at, scheduled_at, job_id, upto, most)
    CROSS JOIN LATERAL (
        SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries, after_at, planned.ctid AS place FROM planned
        WHERE planned.lane = page.lane AND planned.due_at <= page.upto
            AND (planned.due_at, planned.scheduled_at, planned.job_id) > (page.due_at, page.scheduled_at, page.job_id)
        ORDER BY planned.due_at, planned.scheduled_at, planned.job_id LIMIT page.most
        FOR UPDATE SKIP LOCKED) AS p),
{planned_fates};

-- take_newest: take runs with a free slot, so many of each lane: those that are due next, and of those that are due the
-- last; none of the latter whose job has the run before it still waiting
WITH ahead AS MATERIALIZED (
    SELECT p.* FROM unnest(:lanes::integer[]) AS page (lane)
    CROSS JOIN LATERAL (
        SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries, after_at, planned.ctid AS place FROM planned
        WHERE planned.lane = page.lane AND planned.due_at > :now::bigint AND planned.due_at <= :until::bigint
        ORDER BY planned.due_at, planned.scheduled_at, planned.job_id LIMIT :most::bigint
        FOR UPDATE SKIP LOCKED) AS p),
newest AS MATERIALIZED (
    SELECT p.* FROM unnest(:lanes::integer[]) AS page (lane)
    CROSS JOIN LATERAL (
        SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries, after_at, planned.ctid AS place FROM planned
        WHERE planned.lane = page.lane AND planned.due_at <= :now::bigint
        ORDER BY planned.due_at DESC, planned.scheduled_at DESC, planned.job_id DESC LIMIT :most::bigint
        FOR UPDATE SKIP LOCKED) AS p),
looked AS MATERIALIZED (
    SELECT * FROM ahead
    UNION ALL
    SELECT * FROM newest AS n WHERE n.after_at IS NULL OR NOT EXISTS (
        SELECT 1 FROM planned AS b WHERE b.scheduled_at = n.after_at AND b.job_id = n.job_id OFFSET 0)),
{planned_fates};

-- take_named: take runs with a free slot, by their keys
WITH looked AS MATERIALIZED (
    SELECT p.* FROM unnest(:job_ids::bigint[], :scheduled_ats::bigint[]) AS given (job_id, scheduled_at)
    CROSS JOIN LATERAL (
        SELECT job_id, scheduled_at, lane, due_at, trigger, fence, tries, after_at, planned.ctid AS place FROM planned
        WHERE planned.scheduled_at = given.scheduled_at AND planned.job_id = given.job_id
            AND planned.due_at <= :until::bigint
            AND planned.lane / 128 = ANY (ARRAY(SELECT id FROM pools WHERE name = ANY (:pools::text[])))
        FOR UPDATE SKIP LOCKED) AS p),
{planned_fates};

-- put_back: of runs that were taken, those that did not get their slot are planned again; says which. Each was
-- due or had no earlier one to wait for, so it needs no after_at any more.
WITH given AS (
    SELECT g.* FROM unnest(:job_ids::bigint[], :slots::bigint[], :scheduled_ats::bigint[], :due_ats::bigint[],
        :lanes::integer[], :fences::integer[], :triggers::smallint[], :tries::smallint[])
        AS g (job_id, slot, scheduled_at, due_at, lane, fence, trigger, tries)),
lost AS MATERIALIZED (
    SELECT * FROM given WHERE NOT EXISTS (
        SELECT 1 FROM running AS r WHERE r.job_id = given.job_id AND r.slot = given.slot
            AND r.scheduled_at = given.scheduled_at AND r.node_id = :node_id::bigint OFFSET 0)),
again AS (
    INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries)
    SELECT scheduled_at, job_id, lane, due_at, trigger, fence, tries FROM lost)
SELECT job_id, scheduled_at FROM lost;

-- take_given: take planned runs that were decided to go, each into its slot
WITH given AS (
    SELECT g.job_id, g.scheduled_at, g.slot, p.place, p.lane, p.due_at, p.trigger, p.fence, p.tries, j.version,
        greatest(p.due_at, :now::bigint) + j.timeout_us AS deadline_at
    FROM unnest(:job_ids::bigint[], :scheduled_ats::bigint[], :slots::bigint[]) AS g (job_id, scheduled_at, slot)
    CROSS JOIN LATERAL (
        SELECT lane, due_at, trigger, fence, tries, ctid AS place FROM planned
        WHERE planned.scheduled_at = g.scheduled_at AND planned.job_id = g.job_id OFFSET 0) AS p
    CROSS JOIN LATERAL (SELECT version, timeout_us FROM jobs WHERE jobs.id = g.job_id OFFSET 0) AS j),
taken AS (
    INSERT INTO running (job_id, slot, scheduled_at, lane, due_at, trigger, fence, tries, phase, node_id, deadline_at,
        claimed_at, version)
    SELECT job_id, slot, scheduled_at, lane, due_at, trigger, fence + 1, tries, 1, :node_id::bigint, deadline_at,
        :now::bigint, version
    FROM given ORDER BY job_id, slot, scheduled_at
    ON CONFLICT DO NOTHING
    RETURNING job_id, slot, scheduled_at, due_at, fence, tries, trigger, deadline_at, version),
gone AS (
    DELETE FROM planned WHERE ctid = ANY (ARRAY(
        SELECT p.place FROM taken CROSS JOIN LATERAL (
            SELECT ctid AS place FROM planned
            WHERE planned.scheduled_at = taken.scheduled_at AND planned.job_id = taken.job_id OFFSET 0) AS p)))
SELECT t.*, j.tenant, j.spec FROM taken AS t
CROSS JOIN LATERAL (SELECT tenant, spec FROM jobs WHERE jobs.id = t.job_id OFFSET 0) AS j;

-- part ready_fates: those of the runs looked at go on under the next fence; what was put off is due when it was before;
-- fate 0 taken, 3 deleted
judged AS MATERIALIZED (
    SELECT l.*, j.id AS known, j.version, j.tenant, j.spec,
        greatest(l.first_due_at, :now::bigint) + j.timeout_us AS deadline_at
    FROM looked AS l LEFT JOIN LATERAL (SELECT * FROM jobs WHERE jobs.id = l.job_id OFFSET 0) AS j ON true
    WHERE j.id IS NULL OR NOT (j.at_most_once = 1 AND l.due_at > :now::bigint)
    ORDER BY l.due_at LIMIT :wanted::bigint),
taken AS (
    UPDATE running SET phase = 1, node_id = :node_id::bigint, fence = running.fence + 1, claimed_at = :now::bigint,
        version = c.version, deadline_at = c.deadline_at, due_at = c.first_due_at, was_due_at = NULL
    FROM judged AS c WHERE c.known IS NOT NULL AND running.ctid = c.place
    RETURNING running.job_id, running.slot, running.scheduled_at, running.due_at, running.fence, running.tries,
        running.trigger, running.deadline_at, running.version, c.tenant, c.spec)
SELECT taken.*, 0 AS fate FROM taken
UNION ALL
SELECT job_id, slot, scheduled_at, due_at, 0, 0::smallint, 0::smallint, 0, 0, '', '', 3 FROM judged WHERE known IS NULL

-- take_ready: take ready and retrying runs, so many of each lane
WITH looked AS MATERIALIZED (
    SELECT r.* FROM unnest(:lanes::integer[]) AS page (lane) CROSS JOIN LATERAL (
        SELECT job_id, slot, lane, due_at, coalesce(was_due_at, due_at) AS first_due_at, scheduled_at, ctid AS place
        FROM running
        WHERE phase IN (0, 3) AND running.lane = page.lane AND running.due_at <= :until::bigint
        ORDER BY running.due_at LIMIT :most::bigint FOR UPDATE SKIP LOCKED) AS r),
{ready_fates};

-- take_named_ready: take ready and retrying runs by their keys, each between two slots. Their phases are written so that
-- the index over lanes cannot be meant.
WITH looked AS MATERIALIZED (
    SELECT r.* FROM unnest(:job_ids::bigint[], :scheduled_ats::bigint[], :lows::bigint[], :highs::bigint[])
        AS given (job_id, scheduled_at, low, high)
    CROSS JOIN LATERAL (
        SELECT job_id, slot, lane, due_at, coalesce(was_due_at, due_at) AS first_due_at, scheduled_at, ctid AS place
        FROM running
        WHERE phase NOT IN (1, 2) AND running.job_id = given.job_id AND running.slot BETWEEN given.low AND given.high
            AND running.scheduled_at = given.scheduled_at AND running.due_at <= :until::bigint
            AND running.lane / 128 = ANY (ARRAY(SELECT id FROM pools WHERE name = ANY (:pools::text[])))
        FOR UPDATE SKIP LOCKED) AS r),
{ready_fates};

-- still_waiting: those of some runs that wait to be taken, each with its slot between two, and when they are due
SELECT found.job_id, found.scheduled_at, found.due_at FROM jsonb_array_elements(:places::text::jsonb) AS given
CROSS JOIN LATERAL (
    (SELECT job_id, scheduled_at, due_at, lane FROM planned
    WHERE planned.scheduled_at = (given.value ->> 1)::bigint AND planned.job_id = (given.value ->> 0)::bigint LIMIT 1)
    UNION ALL
    (SELECT job_id, scheduled_at, due_at, lane FROM running
    WHERE phase NOT IN (1, 2) AND running.job_id = (given.value ->> 0)::bigint
        AND running.slot BETWEEN (given.value ->> 2)::bigint AND (given.value ->> 3)::bigint
        AND running.scheduled_at = (given.value ->> 1)::bigint LIMIT 1)) AS found
WHERE found.lane / 128 = ANY (ARRAY(SELECT id FROM pools
    WHERE name IN (SELECT value FROM jsonb_array_elements_text(:pools::text::jsonb))));

-- pool_names: all pools
SELECT id, name FROM pools;

-- all_lanes: lanes of all pools in which runs wait (0) or are ready (1), with the first due time of each
WITH RECURSIVE front (kind, lane, due_at) AS (
    SELECT kinds.kind, found.lane, found.due_at FROM (VALUES (0), (1)) AS kinds (kind) CROSS JOIN LATERAL (
        (SELECT lane, due_at FROM planned WHERE kinds.kind = 0 AND lane >= 128 ORDER BY lane, due_at LIMIT 1)
        UNION ALL
        (SELECT lane, due_at FROM running WHERE kinds.kind = 1 AND phase IN (0, 3) AND lane >= 128
        ORDER BY lane, due_at LIMIT 1)) AS found
    UNION ALL
    SELECT front.kind, found.lane, found.due_at FROM front CROSS JOIN LATERAL (
        (SELECT lane, due_at FROM planned WHERE front.kind = 0 AND planned.lane > front.lane
        ORDER BY lane, due_at LIMIT 1)
        UNION ALL
        (SELECT lane, due_at FROM running WHERE front.kind = 1 AND phase IN (0, 3) AND running.lane > front.lane
        ORDER BY lane, due_at LIMIT 1)) AS found)
SELECT kind, lane, due_at FROM front;

-- upcoming_planned: runs that wait in some lanes, each behind its place, up to an instant; so many of each
SELECT p.*, CASE WHEN :routed::boolean THEN
    (SELECT spec::json ->> 'durability' FROM jobs WHERE jobs.id = p.job_id) END AS durability
FROM unnest(:lanes::integer[], :due_ats::bigint[], :scheduled_ats::bigint[], :job_ids::bigint[])
    AS page (lane, due_at, scheduled_at, job_id)
CROSS JOIN LATERAL (
    SELECT lane, due_at, scheduled_at, job_id, fence FROM planned
    WHERE planned.lane = page.lane AND planned.due_at <= :until::bigint
        AND (planned.due_at, planned.scheduled_at, planned.job_id) > (page.due_at, page.scheduled_at, page.job_id)
    ORDER BY planned.due_at, planned.scheduled_at, planned.job_id LIMIT :most::bigint) AS p;

-- upcoming_ready: ready and retrying runs of some lanes, each behind its place, up to an instant; so many of each
SELECT p.*, CASE WHEN :routed::boolean THEN
    (SELECT spec::json ->> 'durability' FROM jobs WHERE jobs.id = p.job_id) END AS durability
FROM unnest(:lanes::integer[], :due_ats::bigint[], :scheduled_ats::bigint[], :job_ids::bigint[])
    AS page (lane, due_at, scheduled_at, job_id)
CROSS JOIN LATERAL (
    SELECT lane, due_at, scheduled_at, job_id, fence FROM running
    WHERE phase IN (0, 3) AND running.lane = page.lane AND running.due_at >= page.due_at
        AND running.due_at <= :until::bigint
        AND (running.due_at, running.scheduled_at, running.job_id) > (page.due_at, page.scheduled_at, page.job_id)
    ORDER BY running.due_at, running.scheduled_at, running.job_id LIMIT :most::bigint) AS p;

-- hold_slots: hold what some jobs run, so that nobody frees a slot meanwhile
SELECT job_id, slot FROM running WHERE job_id = ANY ($1::bigint[]) ORDER BY job_id, slot FOR NO KEY UPDATE;

-- try_jobs: those of some jobs whose slots no other claim gives out at this moment
SELECT job_id FROM unnest($1::bigint[]) AS wanted (job_id) WHERE pg_try_advisory_xact_lock(job_id);

-- hold_free_slots: hold what some jobs run and nobody else is about to change; a claim waits for nobody, since
-- those who finish hold their runs in an order of their own
SELECT job_id, slot FROM running WHERE job_id = ANY ($1::bigint[])
ORDER BY job_id, slot FOR NO KEY UPDATE SKIP LOCKED;

-- limits_of: the limits of jobs
SELECT id, concurrency FROM jobs WHERE id = ANY ($1::bigint[]);

-- slots_of: the slots of jobs that are taken
SELECT job_id, slot FROM running WHERE job_id = ANY ($1::bigint[]);

-- scheduled_waiting: scheduled runs of jobs that wait for a slot
SELECT job_id, scheduled_at FROM blocked WHERE job_id = ANY ($1::bigint[]) AND rank = 0 ORDER BY job_id, scheduled_at;

-- caught_up_waiting: runs of jobs that make up for missed times and wait for a slot
SELECT job_id, scheduled_at FROM blocked
WHERE job_id = ANY ($1::bigint[]) AND rank = 1 AND trigger = 3 ORDER BY job_id, scheduled_at;

-- add_blocked: a run waits for a slot
INSERT INTO blocked (job_id, rank, scheduled_at, lane, due_at, trigger, fence, tries)
SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::integer[], $5::bigint[], $6::smallint[],
    $7::integer[], $8::smallint[]);

-- take_blocked: a waiting run leaves the queue
DELETE FROM blocked WHERE job_id = $1 AND scheduled_at = $2
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- take_blocked_rows: waiting runs leave the queue; says which were there
DELETE FROM blocked WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM blocked WHERE blocked.job_id = (given.value ->> 0)::bigint
            AND blocked.scheduled_at = (given.value ->> 1)::bigint FOR UPDATE) AS found))
RETURNING job_id, scheduled_at, lane, due_at, trigger, fence, tries;

-- take_planned_row: a planned run leaves the plan
DELETE FROM planned WHERE scheduled_at = $1 AND job_id = $2
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- take_planned_rows: planned runs leave the plan; says which were there
DELETE FROM planned WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM planned WHERE planned.scheduled_at = (given.value ->> 0)::bigint
            AND planned.job_id = (given.value ->> 1)::bigint FOR UPDATE) AS found))
RETURNING job_id, scheduled_at;

-- take_idle_row: a ready or retrying run leaves its slot
DELETE FROM running WHERE job_id = $1 AND scheduled_at = $2 AND phase IN (0, 2, 3)
RETURNING scheduled_at, lane, coalesce(was_due_at, due_at), trigger, fence, tries;

-- to_background: late runs go on in the background class
UPDATE planned SET lane = lane / 128 * 128 + 96 + lane % 32, trigger = 3 WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM planned WHERE planned.scheduled_at = (given.value ->> 0)::bigint
            AND planned.job_id = (given.value ->> 1)::bigint FOR UPDATE) AS found));

-- ask_cancel: ask the workers to cancel what a job runs
UPDATE running SET cancel = 1 WHERE job_id = $1 AND phase BETWEEN 1 AND 1;

-- holders_of: the runs that hold the first slots of jobs
SELECT job_id, scheduled_at FROM running WHERE job_id = ANY ($1::bigint[]) AND slot < 5 ORDER BY job_id, slot;
