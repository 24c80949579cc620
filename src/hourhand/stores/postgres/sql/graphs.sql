-- lock_graph: whoever changes who follows whom in a tenant waits for the others who do
SELECT pg_advisory_xact_lock(1752134258, hashtext($1::text));

-- graph_jobs: what a check needs to know of jobs
SELECT j.id, j.name, j.key, j.paused, j.until, j.spec FROM unnest($2::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT id, tenant, name, key, paused, until, spec FROM jobs WHERE jobs.id = asked.id OFFSET 0) AS j
WHERE j.tenant = $1;

-- newest_runs: of each of some jobs the newest run that waits, that has a slot, and that ended
SELECT asked.id, r.scheduled_at, r.place, r.code, r.due_at, r.tries
FROM unnest(:job_ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    (SELECT scheduled_at, 2 AS place, 0 AS code, 0::bigint AS due_at, 0 AS tries FROM waiting
    WHERE job_id = asked.id ORDER BY scheduled_at DESC LIMIT 1)
    UNION ALL
    (SELECT scheduled_at, 2, 0, 0, 0 FROM blocked WHERE job_id = asked.id ORDER BY scheduled_at DESC LIMIT 1)
    UNION ALL
    (SELECT scheduled_at, 1, phase, due_at, tries FROM running WHERE job_id = asked.id
    ORDER BY scheduled_at DESC LIMIT 1)
    UNION ALL
    (SELECT scheduled_at, 0, state, 0, 0 FROM history WHERE job_id = asked.id
        AND finished_at >= coalesce((SELECT :now::bigint - kept_us FROM short_histories WHERE job_id = asked.id), 0)
    ORDER BY scheduled_at DESC, attempt DESC LIMIT 1)) AS r;

-- runs_at: the runs of some jobs for one nominal time, wherever they are
SELECT asked.id, :scheduled_at::bigint, r.place, r.code, r.due_at, r.tries
FROM unnest(:job_ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT 2 AS place, 0 AS code, 0::bigint AS due_at, 0 AS tries FROM planned
    WHERE scheduled_at = :scheduled_at::bigint AND job_id = asked.id
    UNION ALL
    SELECT 2, 0, 0, 0 FROM waiting WHERE job_id = asked.id AND scheduled_at = :scheduled_at::bigint
    UNION ALL
    SELECT 2, 0, 0, 0 FROM blocked WHERE job_id = asked.id AND scheduled_at = :scheduled_at::bigint
    UNION ALL
    SELECT 1, phase, due_at, tries FROM running WHERE job_id = asked.id AND scheduled_at = :scheduled_at::bigint
    UNION ALL
    (SELECT 0, h.state, 0, 0 FROM (
        SELECT state, attempt, finished_at FROM history WHERE job_id = asked.id AND scheduled_at = :scheduled_at::bigint
            AND bucket = (:scheduled_at::bigint / 86400000000)::integer
        UNION ALL
        SELECT state, attempt, finished_at FROM history_far
        WHERE job_id = asked.id AND scheduled_at = :scheduled_at::bigint) AS h
    WHERE h.finished_at >= coalesce((SELECT :now::bigint - kept_us FROM short_histories WHERE job_id = asked.id), 0)
    ORDER BY h.attempt DESC LIMIT 1)) AS r;

-- children_now: who follows some jobs at present
SELECT e.parent_id, e.child_id FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT parent_id, child_id FROM edges
    WHERE edges.parent_id = asked.id AND until_at = 4611686018427387903 LIMIT $2::bigint) AS e
LIMIT $2::bigint;

-- parents_among: which of some jobs others follow or followed
SELECT p.id FROM unnest($1::bigint[]) AS p (id)
WHERE EXISTS (SELECT 1 FROM edges) AND EXISTS (SELECT 1 FROM edges WHERE edges.parent_id = p.id OFFSET 0);

-- add_edge: a job follows another from now on
INSERT INTO edges (parent_id, child_id, since_at, until_at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
ON CONFLICT (parent_id, child_id, since_at) DO UPDATE SET until_at = excluded.until_at;

-- ended_ahead: runs of some jobs for times to come that have ended already, cancelled as a rule
SELECT h.job_id, h.scheduled_at, h.state, h.trigger FROM unnest($1::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT job_id, scheduled_at, state, trigger FROM history
    WHERE history.job_id = asked.id AND history.scheduled_at > $2::bigint AND state IN (3, 4, 5, 6)
    ORDER BY history.scheduled_at LIMIT 100) AS h;

-- end_edges: a job follows others no longer, but for times up to an instant
UPDATE edges SET until_at = greatest(since_at, :until::bigint)
WHERE child_id = :child_id::bigint AND parent_id = ANY (:parent_ids::bigint[]) AND until_at = 4611686018427387903;

-- purge_edges: edges that nothing can wait by any more
DELETE FROM edges WHERE (parent_id, child_id, since_at) IN (
    SELECT parent_id, child_id, since_at FROM edges
    WHERE until_at < $1::bigint AND until_at < 4611686018427387903 ORDER BY until_at LIMIT $2::bigint);

-- add_descent: children are to be told how a run ended
INSERT INTO descents (job_id, scheduled_at, state, trigger)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[]);

-- take_descents: the oldest runs whose children have not been told, those that nobody else is at
DELETE FROM descents WHERE id = ANY (ARRAY(
    SELECT id FROM descents ORDER BY id LIMIT $1::bigint FOR UPDATE SKIP LOCKED))
RETURNING id, job_id, scheduled_at, state, trigger;

-- is_descending: whether children of a run are yet to be told
SELECT 1 FROM descents WHERE job_id = $1 AND scheduled_at = $2 LIMIT 1;

-- children_of: who follows or followed runs, each of a job at a time, and whether they do so at that time
SELECT asked.id, asked.at, e.child_id, bool_or(e.since_at < asked.at AND e.until_at >= asked.at)
FROM (SELECT (value ->> 0)::bigint AS id, (value ->> 1)::bigint AS at FROM jsonb_array_elements($1::text::jsonb)) AS asked
CROSS JOIN LATERAL (
    SELECT child_id, since_at, until_at FROM edges WHERE edges.parent_id = asked.id OFFSET 0) AS e
GROUP BY asked.id, asked.at, e.child_id;

-- parents_at: whom runs follow, each of a job at a time
SELECT e.child_id, asked.at, e.parent_id
FROM (SELECT (value ->> 0)::bigint AS id, (value ->> 1)::bigint AS at FROM jsonb_array_elements($1::text::jsonb)) AS asked
CROSS JOIN LATERAL (
    SELECT parent_id, child_id FROM edges
    WHERE edges.child_id = asked.id AND since_at < asked.at AND until_at >= asked.at OFFSET 0) AS e;

-- share_jobs: jobs by id, kept from being changed until the end
SELECT id, tenant, version, version_from, paused, note, paused_until, clock_id, since, until, once_at, attend_at,
    created_at, updated_at, lane, spec
FROM jobs WHERE id = ANY ($1::bigint[]) ORDER BY id FOR SHARE;

-- add_waiting: runs that wait for their parents
INSERT INTO waiting (job_id, scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[],
    $7::smallint[], $8::text[])
ON CONFLICT DO NOTHING;

-- hold_waiting: waiting runs, held in the order in which everybody holds them
SELECT w.job_id, w.scheduled_at, w.made_at, w.deadline_at, w.look_at, w.fence, w.trigger, w.parents
FROM (SELECT (value ->> 0)::bigint AS job_id, (value ->> 1)::bigint AS at
    FROM jsonb_array_elements($1::text::jsonb) ORDER BY 1, 2) AS asked
CROSS JOIN LATERAL (
    SELECT * FROM waiting WHERE waiting.job_id = asked.job_id AND waiting.scheduled_at = asked.at FOR UPDATE) AS w;

-- runs_elsewhere: which of some runs are planned, running, blocked, dead or over
SELECT asked.job_id, asked.at
FROM (SELECT (value ->> 0)::bigint AS job_id, (value ->> 1)::bigint AS at FROM jsonb_array_elements($1::text::jsonb)) AS asked
WHERE EXISTS (SELECT 1 FROM planned WHERE planned.scheduled_at = asked.at AND planned.job_id = asked.job_id OFFSET 0)
    OR EXISTS (SELECT 1 FROM running WHERE running.job_id = asked.job_id AND running.scheduled_at = asked.at OFFSET 0)
    OR EXISTS (SELECT 1 FROM blocked WHERE blocked.job_id = asked.job_id AND blocked.scheduled_at = asked.at OFFSET 0)
    OR EXISTS (SELECT 1 FROM history WHERE history.job_id = asked.job_id AND history.scheduled_at = asked.at
        AND history.bucket IN (0, (asked.at / 86400000000)::integer) OFFSET 0);

-- drop_waiting: runs that need wait no longer
DELETE FROM waiting WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM waiting WHERE waiting.job_id = (given.value ->> 0)::bigint
            AND waiting.scheduled_at = (given.value ->> 1)::bigint FOR UPDATE) AS found))
RETURNING job_id, scheduled_at;

-- waiting_of: a job's runs that wait for their parents, the newest first
SELECT scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents FROM waiting
WHERE job_id = $1 ORDER BY scheduled_at DESC LIMIT $2;

-- waiting_at: one run that waits for its parents
SELECT scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents FROM waiting
WHERE job_id = $1 AND scheduled_at = $2;

-- add_signal: how a parent of a waiting run ended; what was heard first stands
INSERT INTO signals (job_id, scheduled_at, parent_id, state)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[])
ON CONFLICT DO NOTHING;

-- signals_of: what waiting runs have heard
SELECT s.job_id, s.scheduled_at, s.parent_id, s.state
FROM (SELECT (value ->> 0)::bigint AS job_id, (value ->> 1)::bigint AS at FROM jsonb_array_elements($1::text::jsonb)) AS asked
CROSS JOIN LATERAL (
    SELECT * FROM signals WHERE signals.job_id = asked.job_id AND signals.scheduled_at = asked.at OFFSET 0) AS s;

-- drop_signals: what runs had heard that need wait no longer
DELETE FROM signals WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM signals WHERE signals.job_id = (given.value ->> 0)::bigint
            AND signals.scheduled_at = (given.value ->> 1)::bigint OFFSET 0) AS found));

-- forget_signals: parents of a waiting run that are to be heard of again
DELETE FROM signals WHERE job_id = $1 AND scheduled_at = $2 AND parent_id = ANY ($3::bigint[]);

-- waits_to_look_at: runs whose parents may never come
SELECT job_id, scheduled_at FROM waiting WHERE look_at <= $1 ORDER BY look_at LIMIT $2;

-- look_later: when to look at waiting runs again
UPDATE waiting SET look_at = later.at
FROM (SELECT found.place, (given.value ->> 2)::bigint AS at
    FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM waiting WHERE waiting.job_id = (given.value ->> 0)::bigint
            AND waiting.scheduled_at = (given.value ->> 1)::bigint FOR UPDATE) AS found) AS later
WHERE waiting.ctid = later.place;

-- ended_as: how a run ended last, and under which fence
SELECT state, attempt, detail FROM (
    SELECT state, attempt, detail FROM history
    WHERE job_id = :job_id AND scheduled_at = :scheduled_at AND bucket = (:scheduled_at / 86400000000)::integer
    UNION ALL
    SELECT state, attempt, detail FROM history_far WHERE job_id = :job_id AND scheduled_at = :scheduled_at) AS ended
ORDER BY attempt DESC LIMIT 1;

-- drop_waiting_of: a job's runs that wait for their parents; says which were there
DELETE FROM waiting WHERE job_id = $1
RETURNING job_id, scheduled_at, made_at, deadline_at, look_at, fence, trigger, parents;

-- drop_signals_of: what a job's runs had heard
DELETE FROM signals WHERE job_id = $1;

-- drop_waiting_after: a job's runs after an instant that wait for their parents
DELETE FROM waiting WHERE job_id = $1 AND scheduled_at > $2;

-- drop_signals_after: what a job's runs after an instant had heard
DELETE FROM signals WHERE job_id = $1 AND scheduled_at > $2;

-- edges_at: whom a job follows at a time, and since when
SELECT parent_id, since_at FROM edges WHERE child_id = $1 AND since_at < $2 AND until_at >= $2 ORDER BY parent_id;
