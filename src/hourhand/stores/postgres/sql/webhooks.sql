-- part hears: whether a tenant has a webhook for what happened; asked only where there is any webhook at all
EXISTS (SELECT 1 FROM webhooks) AND EXISTS (
    SELECT 1 FROM webhooks AS w WHERE w.tenant = told.tenant AND w.enabled = 1 AND (w.kinds >> told.kind) & 1 = 1 OFFSET 0)

-- part owner: whose job it is, or was, and how it is called
LATERAL (
    SELECT tenant, name FROM jobs WHERE jobs.id = f.job_id
    UNION ALL
    SELECT tenant, coalesce(spec::json ->> 'name', '') FROM versions WHERE versions.job_id = f.job_id AND deleted = 1
    LIMIT 1) AS j

-- tell_endings: runs that ended without an attempt, where a webhook wants to hear of it
INSERT INTO webhook_events (kind, at, job_id, scheduled_at, attempt, version, due_at, tenant, name, detail)
SELECT told.kind, told.at, told.job_id, told.scheduled_at, told.attempt, told.version, told.due_at, told.tenant, told.name,
    told.detail
FROM (SELECT f.*, j.tenant, j.name FROM (
        SELECT (e ->> 0)::integer AS kind, (e ->> 1)::bigint AS at, (e ->> 2)::bigint AS job_id,
            (e ->> 3)::bigint AS scheduled_at, (e ->> 4)::integer AS attempt, (e ->> 5)::integer AS version,
            (e ->> 6)::bigint AS due_at, e ->> 7 AS detail
        FROM json_array_elements($1::text::json) AS e) AS f CROSS JOIN {owner}) AS told
WHERE {hears};

-- tell_jobs: versions of jobs that began or ended, where a webhook wants to hear of it
INSERT INTO webhook_events (kind, at, job_id, attempt, version, tenant, name, detail)
SELECT told.kind, told.at, told.job_id, 0, told.version, told.tenant, told.name, told.detail
FROM (SELECT (e ->> 0)::integer AS kind, (e ->> 1)::bigint AS at, (e ->> 2)::bigint AS job_id, (e ->> 3)::integer AS version,
        e ->> 4 AS tenant, e ->> 5 AS name, e ->> 6 AS detail
    FROM json_array_elements($1::text::json) AS e) AS told
WHERE {hears};

-- take_webhook_events: the oldest that nobody has made deliveries of, or is at
DELETE FROM webhook_events WHERE id = ANY (ARRAY(
    SELECT id FROM webhook_events ORDER BY id LIMIT $1::bigint FOR UPDATE SKIP LOCKED))
RETURNING id, kind, at, job_id, scheduled_at, attempt, version, due_at, started_at, tenant, name, detail;

-- tags_of: tags of jobs, of deleted ones too
SELECT f.job_id, j.tags FROM unnest($1::bigint[]) AS f (job_id) CROSS JOIN LATERAL (
    SELECT spec::json ->> 'tags' AS tags FROM jobs WHERE jobs.id = f.job_id
    UNION ALL
    SELECT spec::json ->> 'tags' FROM versions WHERE versions.job_id = f.job_id AND deleted = 1
    LIMIT 1) AS j;

-- part webhook_columns: a webhook in the order in which it is read
id, tenant, url, types, jobs, tags, description, enabled, disabled_reason, secrets, rotated_at, succeeded_at, failed_at,
    failing_since, failures, rest_until, error, dropped, created_at, updated_at

-- add_webhook: a webhook
INSERT INTO webhooks (id, tenant, url, types, jobs, tags, description, enabled, disabled_reason, secrets, rotated_at,
    succeeded_at, failed_at, failing_since, failures, rest_until, error, created_at, updated_at, kinds)
VALUES (:id, :tenant, :url, :types, :jobs, :tags, :description, :enabled, :disabled_reason, :secrets, :rotated_at,
    :succeeded_at, :failed_at, :failing_since, :failures, :rest_until, :error, :created_at, :updated_at, :kinds)
ON CONFLICT DO NOTHING;

-- put_webhook: what changes of a webhook
UPDATE webhooks SET url = :url, types = :types, jobs = :jobs, tags = :tags, description = :description, enabled = :enabled,
    disabled_reason = :disabled_reason, secrets = :secrets, rotated_at = :rotated_at, succeeded_at = :succeeded_at,
    failed_at = :failed_at, failing_since = :failing_since, failures = :failures, rest_until = :rest_until,
    error = :error, updated_at = :updated_at, kinds = :kinds
WHERE id = :id;

-- get_webhook: one webhook
SELECT {webhook_columns} FROM webhooks WHERE id = $1;

-- lock_webhook: one webhook, held until the end, and under which fence it was taken last
SELECT {webhook_columns}, fence FROM webhooks WHERE id = $1 FOR UPDATE;

-- webhooks_of: webhooks of a tenant, oldest first
SELECT {webhook_columns} FROM webhooks WHERE tenant = $1 ORDER BY id;

-- webhooks_hearing: enabled webhooks of some tenants
SELECT {webhook_columns} FROM webhooks WHERE tenant = ANY ($1::text[]) AND enabled = 1 ORDER BY id;

-- webhook_backlogs: how many deliveries of some webhooks wait
SELECT asked.id, (SELECT count(*) FROM webhook_deliveries AS d WHERE d.webhook_id = asked.id AND d.state = 0)
FROM unnest($1::bigint[]) AS asked (id);

-- drop_webhook: forget a webhook
DELETE FROM webhooks WHERE id = $1;

-- drop_deliveries_of: forget all deliveries of a webhook
DELETE FROM webhook_deliveries WHERE webhook_id = $1;

-- wake_webhooks: something waits for these since just now, those that are still there; says which
UPDATE webhooks SET due_at = least(due_at, greatest(:now::bigint, rest_until, held_until))
WHERE id = ANY (:ids::bigint[]) RETURNING id;

-- add_delivery: an event for a webhook; what was made before stands
INSERT INTO webhook_deliveries (webhook_id, event_id, kind, made_at, due_at, body)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::text[])
ON CONFLICT DO NOTHING;

-- part delivery_columns: a delivery in the order in which it is read
id, webhook_id, event_id, kind, state, tries, made_at, due_at, tried_at, status, error, took_ms, body

-- get_delivery: one delivery of a webhook
SELECT {delivery_columns} FROM webhook_deliveries WHERE webhook_id = $1 AND event_id = $2;

-- deliveries_page: deliveries of a webhook, newest first
SELECT {delivery_columns} FROM webhook_deliveries WHERE webhook_id = $1 AND (made_at, id) < ($2, $3)
ORDER BY webhook_id DESC, made_at DESC, id DESC LIMIT $4;

-- deliveries_page_in: those in one state
SELECT {delivery_columns} FROM webhook_deliveries WHERE webhook_id = $1 AND (made_at, id) < ($2, $3) AND state = $4
ORDER BY webhook_id DESC, made_at DESC, id DESC LIMIT $5;

-- deliver_again: a delivery begins anew
UPDATE webhook_deliveries SET state = 0, tries = 0, due_at = $1 WHERE webhook_id = $2 AND event_id = $3;

-- take_webhooks: webhooks with something due that nobody has in hand; they are in this hand now
UPDATE webhooks SET fence = fence + 1, held_until = :until, due_at = :until WHERE id = ANY (ARRAY(
    SELECT id FROM webhooks WHERE enabled = 1 AND due_at IS NOT NULL AND due_at <= :now::bigint
    ORDER BY due_at LIMIT :limit::bigint FOR UPDATE SKIP LOCKED))
RETURNING {webhook_columns}, fence;

-- due_deliveries: what is due of some webhooks, of each the first few
SELECT d.* FROM unnest(:ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT {delivery_columns} FROM webhook_deliveries
    WHERE webhook_deliveries.webhook_id = asked.id AND state = 0 AND due_at <= :now::bigint
    ORDER BY webhook_id, due_at, id LIMIT :each::bigint) AS d;

-- webhook_work: whether something was noted that nobody has made deliveries of, and when something may be due
SELECT EXISTS (SELECT 1 FROM webhook_events), (
    SELECT due_at FROM webhooks WHERE enabled = 1 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1);

-- put_deliveries: what calls came to
WITH found AS MATERIALIZED (
    SELECT t AS one, d.place_at FROM json_array_elements($1::text::json) AS t CROSS JOIN LATERAL (
        SELECT ctid AS place_at FROM webhook_deliveries WHERE webhook_deliveries.id = (t ->> 0)::bigint FOR UPDATE) AS d)
UPDATE webhook_deliveries SET state = (one ->> 1)::smallint, tries = (one ->> 2)::smallint, due_at = (one ->> 3)::bigint,
    tried_at = (one ->> 4)::bigint, status = (one ->> 5)::smallint, error = one ->> 6, took_ms = (one ->> 7)::integer
FROM found WHERE webhook_deliveries.ctid = found.place_at;

-- let_go_webhook: nobody has a webhook in hand any more; its next delivery says when it is looked at
UPDATE webhooks SET held_until = 0, due_at = (
    SELECT CASE WHEN min(d.due_at) IS NOT NULL THEN greatest(min(d.due_at), webhooks.rest_until) END
    FROM webhook_deliveries AS d WHERE d.webhook_id = webhooks.id AND d.state = 0)
WHERE id = $1;

-- webhook_ids: webhooks of all tenants after an id
SELECT id FROM webhooks WHERE id > $1 ORDER BY id LIMIT $2;

-- drop_waiting_deliveries: those of a webhook that wait, but are too many or too old
DELETE FROM webhook_deliveries WHERE webhook_id = :id::bigint AND state = 0 AND (made_at < :before::bigint OR (made_at, id) <= (
    SELECT made_at, id FROM webhook_deliveries WHERE webhook_id = :id::bigint AND state = 0
    ORDER BY made_at DESC, id DESC LIMIT 1 OFFSET :most::bigint));

-- drop_ended_deliveries: those of a webhook that are over, and too many or too old
DELETE FROM webhook_deliveries WHERE webhook_id = :id::bigint AND state <> 0 AND (made_at < :before::bigint OR (made_at, id) <= (
    SELECT made_at, id FROM webhook_deliveries WHERE webhook_id = :id::bigint AND state <> 0
    ORDER BY made_at DESC, id DESC LIMIT 1 OFFSET :most::bigint));

-- count_dropped: deliveries of a webhook that will not be made
UPDATE webhooks SET dropped = dropped + $1 WHERE id = $2;
