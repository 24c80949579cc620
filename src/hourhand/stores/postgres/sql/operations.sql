-- add_operation: one that begins
INSERT INTO operations (id, tenant, revision, body) VALUES ($1, $2, 0, $3);

-- get_operation: one of a tenant
SELECT revision, body FROM operations WHERE id = $1 AND tenant = $2;

-- hold_operation: the same, to be changed
SELECT revision, body FROM operations WHERE id = $1 AND tenant = $2
FOR UPDATE;

-- operations_page: of a tenant, newest first
SELECT revision, body FROM operations WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- count_unfinished_operations: of a tenant, up to a bound
SELECT count(*) FROM (SELECT 1 FROM operations WHERE tenant = $1 AND finished_at IS NULL LIMIT $2) AS counted;

-- unfinished_operations: of all tenants, by id
SELECT revision, body FROM operations WHERE finished_at IS NULL AND id > $1 ORDER BY id LIMIT $2;

-- move_operation: how far it is, where nobody changed it meanwhile
UPDATE operations SET revision = revision + 1, finished_at = :finished_at, body = :body
WHERE id = :id AND revision = :revision;

-- purge_operations: those that were over long ago
DELETE FROM operations WHERE id = ANY (ARRAY(SELECT id FROM operations WHERE finished_at < $1 ORDER BY finished_at LIMIT $2));
