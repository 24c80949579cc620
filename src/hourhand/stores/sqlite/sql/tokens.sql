-- part token_columns: a token, in the order in which it is read
id, tenant, name, role, digest, created_at, created_by, expires_at, revoked_at, last_used_at;

-- add_token: a token, unless its id is taken
INSERT INTO tokens (id, tenant, name, role, digest, created_at, created_by, expires_at)
VALUES (:id, :tenant, :name, :role, :digest, :created_at, :created_by, :expires_at) ON CONFLICT DO NOTHING;

-- get_token: one token, of whatever tenant
SELECT {token_columns} FROM tokens WHERE id = ?1;

-- tokens_page: tokens of a tenant, newest first
SELECT {token_columns} FROM tokens WHERE tenant = ?1 AND id < ?2 ORDER BY tenant DESC, id DESC LIMIT ?3;

-- tokens_page_all: tokens of all tenants, newest first
SELECT {token_columns} FROM tokens WHERE id < ?1 ORDER BY id DESC LIMIT ?2;

-- count_live_tokens: how many tokens of a tenant prove something, up to a bound
SELECT count(*) FROM (SELECT 1 FROM tokens WHERE tenant = ?1 AND revoked_at IS NULL
    AND coalesce(expires_at, 9223372036854775807) > ?2
    ORDER BY tenant, coalesce(expires_at, 9223372036854775807) LIMIT ?3) AS few;

-- revoke_token: a token proves nothing from now on
UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL;

-- note_token_use: when some tokens were last used, as far as that is news
UPDATE tokens SET last_used_at = ?2 WHERE id IN (SELECT value FROM json_each(?1))
    AND (last_used_at IS NULL OR last_used_at < ?2);

-- purge_revoked_tokens: forget tokens that were revoked long ago
DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE revoked_at < ?1 ORDER BY revoked_at LIMIT ?2);

-- purge_expired_tokens: forget tokens that expired long ago
DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2);
