-- due_clocks: clocks to be planned, the most overdue first
SELECT id, rule, next_at, segment FROM clocks
WHERE next_at < ? AND segment IN (SELECT value FROM json_each(?)) ORDER BY next_at LIMIT ?;

-- next_clock: when the next clock is to be planned
SELECT next_at FROM clocks
WHERE next_at IS NOT NULL AND segment IN (SELECT value FROM json_each(?)) ORDER BY next_at LIMIT 1;

-- misfires_of: how a clock's members miss: by policy, and apart those who end before an instant
SELECT DISTINCT policy, grace_us, catch_up, CASE WHEN until < :before THEN until END FROM members
WHERE clock_id = :clock_id AND until >= :next_at ORDER BY 1, 2, 3, 4;

-- clear_steps: forget the last batch of steps
DELETE FROM temp.plan_step;

-- clear_times: forget the last batch of times
DELETE FROM temp.plan_time;

-- add_step: a clock and where it is to go
INSERT INTO temp.plan_step (clock_id, expected, next_at, late_to, fence) VALUES (?, ?, ?, ?, ?);

-- add_time: a nominal time for a clock's members
INSERT INTO temp.plan_time (clock_id, at, after_at, room_us, background, policy, grace_us, catch_up, until,
    since_from, since_below)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- drop_stale_steps: clocks that somebody else moved meanwhile, or whose segment changed hands
DELETE FROM temp.plan_step WHERE NOT EXISTS (
    SELECT 1 FROM clocks AS c LEFT JOIN segments AS s ON s.segment = c.segment
    WHERE c.id = plan_step.clock_id AND c.next_at = plan_step.expected
        AND (plan_step.fence IS NULL OR s.fence = plan_step.fence))
RETURNING clock_id;

-- drop_step: leave a clock out of this batch
DELETE FROM temp.plan_step WHERE clock_id = ?;

-- plan_members: the runs of all members at all times; jitter as in core.identity
INSERT INTO planned (scheduled_at, job_id, lane, due_at, trigger, fence, tries, after_at)
SELECT t.at, m.job_id,
    CASE WHEN t.background THEN m.lane / 128 * 128 + 96 + m.lane % 32 ELSE m.lane END,
    t.at + CASE WHEN min(m.jitter_us, t.room_us) / 1000 <= 1 THEN 0 ELSE
        ((m.job_id % 2147483647) * 48271 + t.at / 1000 % 2147483647) % 2147483647
        * 69621 % 2147483647 % (min(m.jitter_us, t.room_us) / 1000) * 1000 END,
    CASE WHEN t.background THEN 3 ELSE 0 END, 0, 0, t.after_at
FROM temp.plan_time AS t CROSS JOIN temp.plan_step AS s ON s.clock_id = t.clock_id
CROSS JOIN members AS m ON m.clock_id = t.clock_id
WHERE t.at > m.since AND t.at <= m.until AND (t.policy IS NULL OR (
    m.policy = t.policy AND m.grace_us = t.grace_us AND m.catch_up = t.catch_up
    AND CASE WHEN t.until IS NULL THEN m.until >= s.late_to ELSE m.until = t.until END
    AND m.since >= t.since_from AND m.since < t.since_below))
ON CONFLICT DO NOTHING;

-- move_clocks: everything before the new time is planned
UPDATE clocks SET next_at = s.next_at FROM temp.plan_step AS s WHERE clocks.id = s.clock_id;

-- sleep_clocks: clocks without an active member sleep until one joins
UPDATE clocks SET next_at = NULL
WHERE id IN (SELECT clock_id FROM temp.plan_step)
    AND NOT EXISTS (SELECT 1 FROM members WHERE members.clock_id = clocks.id);

-- gaps_of: what the clock of a rule in a segment missed
SELECT g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran
FROM clocks AS c JOIN clock_gaps AS g ON g.clock_id = c.id
WHERE c.rule = ? AND c.segment = ? ORDER BY g.from_at DESC LIMIT ?;

-- add_gap: what a clock's members missed
INSERT INTO clock_gaps (clock_id, from_at, to_at, policy, grace_us, catch_up, missed, ran, decided_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- gaps_at: what the clock of a rule in a segment missed around a time, of the outages that began last before it
SELECT g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran, g.decided_at
FROM (SELECT id FROM clocks WHERE rule = ?1 AND segment = ?2) AS c
JOIN clock_gaps AS g ON g.clock_id = c.id AND g.from_at <= ?3
ORDER BY g.from_at DESC LIMIT ?4;
