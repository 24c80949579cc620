-- Answers to requests that may be repeated, and what was changed under their keys.

-- add_answer: take a key that nobody has
INSERT INTO answers (tenant, key, sum, fence, since, lease_until, began_at)
VALUES (:tenant, :key, :sum, :fence, :since, :lease_until, :began_at) ON CONFLICT DO NOTHING;

-- lock_answer: who has a key, and the answer if there is one
SELECT sum, fence, since, lease_until, began_at, status, headers, body FROM answers WHERE tenant = ?1 AND key = ?2;

-- retake_answer: take a locked key over
UPDATE answers SET sum = :sum, fence = :fence, since = :since, lease_until = :lease_until, began_at = :began_at,
    status = NULL, headers = NULL, body = NULL
WHERE tenant = :tenant AND key = :key;

-- finish_answer: keep an answer, if it is still this one's turn
UPDATE answers SET status = ?4, headers = ?5, body = ?6 WHERE tenant = ?1 AND key = ?2 AND fence = ?3 AND status IS NULL;

-- abandon_answer: end a lease
UPDATE answers SET lease_until = ?4 WHERE tenant = ?1 AND key = ?2 AND fence = ?3 AND status IS NULL;

-- mark_answer: what a change under a key leaves behind; touches nothing where a later fence is known
INSERT INTO answer_marks AS m (tenant, key, fence, since, applied, made_at)
VALUES (:tenant, :key, :fence, :since, :applied, :made_at)
ON CONFLICT (tenant, key) DO UPDATE SET fence = excluded.fence, since = excluded.since, made_at = excluded.made_at,
    applied = CASE WHEN m.since < excluded.since THEN excluded.applied ELSE max(m.applied, excluded.applied) END
WHERE m.fence <= excluded.fence;

-- answer_applied: whether something was changed under a key that cannot be told again
SELECT applied FROM answer_marks WHERE tenant = ?1 AND key = ?2;

-- add_answer_make: a job was made under a key
INSERT INTO answer_makes (tenant, key, since, place, job_id, made_at) VALUES (?, ?, ?, ?, ?, ?);

-- answer_makes_of: jobs that were made under a key
SELECT place, job_id FROM answer_makes WHERE tenant = ?1 AND key = ?2 AND since = ?3;

-- purge_answers: forget old answers
DELETE FROM answers WHERE (tenant, key) IN (
    SELECT tenant, key FROM answers WHERE began_at < ? ORDER BY began_at LIMIT ?);

-- purge_answer_marks: forget what was changed under old keys
DELETE FROM answer_marks WHERE (tenant, key) IN (
    SELECT tenant, key FROM answer_marks WHERE made_at < ? ORDER BY made_at LIMIT ?);

-- purge_answer_makes: forget what was made under old keys
DELETE FROM answer_makes WHERE (tenant, key, since, place) IN (
    SELECT tenant, key, since, place FROM answer_makes WHERE made_at < ? ORDER BY made_at LIMIT ?);
