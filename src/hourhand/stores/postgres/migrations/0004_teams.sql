-- What many teams need who share one system: tokens, who did what, quotas, answers that are kept for a repeated request,
-- operations on many jobs, webhooks. One step, since the version before goes on working at a database that is one step further.

-- --- tokens
-- API tokens. Of a secret only its hash is kept; one that was revoked stays for as long as history, to be seen.
CREATE TABLE tokens (
    id           bigint PRIMARY KEY,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    revoked_at   bigint,
    last_used_at bigint,
    tenant       text COLLATE "C" NOT NULL,
    name         text NOT NULL,
    role         text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    created_by   text,
    digest       bytea NOT NULL CHECK (length(digest) = 32)
) WITH (fillfactor = 50);
CREATE INDEX tokens_tenant ON tokens (tenant, id);
CREATE INDEX tokens_revoked ON tokens (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX tokens_expiring ON tokens (expires_at) WHERE expires_at IS NOT NULL;

-- --- deeds: who did what

-- --- limits and quotas

-- --- answers to requests that may be repeated
CREATE TABLE answers (
    tenant text NOT NULL,
    key text NOT NULL,
    sum bytea NOT NULL, -- of what makes the request what it is
    fence bigint NOT NULL, -- of whoever has the key at present
    since bigint NOT NULL, -- fence of the first who had it for this request
    lease_until bigint NOT NULL,
    began_at bigint NOT NULL,
    status integer, -- with headers and body, once it is answered
    headers text,
    body bytea,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX answers_by_age ON answers (began_at);

-- What was changed under a key, in the database where it was changed.
CREATE TABLE answer_marks (
    tenant text NOT NULL,
    key text NOT NULL,
    fence bigint NOT NULL, -- what is written under an earlier one is refused
    since bigint NOT NULL,
    applied integer NOT NULL, -- something was changed that cannot be told again
    made_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX answer_marks_by_age ON answer_marks (made_at);

-- Jobs that were made under a key, by their place in the request: a repeat finds them.
CREATE TABLE answer_makes (
    tenant text NOT NULL,
    key text NOT NULL,
    since bigint NOT NULL,
    place integer NOT NULL,
    job_id bigint NOT NULL,
    made_at bigint NOT NULL,
    PRIMARY KEY (tenant, key, since, place)
);
CREATE INDEX answer_makes_by_age ON answer_makes (made_at);

-- --- operations on many jobs

-- One action on all that match a filter. The body has everything; beside it stands what statements look for.
CREATE TABLE operations (
    id          bigint PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    revision    bigint NOT NULL,
    finished_at bigint,
    body        text NOT NULL
);
CREATE INDEX operations_tenant ON operations (tenant, id);
CREATE INDEX operations_unfinished ON operations (id) WHERE finished_at IS NULL;
CREATE INDEX operations_unfinished_of ON operations (tenant) WHERE finished_at IS NULL;
CREATE INDEX operations_old ON operations (finished_at) WHERE finished_at IS NOT NULL;

-- --- webhooks
