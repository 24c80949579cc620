-- add_log: a piece of what an attempt wrote
INSERT INTO run_log (job_id, scheduled_at, attempt, seq, at, stream, text) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- log_of: what a run's attempts wrote behind a place, in order
SELECT attempt, seq, at, stream, text FROM run_log
WHERE job_id = :job_id AND scheduled_at = :scheduled_at AND (attempt, seq) > (:attempt, :seq) AND attempt <= :last
ORDER BY attempt, seq LIMIT :limit;
