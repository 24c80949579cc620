-- add_operation: one that begins
INSERT INTO operations (id, tenant, revision, body) VALUES (?, ?, 0, ?);

-- get_operation: one of a tenant
SELECT revision, body FROM operations WHERE id = ? AND tenant = ?;

-- hold_operation: the same, to be changed
SELECT revision, body FROM operations WHERE id = ? AND tenant = ?;

-- operations_page: of a tenant, newest first
SELECT revision, body FROM operations WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- count_unfinished_operations: of a tenant, up to a bound
SELECT count(*) FROM (SELECT 1 FROM operations WHERE tenant = ? AND finished_at IS NULL LIMIT ?) AS counted;

-- unfinished_operations: of all tenants, by id
SELECT revision, body FROM operations WHERE finished_at IS NULL AND id > ? ORDER BY id LIMIT ?;

-- move_operation: how far it is, where nobody changed it meanwhile
UPDATE operations SET revision = revision + 1, finished_at = :finished_at, body = :body
WHERE id = :id AND revision = :revision;

-- purge_operations: those that were over long ago
DELETE FROM operations WHERE id IN (SELECT id FROM operations WHERE finished_at < ? ORDER BY finished_at LIMIT ?);
