-- finish: ended runs leave their slots, each with a row of history; says which were still in their slot under their
-- fence, how many left (less than those when one was changed in that moment), how many others follow, and of how many a
-- webhook wants to hear. Rows are found by key, one by one,
-- and left by place: a join the planner could turn round when the table looks empty to it. For the same reason the
-- phase is asked for in a form that no partial index has: only the key may find a row here.
-- Events 1 succeed, 3 exhaust, 4 skip, 7 cancel
WITH found AS MATERIALIZED (
    SELECT d.*, r.place_at, r.due_at, r.trigger
    FROM unnest(:places::integer[], :job_ids::bigint[], :slots::bigint[], :scheduled_ats::bigint[], :fences::integer[],
        :events::smallint[], :versions::integer[], :tries::smallint[], :started_ats::bigint[],
        :finished_ats::bigint[], :details::text[])
        AS d (place, job_id, slot, scheduled_at, fence, event, version, tries, started_at, finished_at, detail)
    CROSS JOIN LATERAL (
        SELECT ctid AS place_at, due_at, trigger FROM running
        WHERE running.job_id = d.job_id AND running.slot = d.slot AND running.fence = d.fence
            AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 2 OFFSET 0) AS r),
gone AS (DELETE FROM running WHERE ctid = ANY (ARRAY(SELECT place_at FROM found)) RETURNING 1),
kept AS (
    INSERT INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version,
        worker, detail, bucket)
    SELECT job_id, scheduled_at, fence,
        CASE event WHEN 1 THEN 3 WHEN 3 THEN 4 WHEN 4 THEN 5 WHEN 7 THEN 6 END,
        trigger, tries, due_at, started_at, finished_at, version, :worker::text, detail,
        CASE WHEN abs(scheduled_at - finished_at) < 86400000000 THEN scheduled_at / 86400000000 ELSE 0 END
    FROM found),
told AS (
    INSERT INTO descents (job_id, scheduled_at, state, trigger)
    SELECT job_id, scheduled_at, CASE event WHEN 1 THEN 3 WHEN 3 THEN 4 WHEN 4 THEN 5 WHEN 7 THEN 6 END, trigger
    FROM found WHERE EXISTS (SELECT 1 FROM edges)
        AND EXISTS (SELECT 1 FROM edges WHERE edges.parent_id = found.job_id OFFSET 0) RETURNING 1),
heard AS (
    INSERT INTO webhook_events (kind, at, job_id, scheduled_at, attempt, version, due_at, started_at, tenant, name, detail)
    SELECT told.kind, told.finished_at, told.job_id, told.scheduled_at, told.fence, told.version, told.was_due_at,
        told.started_at, told.tenant, told.name, CASE WHEN told.kind <> 1 THEN told.detail END
    FROM (SELECT f.*, f.event::integer AS kind, f.due_at AS was_due_at, j.tenant, j.name FROM found AS f CROSS JOIN {owner}) AS told
    WHERE {hears} RETURNING 1)
SELECT (SELECT array_agg(place) FROM found), (SELECT count(*) FROM gone), (SELECT count(*) FROM told),
    (SELECT count(*) FROM heard);

-- retry: failed runs keep their slot and wait for their next attempt, each with a row of history; nobody follows that, but
-- a webhook may want to hear of it
WITH held AS MATERIALIZED (
    SELECT d.*, r.place_at, r.due_at AS was_due_at, r.trigger
    FROM unnest(:places::integer[], :job_ids::bigint[], :slots::bigint[], :scheduled_ats::bigint[],
        :fences::integer[], :versions::integer[], :tries::smallint[], :due_ats::bigint[], :started_ats::bigint[],
        :finished_ats::bigint[], :details::text[])
        AS d (place, job_id, slot, scheduled_at, fence, version, tries, due_at, started_at, finished_at, detail)
    CROSS JOIN LATERAL (
        SELECT ctid AS place_at, due_at, trigger FROM running
        WHERE running.job_id = d.job_id AND running.slot = d.slot AND running.fence = d.fence
            AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 2 FOR UPDATE) AS r),
waiting AS (
    UPDATE running SET phase = 3, node_id = NULL, deadline_at = NULL, due_at = held.due_at, tries = held.tries
    FROM held WHERE running.ctid = held.place_at RETURNING 1),
kept AS (
    INSERT INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at, finished_at, version,
        worker, detail, bucket)
    SELECT job_id, scheduled_at, fence, 2, trigger, tries, was_due_at, started_at, finished_at, version, :worker::text,
        detail, CASE WHEN abs(scheduled_at - finished_at) < 86400000000 THEN scheduled_at / 86400000000 ELSE 0 END
    FROM held),
heard AS (
    INSERT INTO webhook_events (kind, at, job_id, scheduled_at, attempt, version, due_at, started_at, tenant, name, detail)
    SELECT told.kind, told.finished_at, told.job_id, told.scheduled_at, told.fence, told.version, told.was_due_at,
        told.started_at, told.tenant, told.name, CASE WHEN told.kind <> 1 THEN told.detail END
    FROM (SELECT f.*, 2 AS kind, j.tenant, j.name FROM held AS f CROSS JOIN {owner}) AS told
    WHERE {hears} RETURNING 1)
SELECT (SELECT array_agg(place) FROM held), (SELECT count(*) FROM waiting), 0, (SELECT count(*) FROM heard);

-- release: unstarted runs keep their slot and wait for another worker, some until a given time; never one that its
-- target has accepted
WITH held AS MATERIALIZED (
    SELECT d.place, d.due_at, r.place_at
    FROM unnest(:places::integer[], :job_ids::bigint[], :slots::bigint[], :scheduled_ats::bigint[],
        :fences::integer[], :due_ats::bigint[]) AS d (place, job_id, slot, scheduled_at, fence, due_at)
    CROSS JOIN LATERAL (
        SELECT ctid AS place_at FROM running
        WHERE running.job_id = d.job_id AND running.slot = d.slot AND running.fence = d.fence
            AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 1 FOR UPDATE) AS r),
waiting AS (
    UPDATE running SET phase = 0, node_id = NULL, deadline_at = NULL,
        due_at = greatest(running.due_at, held.due_at),
        was_due_at = CASE WHEN held.due_at > running.due_at THEN running.due_at END
    FROM held WHERE running.ctid = held.place_at RETURNING 1)
SELECT (SELECT array_agg(place) FROM held), (SELECT count(*) FROM waiting);

-- report: accepted runs wait for their report, held by nobody
WITH held AS MATERIALIZED (
    SELECT d.place, r.place_at
    FROM unnest(:places::integer[], :job_ids::bigint[], :slots::bigint[], :scheduled_ats::bigint[],
        :fences::integer[]) AS d (place, job_id, slot, scheduled_at, fence)
    CROSS JOIN LATERAL (
        SELECT ctid AS place_at FROM running
        WHERE running.job_id = d.job_id AND running.slot = d.slot AND running.fence = d.fence
            AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 2 FOR UPDATE) AS r),
waiting AS (
    UPDATE running SET phase = 2, node_id = NULL WHERE ctid = ANY (ARRAY(SELECT place_at FROM held)) RETURNING 1)
SELECT (SELECT array_agg(place) FROM held), (SELECT count(*) FROM waiting);

-- exhausted: what dead letters keep of runs that are about to end; held, so that they still do
SELECT d.job_id, d.scheduled_at, j.tenant, r.trigger, r.lane
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[]) AS d (job_id, slot, scheduled_at, fence)
CROSS JOIN LATERAL (
    SELECT trigger, lane FROM running
    WHERE running.job_id = d.job_id AND running.slot = d.slot AND running.fence = d.fence
        AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 2 FOR UPDATE) AS r
CROSS JOIN LATERAL (SELECT tenant FROM jobs WHERE id = d.job_id LIMIT 1) AS j;

-- add_dead: a dead letter
INSERT INTO dead (job_id, scheduled_at, tenant, failed_at, trigger, fence, tries, lane, error, fingerprint)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::smallint[], $6::integer[],
    $7::smallint[], $8::integer[], $9::text[], $10::text[]);

-- waiting_jobs: which of these jobs have runs waiting for a slot
SELECT DISTINCT job_id FROM blocked WHERE EXISTS (SELECT 1 FROM blocked) AND job_id = ANY ($1::bigint[])
ORDER BY job_id;

-- idle_cancelled: runs that somebody wants cancelled and nobody executes
SELECT job_id, scheduled_at FROM running WHERE cancel = 1 AND phase <> 1 AND node_id IS NULL;

-- front_of_blocked: the runs of jobs that get the next free slots, held
SELECT b.job_id, b.scheduled_at, b.lane, b.due_at, b.trigger, b.fence, b.tries
FROM jobs AS j CROSS JOIN LATERAL (
    SELECT * FROM blocked WHERE blocked.job_id = j.id ORDER BY blocked.rank, blocked.scheduled_at
    LIMIT coalesce(j.concurrency, 1000) FOR UPDATE) AS b
WHERE j.id = ANY ($1::bigint[]) ORDER BY b.job_id, b.rank, b.scheduled_at;

-- add_ready: a slot is handed on
INSERT INTO running (job_id, slot, scheduled_at, lane, due_at, trigger, fence, tries, phase)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], $6::smallint[],
    $7::integer[], $8::smallint[], $9::smallint[]);
