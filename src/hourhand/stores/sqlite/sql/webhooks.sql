-- any_listener: whether any job follows another at all, and whether there is any webhook
SELECT EXISTS (SELECT 1 FROM edges), EXISTS (SELECT 1 FROM webhooks);

-- part hears: whether a tenant has a webhook for what happened
EXISTS (SELECT 1 FROM webhooks AS w WHERE w.tenant = told.tenant AND w.enabled = 1 AND (w.kinds >> told.kind) & 1)

-- tell_settled: what became of a batch, where a webhook wants to hear of it; the kinds of runs' events are the codes of what happened
INSERT INTO webhook_events (kind, at, job_id, scheduled_at, attempt, version, due_at, started_at, tenant, name, detail)
SELECT * FROM (
    SELECT d.event AS kind, d.finished_at, d.job_id, d.scheduled_at, d.fence, d.version, r.due_at, d.started_at,
        ifnull(j.tenant, v.tenant) AS tenant, coalesce(j.name, v.spec ->> 'name', ''), iif(d.event = 1, NULL, d.detail)
    FROM temp.done AS d CROSS JOIN running AS r ON r.job_id = d.job_id AND r.slot = d.slot
    LEFT JOIN jobs AS j ON j.id = d.job_id
    LEFT JOIN versions AS v ON j.id IS NULL AND v.job_id = d.job_id AND v.deleted = 1
    WHERE d.event IN (1, 2, 3, 4, 7)) AS told
WHERE {hears};

-- tell_endings: runs that ended without an attempt, where a webhook wants to hear of it
INSERT INTO webhook_events (kind, at, job_id, scheduled_at, attempt, version, due_at, started_at, tenant, name, detail)
SELECT * FROM (
    SELECT e.value ->> 0 AS kind, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, e.value ->> 6, NULL,
        ifnull(j.tenant, v.tenant) AS tenant, coalesce(j.name, v.spec ->> 'name', ''), e.value ->> 7
    FROM json_each(?) AS e LEFT JOIN jobs AS j ON j.id = e.value ->> 2
    LEFT JOIN versions AS v ON j.id IS NULL AND v.job_id = e.value ->> 2 AND v.deleted = 1) AS told
WHERE EXISTS (SELECT 1 FROM webhooks) AND {hears};

-- tell_jobs: versions of jobs that began or ended, where a webhook wants to hear of it
INSERT INTO webhook_events (kind, at, job_id, attempt, version, tenant, name, detail)
SELECT * FROM (
    SELECT e.value ->> 0 AS kind, e.value ->> 1, e.value ->> 2, 0, e.value ->> 3, e.value ->> 4 AS tenant, e.value ->> 5,
        e.value ->> 6
    FROM json_each(?) AS e) AS told
WHERE EXISTS (SELECT 1 FROM webhooks) AND {hears};

-- take_webhook_events: the oldest that nobody has made deliveries of
DELETE FROM webhook_events WHERE id IN (SELECT id FROM webhook_events ORDER BY id LIMIT ?)
RETURNING id, kind, at, job_id, scheduled_at, attempt, version, due_at, started_at, tenant, name, detail;

-- tags_of: tags of jobs, of deleted ones too
SELECT asked.value, ifnull(j.spec, v.spec) ->> '$.tags' FROM json_each(?) AS asked
LEFT JOIN jobs AS j ON j.id = asked.value
LEFT JOIN versions AS v ON j.id IS NULL AND v.job_id = asked.value AND v.deleted = 1;

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
SELECT {webhook_columns} FROM webhooks WHERE id = ?;

-- lock_webhook: one webhook, and under which fence it was taken last
SELECT {webhook_columns}, fence FROM webhooks WHERE id = ?;

-- webhooks_of: webhooks of a tenant, oldest first
SELECT {webhook_columns} FROM webhooks WHERE tenant = ? ORDER BY id;

-- webhooks_hearing: enabled webhooks of some tenants
SELECT {webhook_columns} FROM webhooks WHERE tenant IN (SELECT value FROM json_each(?)) AND enabled = 1 ORDER BY id;

-- webhook_backlogs: how many deliveries of some webhooks wait
SELECT value, (SELECT count(*) FROM webhook_deliveries AS d WHERE d.webhook_id = value AND d.state = 0) FROM json_each(?);

-- drop_webhook: forget a webhook
DELETE FROM webhooks WHERE id = ?;

-- drop_deliveries_of: forget all deliveries of a webhook
DELETE FROM webhook_deliveries WHERE webhook_id = ?;

-- wake_webhooks: something waits for these since just now, those that are still there; says which
UPDATE webhooks SET due_at = min(ifnull(due_at, 4611686018427387903), max(:now, rest_until, held_until))
WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id;

-- add_delivery: an event for a webhook; what was made before stands
INSERT INTO webhook_deliveries (webhook_id, event_id, kind, made_at, due_at, body)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- part delivery_columns: a delivery in the order in which it is read
id, webhook_id, event_id, kind, state, tries, made_at, due_at, tried_at, status, error, took_ms, body

-- get_delivery: one delivery of a webhook
SELECT {delivery_columns} FROM webhook_deliveries WHERE webhook_id = ? AND event_id = ?;

-- deliveries_page: deliveries of a webhook, newest first
SELECT {delivery_columns} FROM webhook_deliveries WHERE webhook_id = ? AND (made_at, id) < (?, ?)
ORDER BY made_at DESC, id DESC LIMIT ?;

-- deliveries_page_in: those in one state
SELECT {delivery_columns} FROM webhook_deliveries WHERE webhook_id = ? AND (made_at, id) < (?, ?) AND state = ?
ORDER BY made_at DESC, id DESC LIMIT ?;

-- deliver_again: a delivery begins anew
UPDATE webhook_deliveries SET state = 0, tries = 0, due_at = ? WHERE webhook_id = ? AND event_id = ?;

-- take_webhooks: webhooks with something due that nobody has in hand; they are in this hand now
UPDATE webhooks SET fence = fence + 1, held_until = :until, due_at = :until WHERE id IN (
    SELECT id FROM webhooks WHERE enabled = 1 AND due_at <= :now ORDER BY due_at LIMIT :limit)
RETURNING {webhook_columns}, fence;

-- due_deliveries: what is due of some webhooks, of each the first few
SELECT {delivery_columns} FROM (
    SELECT d.*, row_number() OVER (PARTITION BY d.webhook_id ORDER BY d.due_at, d.id) AS turn
    FROM json_each(:ids) AS asked CROSS JOIN webhook_deliveries AS d ON d.webhook_id = asked.value
    WHERE d.state = 0 AND d.due_at <= :now)
WHERE turn <= :each ORDER BY webhook_id, turn;

-- webhook_work: whether something was noted that nobody has made deliveries of, and when something may be due
SELECT EXISTS (SELECT 1 FROM webhook_events), (
    SELECT min(due_at) FROM webhooks WHERE enabled = 1 AND due_at IS NOT NULL);

-- put_deliveries: what calls came to
UPDATE webhook_deliveries SET state = t.value ->> 1, tries = t.value ->> 2, due_at = t.value ->> 3, tried_at = t.value ->> 4,
    status = t.value ->> 5, error = t.value ->> 6, took_ms = t.value ->> 7
FROM json_each(?) AS t WHERE webhook_deliveries.id = t.value ->> 0;

-- let_go_webhook: nobody has a webhook in hand any more; its next delivery says when it is looked at
UPDATE webhooks SET held_until = 0, due_at = (
    SELECT max(min(d.due_at), webhooks.rest_until) FROM webhook_deliveries AS d WHERE d.webhook_id = webhooks.id AND d.state = 0)
WHERE id = ?;

-- let_go_all_webhooks: nobody of an earlier process has a webhook in hand
UPDATE webhooks SET held_until = 0, due_at = 0 WHERE held_until > 0;

-- webhook_ids: webhooks of all tenants after an id
SELECT id FROM webhooks WHERE id > ? ORDER BY id LIMIT ?;

-- drop_waiting_deliveries: those of a webhook that wait, but are too many or too old
DELETE FROM webhook_deliveries WHERE webhook_id = :id AND state = 0 AND (made_at < :before OR (made_at, id) <= (
    SELECT made_at, id FROM webhook_deliveries WHERE webhook_id = :id AND state = 0
    ORDER BY made_at DESC, id DESC LIMIT 1 OFFSET :most));

-- drop_ended_deliveries: those of a webhook that are over, and too many or too old
DELETE FROM webhook_deliveries WHERE webhook_id = :id AND state <> 0 AND (made_at < :before OR (made_at, id) <= (
    SELECT made_at, id FROM webhook_deliveries WHERE webhook_id = :id AND state <> 0
    ORDER BY made_at DESC, id DESC LIMIT 1 OFFSET :most));

-- count_dropped: deliveries of a webhook that will not be made
UPDATE webhooks SET dropped = dropped + ? WHERE id = ?;
