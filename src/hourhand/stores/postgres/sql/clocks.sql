-- due_clocks: clocks to be planned, the most overdue first
SELECT c.id, c.rule, c.next_at, c.segment FROM unnest($2::integer[]) AS wanted (segment)
CROSS JOIN LATERAL (
    SELECT id, rule, next_at, segment FROM clocks
    WHERE clocks.segment = wanted.segment AND next_at < $1::bigint ORDER BY next_at LIMIT $3::bigint) AS c
ORDER BY c.next_at LIMIT $3::bigint;

-- next_clock: when the next clock is to be planned
SELECT c.next_at FROM unnest($1::integer[]) AS wanted (segment)
CROSS JOIN LATERAL (
    SELECT next_at FROM clocks
    WHERE clocks.segment = wanted.segment AND next_at IS NOT NULL ORDER BY next_at LIMIT 1) AS c
ORDER BY c.next_at LIMIT 1;

-- misfires_of: how a clock's members miss: by policy, and apart those who end before an instant
SELECT DISTINCT policy, grace_us, catch_up, CASE WHEN until < :before::bigint THEN until END AS ending FROM members
WHERE clock_id = :clock_id::bigint AND until >= :next_at::bigint ORDER BY 1, 2, 3, 4 NULLS FIRST;

-- lock_steps: hold the clocks of a plan that are still where it expects them, in segments that have not changed hands
SELECT c.id FROM unnest(:clock_ids::bigint[], :expected::bigint[], :fences::integer[])
    AS step (clock_id, expected, fence)
JOIN clocks AS c ON c.id = step.clock_id AND c.next_at + 0 = step.expected
LEFT JOIN segments AS s ON s.segment = c.segment
WHERE step.fence IS NULL OR s.fence = step.fence
ORDER BY c.segment, c.rule FOR NO KEY UPDATE OF c;

-- plan_members: the runs of all members at all times; jitter as in core.identity
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries, after_at)
SELECT t.at, m.job_id,
    CASE WHEN t.background = 1 THEN m.lane / 128 * 128 + 96 + m.lane % 32 ELSE m.lane END,
    t.at + CASE WHEN least(m.jitter_us, t.room_us) / 1000 <= 1 THEN 0 ELSE
        ((m.job_id % 2147483647) * 48271 + t.at / 1000 % 2147483647) % 2147483647
        * 69621 % 2147483647 % (least(m.jitter_us, t.room_us) / 1000) * 1000 END,
    CASE WHEN t.background = 1 THEN 3 ELSE 0 END, 0, 0, t.after_at
FROM unnest(:clock_ids::bigint[], :ats::bigint[], :after_ats::bigint[], :rooms::bigint[], :backgrounds::integer[],
    :policies::text[], :graces::bigint[], :catch_ups::integer[], :untils::bigint[], :since_froms::bigint[], :since_belows::bigint[],
    :late_tos::bigint[])
    AS t (clock_id, at, after_at, room_us, background, policy, grace_us, catch_up, until, since_from, since_below,
        late_to)
CROSS JOIN LATERAL (SELECT * FROM members WHERE members.clock_id = t.clock_id OFFSET 0) AS m
WHERE t.at > m.since AND t.at <= m.until AND (t.policy IS NULL OR (
    m.policy = t.policy AND m.grace_us = t.grace_us AND m.catch_up = t.catch_up
    AND CASE WHEN t.until IS NULL THEN m.until >= t.late_to ELSE m.until = t.until END
    AND m.since >= t.since_from AND m.since < t.since_below))
ON CONFLICT DO NOTHING;

-- move_clocks: everything before the new time is planned; clocks without an active member sleep until one joins
UPDATE clocks SET next_at = CASE
    WHEN EXISTS (SELECT 1 FROM members AS m WHERE m.clock_id = clocks.id OFFSET 0) THEN step.next_at END
FROM unnest(:clock_ids::bigint[], :next_ats::bigint[]) AS step (clock_id, next_at) WHERE clocks.id = step.clock_id;

-- gaps_of: what the clock of a rule in a segment missed
SELECT g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran
FROM clocks AS c JOIN clock_gaps AS g ON g.clock_id = c.id
WHERE c.rule = $1 AND c.segment = $2 ORDER BY g.from_at DESC LIMIT $3;

-- add_gap: what a clock's members missed
INSERT INTO clock_gaps (clock_id, from_at, to_at, policy, grace_us, catch_up, missed, ran, decided_at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::integer[],
    $7::bigint[], $8::bigint[], $9::bigint[])
ON CONFLICT DO NOTHING;

-- gaps_at: what the clock of a rule in a segment missed around a time, of the outages that began last before it
SELECT g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran, g.decided_at
FROM clocks AS c JOIN clock_gaps AS g ON g.clock_id = c.id
WHERE c.rule = $1 AND c.segment = $2 AND g.from_at <= $3 ORDER BY g.from_at DESC LIMIT $4;
