-- add_deed: something that somebody did
INSERT INTO deeds (at, job_id, scheduled_at, version, count, tenant, subject, via, action, object_id, note, request_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- add_creations: jobs that somebody made at once
INSERT INTO deeds (at, job_id, version, tenant, subject, via, action, request_id)
SELECT :at, value, :version, :tenant, :subject, :via, :action, :request_id FROM json_each(:job_ids);

-- deeds_page: what was done in a tenant, newest first
SELECT at, id, job_id, scheduled_at, version, count, tenant, subject, via, action, object_id, note, request_id
FROM deeds
WHERE tenant = :tenant AND (at, id) < (:before_at, :before_id) AND at >= :from_at AND at < :to_at
ORDER BY at DESC, id DESC LIMIT :limit;

-- deeds_page_of: what was done to a job and its runs, newest first
SELECT at, id, job_id, scheduled_at, version, count, tenant, subject, via, action, object_id, note, request_id
FROM deeds
WHERE job_id = :job_id AND +tenant = :tenant AND (at, id) < (:before_at, :before_id) AND at >= :from_at AND at < :to_at
ORDER BY at DESC, id DESC LIMIT :limit;

-- makers_of: who made the versions of a job
SELECT version, subject FROM deeds WHERE job_id = ?2 AND +tenant = ?1 AND version IS NOT NULL ORDER BY at, id;

-- purge_deeds: drop old deeds from the front
DELETE FROM deeds WHERE id <= (
    SELECT max(id) FROM (SELECT id, at FROM deeds ORDER BY id LIMIT ?) WHERE at < ?);
