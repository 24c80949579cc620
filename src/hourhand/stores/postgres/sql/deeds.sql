-- add_deed: something that somebody did
INSERT INTO deeds (at, job_id, scheduled_at, version, count, tenant, subject, via, action, object_id, note, request_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::integer[], $6::text[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[]);

-- add_creations: jobs that somebody made at once
INSERT INTO deeds (at, job_id, version, tenant, subject, via, action, request_id)
SELECT :at::bigint, made.id, :version::integer, :tenant::text, :subject::text, :via::text, :action::text, :request_id::text
FROM unnest(:job_ids::bigint[]) AS made (id);

-- deeds_page: what was done in a tenant, newest first; days beside the window are left out by its bounds
SELECT at, id, job_id, scheduled_at, version, count, tenant, subject, via, action, object_id, note, request_id
FROM deeds
WHERE tenant = :tenant AND (at, id) < (:before_at::bigint, :before_id::bigint) AND at <= :before_at::bigint
    AND at >= :from_at::bigint AND at < :to_at::bigint
ORDER BY at DESC, id DESC LIMIT :limit;

-- deeds_page_of: what was done to a job and its runs, newest first
SELECT at, id, job_id, scheduled_at, version, count, tenant, subject, via, action, object_id, note, request_id
FROM deeds
WHERE job_id = :job_id::bigint AND tenant = :tenant
    AND (at, id) < (:before_at::bigint, :before_id::bigint) AND at <= :before_at::bigint
    AND at >= :from_at::bigint AND at < :to_at::bigint
ORDER BY at DESC, id DESC LIMIT :limit;

-- makers_of: who made the versions of a job
SELECT version, subject FROM deeds WHERE job_id = $2 AND tenant = $1 AND version IS NOT NULL ORDER BY at, id;
