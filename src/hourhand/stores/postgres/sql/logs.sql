-- add_log: pieces of what attempts wrote; each in the day of its run, or apart where it is a day or more off
INSERT INTO run_log (job_id, scheduled_at, attempt, seq, at, stream, text, bucket)
SELECT job_id, scheduled_at, attempt, seq, at, stream, text,
    CASE WHEN abs(scheduled_at - at) < 86400000000 THEN scheduled_at / 86400000000 ELSE 0 END
FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[], $6::smallint[], $7::text[])
    AS c (job_id, scheduled_at, attempt, seq, at, stream, text)
ON CONFLICT DO NOTHING;

-- log_of: what a run's attempts wrote behind a place, in order
SELECT attempt, seq, at, stream, text FROM (
    (SELECT attempt, seq, at, stream, text FROM run_log
    WHERE job_id = :job_id::bigint AND scheduled_at = :scheduled_at::bigint
        AND bucket = (:scheduled_at::bigint / 86400000000)::integer
        AND (attempt, seq) > (:attempt::integer, :seq::integer) AND attempt <= :last::integer
    ORDER BY attempt, seq LIMIT :limit::bigint)
    UNION ALL
    (SELECT attempt, seq, at, stream, text FROM run_log_far
    WHERE job_id = :job_id::bigint AND scheduled_at = :scheduled_at::bigint
        AND (attempt, seq) > (:attempt::integer, :seq::integer) AND attempt <= :last::integer
    ORDER BY attempt, seq LIMIT :limit::bigint)) AS found
ORDER BY attempt, seq LIMIT :limit::bigint;
