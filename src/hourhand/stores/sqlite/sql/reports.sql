-- open_attempt_at: an attempt under way whose slot is its nominal time
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.trigger, r.deadline_at, r.version,
    coalesce(j.tenant, v.tenant), coalesce(j.spec, v.spec), j.id IS NULL, r.claimed_at
FROM running AS r LEFT JOIN jobs AS j ON j.id = r.job_id
LEFT JOIN versions AS v ON v.job_id = r.job_id AND v.version = r.version
WHERE r.job_id = ?1 AND r.slot = ?2 AND r.scheduled_at = ?2 AND r.fence = ?3 AND r.phase IN (1, 2)
    AND coalesce(j.spec, v.spec) IS NOT NULL;

-- open_attempt: an attempt under way in one of its job's slots
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.trigger, r.deadline_at, r.version,
    coalesce(j.tenant, v.tenant), coalesce(j.spec, v.spec), j.id IS NULL, r.claimed_at
FROM running AS r LEFT JOIN jobs AS j ON j.id = r.job_id
LEFT JOIN versions AS v ON v.job_id = r.job_id AND v.version = r.version
WHERE r.job_id = ?1 AND r.scheduled_at = ?2 AND r.fence = ?3 AND r.phase IN (1, 2)
    AND coalesce(j.spec, v.spec) IS NOT NULL;

-- extend_attempt: the deadline of an attempt under way moves on
UPDATE running SET deadline_at = ?5
WHERE job_id = ?1 AND slot = ?2 AND scheduled_at = ?3 AND fence = ?4 AND phase IN (1, 2) AND deadline_at < ?5;

-- keep_progress: how far attempts under way are; says which were
INSERT INTO progress (job_id, scheduled_at, slot, attempt, noted_at, fraction, message)
SELECT r.job_id, r.scheduled_at, r.slot, r.fence, :now, given.value ->> 4, given.value ->> 5
FROM json_each(:notes) AS given CROSS JOIN running AS r ON r.job_id = given.value ->> 0
    AND r.slot = given.value ->> 1 AND r.scheduled_at = given.value ->> 2 AND r.fence = given.value ->> 3
WHERE r.phase IN (1, 2)
ON CONFLICT (job_id, scheduled_at) DO UPDATE SET slot = excluded.slot, attempt = excluded.attempt,
    noted_at = excluded.noted_at, fraction = excluded.fraction, message = excluded.message
RETURNING job_id, scheduled_at, attempt;

-- progress_page: progress after a place, and whether its attempt is still under way
SELECT p.job_id, p.scheduled_at, p.attempt, EXISTS (
    SELECT 1 FROM running AS r WHERE r.job_id = p.job_id AND r.slot = p.slot AND r.scheduled_at = p.scheduled_at
        AND r.fence = p.attempt AND r.phase IN (1, 2))
FROM progress AS p WHERE (p.job_id, p.scheduled_at) > (?, ?) ORDER BY p.job_id, p.scheduled_at LIMIT ?;

-- drop_progress: forget how far attempts were
DELETE FROM progress WHERE (job_id, scheduled_at, attempt) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?));
