-- renew_node: prolong a lease that still runs
UPDATE nodes SET lease_until = :lease_until WHERE id = :id AND lease_until > :now;

-- add_node: a node begins
INSERT INTO nodes (id, kind, name, started_at, lease_until) VALUES (?, ?, ?, ?, ?);

-- end_node: a node is gone
UPDATE nodes SET lease_until = min(lease_until, :now) WHERE id = :id;

-- end_all_nodes: no node of an earlier process lives on
UPDATE nodes SET lease_until = 0;

-- node_exists: whether a node was ever known
SELECT 1 FROM nodes WHERE id = ?;

-- add_segment: a segment that can be held
INSERT INTO segments (segment) VALUES (?) ON CONFLICT DO NOTHING;

-- live_of_kind: nodes of a kind with a live lease, in the order in which they share
SELECT id FROM nodes WHERE kind = ? AND lease_until > ? ORDER BY id;

-- segments_of: what a node holds, with the fences
SELECT segment, fence FROM segments WHERE node_id = ?;

-- give_segments: a node gives back its last segments
UPDATE segments SET node_id = NULL WHERE node_id = :node_id AND segment >= :from;

-- take_segments: a node takes segments that no live node holds
UPDATE segments SET node_id = :node_id, fence = fence + 1 WHERE segment IN (
    SELECT s.segment FROM segments AS s LEFT JOIN nodes AS n ON n.id = s.node_id
    WHERE n.lease_until IS NULL OR n.lease_until <= :now ORDER BY s.segment LIMIT :limit)
RETURNING segment, fence;

-- give_allotted: a node gives back some of its segments
UPDATE segments SET node_id = NULL
WHERE node_id = :node_id AND segment IN (SELECT value FROM json_each(:segments));

-- take_allotted: a node takes segments that were allotted to it, where nobody holds them, a node that is gone, or the
-- one that it is the heir of
UPDATE segments SET node_id = :node_id, fence = fence + 1 WHERE segment IN (
    SELECT s.segment FROM json_each(:allotted) AS wanted CROSS JOIN segments AS s ON s.segment = wanted.value ->> 0
    LEFT JOIN nodes AS n ON n.id = s.node_id
    WHERE n.lease_until IS NULL OR n.lease_until <= :now OR s.node_id = wanted.value ->> 1)
RETURNING segment, fence;

-- all_segments: who holds which segment
SELECT segment, node_id, fence FROM segments ORDER BY segment;

-- nodes: every node
SELECT id, kind, name, started_at, lease_until, serves FROM nodes ORDER BY started_at;

-- tell_served: what a worker can run
UPDATE nodes SET serves = :serves WHERE id = :id;

-- drop_idle_nodes: forget nodes that were lost long ago and hold nothing
DELETE FROM nodes WHERE lease_until < ?
    AND NOT EXISTS (SELECT 1 FROM running WHERE node_id = nodes.id AND phase IN (1, 2));

-- held_by: what a node holds
SELECT job_id, slot, scheduled_at, fence, cancel FROM running WHERE node_id = ? AND phase IN (1, 2);

-- cancel_of: what of a node's runs somebody wants cancelled
SELECT job_id, slot, scheduled_at, fence, cancel FROM running WHERE node_id = ? AND cancel = 1;

-- strays: runs of nodes without a live lease
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.version, n.name, 1, r.cancel, j.spec, NULL
FROM nodes AS n CROSS JOIN running AS r ON r.node_id = n.id AND r.phase IN (1, 2) LEFT JOIN jobs AS j ON j.id = r.job_id
WHERE n.lease_until <= ? LIMIT ?;

-- overdue: runs of live nodes that are long past their deadline, and accepted ones whose report did not come in time:
-- for those nobody is waited for any longer
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.version, n.name, 0, r.cancel, j.spec, NULL
FROM nodes AS n CROSS JOIN running AS r ON r.node_id = n.id AND r.phase IN (1, 2) LEFT JOIN jobs AS j ON j.id = r.job_id
WHERE n.lease_until > :now AND r.deadline_at < :overdue_at
UNION ALL
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.version, '', 0, r.cancel, j.spec,
    max(r.due_at, r.claimed_at)
FROM running AS r LEFT JOIN jobs AS j ON j.id = r.job_id
WHERE r.node_id IS NULL AND r.phase IN (1, 2) AND r.deadline_at <= :now
LIMIT :limit;

-- late_in_lane: scheduled runs of a lane past their grace, after a cursor
SELECT p.job_id, p.scheduled_at, p.lane, p.due_at, p.trigger, p.fence, p.tries, p.due_at + j.grace_us < :now
FROM planned AS p JOIN jobs AS j ON j.id = p.job_id
WHERE p.lane = :lane AND p.due_at < :now AND p.trigger = 0
    AND (p.due_at, p.scheduled_at, p.job_id) > (:due_at, :scheduled_at, :job_id)
ORDER BY p.due_at, p.scheduled_at, p.job_id LIMIT :limit;

-- blocked_with_room: jobs with waiting runs and fewer slots taken than allowed
SELECT DISTINCT b.job_id FROM blocked AS b JOIN jobs AS j ON j.id = b.job_id
WHERE j.concurrency IS NULL
    OR (SELECT count(*) FROM running AS r WHERE r.job_id = b.job_id) < j.concurrency LIMIT ?;

-- purge_history: drop old history from the front
DELETE FROM history WHERE id <= (
    SELECT max(id) FROM (SELECT id, finished_at FROM history ORDER BY id LIMIT ?) WHERE finished_at < ?);

-- purge_dead: drop dead letters nobody wanted
DELETE FROM dead WHERE (job_id, scheduled_at) IN (
    SELECT job_id, scheduled_at FROM dead WHERE failed_at < ? ORDER BY failed_at LIMIT ?);

-- purge_request_keys: forget old keys of requests
DELETE FROM request_keys WHERE (job_id, key) IN (
    SELECT job_id, key FROM request_keys WHERE made_at < ? ORDER BY made_at LIMIT ?);

-- purge_log: drop old chunks of logs from the front
DELETE FROM run_log WHERE id <= (
    SELECT max(id) FROM (SELECT id, at FROM run_log ORDER BY id LIMIT ?) WHERE at < ?);

-- purge_gaps: forget gaps that are older than history
DELETE FROM clock_gaps WHERE decided_at < ?;
