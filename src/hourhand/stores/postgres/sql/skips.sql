-- add_skip: a coming time of a job will not run
INSERT INTO skips (job_id, scheduled_at, made_at, note) VALUES (:job_id, :scheduled_at, :made_at, :note)
ON CONFLICT (job_id, scheduled_at) DO UPDATE SET note = excluded.note;

-- skips_of: coming times of a job that will not run
SELECT scheduled_at, note, made_at FROM skips WHERE job_id = $1 AND scheduled_at > $2 ORDER BY scheduled_at;

-- drop_skips: times that are no longer marked
DELETE FROM skips WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[]) RETURNING scheduled_at;

-- drop_skips_of: a job goes; says which times were marked
DELETE FROM skips WHERE job_id = $1 RETURNING scheduled_at;

-- drop_markers: what stands in the plan for times that are skipped
DELETE FROM planned WHERE job_id = $1 AND scheduled_at = ANY ($2::bigint[]) AND lane = 0;

-- due_skips: skipped times that have come, and that the job's clock has come past
SELECT s.job_id, s.scheduled_at, s.note FROM skips AS s
WHERE s.scheduled_at <= $1 AND coalesce((
    SELECT c.next_at FROM jobs AS j JOIN clocks AS c ON c.id = j.clock_id WHERE j.id = s.job_id),
    s.scheduled_at + 1) > s.scheduled_at
ORDER BY s.scheduled_at, s.job_id LIMIT $2;

-- take_markers: what stands in the plan for skipped times that have come; says what was there
DELETE FROM planned WHERE ctid = ANY (ARRAY(
    SELECT found.place FROM jsonb_array_elements($1::text::jsonb) AS given CROSS JOIN LATERAL (
        SELECT ctid AS place FROM planned WHERE planned.scheduled_at = (given.value ->> 0)::bigint
            AND planned.job_id = (given.value ->> 1)::bigint AND planned.lane = 0 FOR UPDATE) AS found))
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- add_rerun: which run a run repeats
INSERT INTO reruns (job_id, scheduled_at, of_at, made_at)
VALUES (:job_id, :scheduled_at, :of_at, :made_at);

-- reruns_among: which of a job's runs repeat which, where either is at one of these times
SELECT r.scheduled_at, r.of_at FROM reruns AS r WHERE r.job_id = $1 AND r.scheduled_at = ANY ($2::bigint[])
UNION
(SELECT r.scheduled_at, r.of_at FROM reruns AS r WHERE r.job_id = $1 AND r.of_at = ANY ($2::bigint[])
ORDER BY r.job_id, r.of_at LIMIT 1000)
ORDER BY 1;

-- purge_reruns: forget what repeats what
DELETE FROM reruns WHERE ctid = ANY (ARRAY(SELECT ctid FROM reruns WHERE made_at < $1 ORDER BY made_at LIMIT $2));
