-- now: the server's time
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- is_read_only: whether this server takes no writes
SELECT current_setting('transaction_read_only') = 'on';

-- renew_node: prolong a lease that still runs
UPDATE nodes SET lease_until = :lease_until WHERE id = :id AND lease_until > :now;

-- add_node: a node begins
INSERT INTO nodes (id, kind, name, started_at, lease_until)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]);

-- end_node: a node is gone
UPDATE nodes SET lease_until = least(lease_until, :now) WHERE id = :id;

-- node_exists: whether a node was ever known
SELECT 1 FROM nodes WHERE id = $1;

-- add_segment: segments that can be held
INSERT INTO segments (segment) SELECT generate_series(0, $1::integer - 1) ON CONFLICT DO NOTHING;

-- live_of_kind: nodes of a kind with a live lease, in the order in which they share
SELECT id FROM nodes WHERE kind = $1 AND lease_until > $2 ORDER BY id;

-- segments_of: what a node holds, with the fences
SELECT segment, fence FROM segments WHERE node_id = $1;

-- give_segments: a node gives back its last segments
UPDATE segments SET node_id = NULL WHERE node_id = :node_id AND segment >= :from;

-- take_segments: a node takes segments that no live node holds. The lease of the node before is looked at under a
-- lock (whoever renews it at this moment either keeps its segments or sees that they are gone)
WITH free AS MATERIALIZED (
    SELECT s.segment FROM segments AS s
    WHERE s.node_id IS NULL OR NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.id = s.node_id)
    ORDER BY s.segment LIMIT :limit FOR UPDATE SKIP LOCKED),
expired AS MATERIALIZED (
    SELECT s.segment FROM segments AS s JOIN nodes AS n ON n.id = s.node_id WHERE n.lease_until <= :now
    ORDER BY s.segment LIMIT :limit FOR UPDATE OF s SKIP LOCKED FOR SHARE OF n SKIP LOCKED)
UPDATE segments SET node_id = :node_id, fence = fence + 1 WHERE segment = ANY (ARRAY(
    SELECT segment FROM (SELECT segment FROM free UNION ALL SELECT segment FROM expired) AS found
    ORDER BY segment LIMIT :limit))
RETURNING segment, fence;

-- give_allotted: a node gives back some of its segments
UPDATE segments SET node_id = NULL WHERE node_id = :node_id AND segment = ANY (:segments::integer[]);

-- take_allotted: a node takes segments that were allotted to it, where nobody holds them, a node that is gone, or the
-- one that it is the heir of. Locks as in take_segments
WITH wanted AS MATERIALIZED (
    SELECT (value ->> 0)::integer AS segment, (value ->> 1)::bigint AS heir_of
    FROM jsonb_array_elements(:allotted::text::jsonb)),
free AS MATERIALIZED (
    SELECT s.segment FROM wanted JOIN segments AS s ON s.segment = wanted.segment
    WHERE s.node_id IS NULL OR s.node_id = wanted.heir_of
        OR NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.id = s.node_id)
    ORDER BY s.segment FOR UPDATE OF s SKIP LOCKED),
expired AS MATERIALIZED (
    SELECT s.segment FROM wanted JOIN segments AS s ON s.segment = wanted.segment
    JOIN nodes AS n ON n.id = s.node_id WHERE n.lease_until <= :now
    ORDER BY s.segment FOR UPDATE OF s SKIP LOCKED FOR SHARE OF n SKIP LOCKED)
UPDATE segments SET node_id = :node_id, fence = fence + 1 WHERE segment = ANY (ARRAY(
    SELECT segment FROM free UNION SELECT segment FROM expired))
RETURNING segment, fence;

-- all_segments: who holds which segment
SELECT segment, node_id, fence FROM segments ORDER BY segment;

-- nodes: every node
SELECT id, kind, name, started_at, lease_until, serves FROM nodes ORDER BY started_at;

-- tell_served: what a worker can run
UPDATE nodes SET serves = :serves WHERE id = :id;

-- drop_idle_nodes: forget nodes that were lost long ago and hold nothing
DELETE FROM nodes WHERE lease_until < $1
    AND NOT EXISTS (SELECT 1 FROM running WHERE node_id = nodes.id AND phase IN (1, 2) OFFSET 0);

-- held_by: what a node holds
SELECT job_id, slot, scheduled_at, fence, cancel FROM running WHERE node_id = $1 AND phase IN (1, 2);

-- cancel_of: what of a node's runs somebody wants cancelled
SELECT job_id, slot, scheduled_at, fence, cancel FROM running WHERE node_id = $1 AND cancel = 1;

-- strays: runs of lost nodes, of each node in the order of its index
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.version, n.name, 1, r.cancel,
    (SELECT spec FROM jobs WHERE id = r.job_id), NULL::bigint
FROM nodes AS n CROSS JOIN LATERAL (
    SELECT * FROM running AS held WHERE held.node_id = n.id AND held.phase IN (1, 2)
    ORDER BY held.node_id, held.deadline_at LIMIT $2) AS r
WHERE n.lease_until <= $1 LIMIT $2;

-- overdue: runs of live nodes that are long past their deadline, and accepted ones whose report did not come in time:
-- for those nobody is waited for any longer
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.version, r.name, 0, r.cancel,
    (SELECT spec FROM jobs WHERE id = r.job_id), CASE WHEN r.node_id IS NULL THEN greatest(r.due_at, r.claimed_at) END
FROM (
    (SELECT late.*, n.name FROM nodes AS n CROSS JOIN LATERAL (
        SELECT * FROM running AS held
        WHERE held.node_id = n.id AND held.phase IN (1, 2) AND held.deadline_at < :overdue_at::bigint
        ORDER BY held.node_id, held.deadline_at LIMIT :limit::bigint) AS late
    WHERE n.lease_until > :now::bigint LIMIT :limit::bigint)
    UNION ALL
    (SELECT held.*, '' FROM running AS held
    WHERE held.node_id IS NULL AND held.phase IN (1, 2) AND held.deadline_at <= :now::bigint
    ORDER BY held.node_id, held.deadline_at LIMIT :limit::bigint)) AS r
LIMIT :limit::bigint;

-- late_in_lane: scheduled runs of a lane past their grace, after a cursor
SELECT p.job_id, p.scheduled_at, p.lane, p.due_at, p.trigger, p.fence, p.tries, p.due_at + j.grace_us < :now::bigint
FROM (SELECT * FROM planned
    WHERE planned.lane = :lane AND planned.due_at < :now::bigint AND planned.trigger = 0
        AND (planned.due_at, planned.scheduled_at, planned.job_id) > (:due_at::bigint, :scheduled_at::bigint, :job_id::bigint)
    ORDER BY planned.due_at, planned.scheduled_at, planned.job_id LIMIT :limit) AS p
CROSS JOIN LATERAL (SELECT grace_us FROM jobs WHERE jobs.id = p.job_id OFFSET 0) AS j
ORDER BY p.due_at, p.scheduled_at, p.job_id;

-- blocked_with_room: jobs with waiting runs and fewer slots taken than allowed
WITH RECURSIVE waiting (job_id) AS (
    (SELECT job_id FROM blocked ORDER BY job_id LIMIT 1)
    UNION ALL
    SELECT later.job_id FROM waiting CROSS JOIN LATERAL (
        SELECT blocked.job_id FROM blocked WHERE blocked.job_id > waiting.job_id ORDER BY blocked.job_id LIMIT 1) AS later)
SELECT w.job_id FROM waiting AS w
CROSS JOIN LATERAL (SELECT coalesce(concurrency, 2147483647) AS most FROM jobs WHERE id = w.job_id LIMIT 1) AS j
WHERE (SELECT count(*) FROM running AS r WHERE r.job_id = w.job_id) < j.most LIMIT $1;

-- purge_history: drop old rows of times that have no partition of their own
DELETE FROM history_far WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM history_far WHERE finished_at < $2 ORDER BY finished_at LIMIT $1));

-- purge_dead: drop dead letters nobody wanted
DELETE FROM dead WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead WHERE failed_at < $1 ORDER BY failed_at LIMIT $2));

-- purge_request_keys: forget old keys of requests
DELETE FROM request_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM request_keys WHERE made_at < $1 ORDER BY made_at LIMIT $2));

-- purge_log: drop old chunks of runs that have no partition of their own
DELETE FROM run_log_far WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM run_log_far WHERE at < $2 ORDER BY at LIMIT $1));

-- purge_gaps: forget gaps that are older than history
DELETE FROM clock_gaps WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM clock_gaps WHERE decided_at < $1 ORDER BY decided_at LIMIT 10000));
