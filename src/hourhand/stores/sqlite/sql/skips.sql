-- add_skip: a coming time of a job will not run
INSERT INTO skips (job_id, scheduled_at, made_at, note) VALUES (:job_id, :scheduled_at, :made_at, :note)
ON CONFLICT (job_id, scheduled_at) DO UPDATE SET note = excluded.note;

-- skips_of: coming times of a job that will not run
SELECT scheduled_at, note, made_at FROM skips WHERE job_id = ?1 AND scheduled_at > ?2 ORDER BY scheduled_at;

-- drop_skips: times that are no longer marked
DELETE FROM skips WHERE job_id = ?1 AND scheduled_at IN (SELECT value FROM json_each(?2)) RETURNING scheduled_at;

-- drop_skips_of: a job goes; says which times were marked
DELETE FROM skips WHERE job_id = ?1 RETURNING scheduled_at;

-- drop_markers: what stands in the plan for times that are skipped
DELETE FROM planned WHERE job_id = ?1 AND scheduled_at IN (SELECT value FROM json_each(?2)) AND lane = 0;

-- due_skips: skipped times that have come, and that the job's clock has come past
SELECT s.job_id, s.scheduled_at, s.note FROM skips AS s
WHERE s.scheduled_at <= ?1 AND coalesce((
    SELECT c.next_at FROM jobs AS j JOIN clocks AS c ON c.id = j.clock_id WHERE j.id = s.job_id),
    s.scheduled_at + 1) > s.scheduled_at
ORDER BY s.scheduled_at, s.job_id LIMIT ?2;

-- take_markers: what stands in the plan for skipped times that have come; says what was there
DELETE FROM planned WHERE lane = 0 AND (scheduled_at, job_id) IN (
    SELECT value ->> 0, value ->> 1 FROM json_each(?1))
RETURNING scheduled_at, lane, due_at, trigger, fence, tries;

-- add_rerun: which run a run repeats
INSERT INTO reruns (job_id, scheduled_at, of_at, made_at)
VALUES (:job_id, :scheduled_at, :of_at, :made_at);

-- reruns_among: which of a job's runs repeat which, where either is at one of these times
SELECT scheduled_at, of_at FROM reruns WHERE job_id = ?1 AND scheduled_at IN (SELECT value FROM json_each(?2))
UNION
SELECT scheduled_at, of_at FROM (
    SELECT scheduled_at, of_at FROM reruns WHERE job_id = ?1 AND of_at IN (SELECT value FROM json_each(?2))
    ORDER BY of_at LIMIT 1000)
ORDER BY 1;

-- purge_reruns: forget what repeats what
DELETE FROM reruns WHERE (job_id, scheduled_at) IN (
    SELECT job_id, scheduled_at FROM reruns WHERE made_at < ?1 ORDER BY made_at LIMIT ?2);
