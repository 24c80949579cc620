-- open_attempt_at: an attempt under way whose slot is its nominal time
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.trigger, r.deadline_at, r.version,
    coalesce(j.tenant, v.tenant), coalesce(j.spec, v.spec), j.id IS NULL, r.claimed_at
FROM running AS r LEFT JOIN jobs AS j ON j.id = r.job_id
LEFT JOIN versions AS v ON v.job_id = r.job_id AND v.version = r.version
WHERE r.job_id = $1 AND r.slot = $2 AND r.scheduled_at = $2 AND r.fence = $3 AND r.phase BETWEEN 1 AND 2
    AND coalesce(j.spec, v.spec) IS NOT NULL;

-- open_attempt: an attempt under way in one of its job's slots
SELECT r.job_id, r.slot, r.scheduled_at, r.due_at, r.fence, r.tries, r.trigger, r.deadline_at, r.version,
    coalesce(j.tenant, v.tenant), coalesce(j.spec, v.spec), j.id IS NULL, r.claimed_at
FROM running AS r LEFT JOIN jobs AS j ON j.id = r.job_id
LEFT JOIN versions AS v ON v.job_id = r.job_id AND v.version = r.version
WHERE r.job_id = $1 AND r.scheduled_at = $2 AND r.fence = $3 AND r.phase BETWEEN 1 AND 2
    AND coalesce(j.spec, v.spec) IS NOT NULL;

-- extend_attempt: the deadline of an attempt under way moves on
UPDATE running SET deadline_at = $5
WHERE job_id = $1 AND slot = $2 AND scheduled_at = $3 AND fence = $4 AND phase BETWEEN 1 AND 2 AND deadline_at < $5;

-- keep_progress: how far attempts under way are; says which were. The order keeps two who tell of the same from
-- waiting for each other
INSERT INTO progress (job_id, scheduled_at, slot, attempt, noted_at, fraction, message)
SELECT r.job_id, r.scheduled_at, r.slot, r.fence, :now::bigint, (given.value ->> 4)::double precision, given.value ->> 5
FROM jsonb_array_elements(:notes::text::jsonb) WITH ORDINALITY AS given (value, place) CROSS JOIN LATERAL (
    SELECT job_id, scheduled_at, slot, fence FROM running WHERE running.job_id = (given.value ->> 0)::bigint
        AND running.slot = (given.value ->> 1)::bigint AND running.scheduled_at = (given.value ->> 2)::bigint
        AND running.fence = (given.value ->> 3)::integer AND running.phase BETWEEN 1 AND 2 OFFSET 0) AS r
ORDER BY given.place
ON CONFLICT (job_id, scheduled_at) DO UPDATE SET slot = excluded.slot, attempt = excluded.attempt,
    noted_at = excluded.noted_at, fraction = excluded.fraction, message = excluded.message
RETURNING job_id, scheduled_at, attempt;

-- progress_page: progress after a place, and whether its attempt is still under way. The inner bound is one that the
-- planner can see, so that it goes along the key instead of sorting everything
SELECT p.job_id, p.scheduled_at, p.attempt, EXISTS (
    SELECT 1 FROM running AS r WHERE r.job_id = p.job_id AND r.slot = p.slot AND r.scheduled_at = p.scheduled_at
        AND r.fence = p.attempt AND r.phase BETWEEN 1 AND 2 OFFSET 0)
FROM (SELECT * FROM progress WHERE (progress.job_id, progress.scheduled_at) > ($1, $2)
    ORDER BY progress.job_id, progress.scheduled_at LIMIT 2000) AS p ORDER BY p.job_id, p.scheduled_at LIMIT $3;

-- drop_progress: forget how far attempts were
DELETE FROM progress WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM progress WHERE progress.job_id = (given.value ->> 0)::bigint
            AND progress.scheduled_at = (given.value ->> 1)::bigint
            AND progress.attempt = (given.value ->> 2)::integer FOR UPDATE) AS found));
