-- The first schema. A run's state is the table it lives in: planned, blocked, running, dead, history.
-- Hot tables stay small and lead their keys with what their one query needs; see docs/architecture.md.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE pools (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- One rule in one segment. next_at: everything before it is planned; NULL: no active member, asleep.
CREATE TABLE clocks (
    id      INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL,
    rule    TEXT NOT NULL,
    next_at INTEGER,
    UNIQUE (rule, segment)
);
CREATE INDEX clocks_due ON clocks (next_at) WHERE next_at IS NOT NULL;

-- What members under one misfire policy missed while nobody planned; read together with versions.
CREATE TABLE clock_gaps (
    clock_id   INTEGER NOT NULL,
    from_at    INTEGER NOT NULL,
    to_at      INTEGER NOT NULL,
    policy     TEXT NOT NULL,
    grace_us   INTEGER NOT NULL,
    catch_up   INTEGER NOT NULL,
    missed     INTEGER NOT NULL,
    ran        INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,
    PRIMARY KEY (clock_id, from_at, to_at, policy, grace_us, catch_up)
) WITHOUT ROWID;

-- The present version of each job. The columns beside spec are what statements need without parsing it.
CREATE TABLE jobs (
    id           INTEGER PRIMARY KEY,
    tenant       TEXT NOT NULL,
    key          TEXT,
    name         TEXT NOT NULL,
    version      INTEGER NOT NULL,
    version_from INTEGER NOT NULL,
    paused       INTEGER NOT NULL,
    note         TEXT,
    paused_until INTEGER,
    clock_id     INTEGER,
    since        INTEGER NOT NULL,
    until        INTEGER NOT NULL,
    once_at      INTEGER,
    attend_at    INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    lane         INTEGER NOT NULL,
    concurrency  INTEGER,
    at_most_once INTEGER NOT NULL,
    grace_us     INTEGER NOT NULL,
    timeout_us   INTEGER NOT NULL,
    spec         TEXT NOT NULL,
    CHECK (concurrency IS NULL OR concurrency BETWEEN 1 AND 1000)
);
CREATE UNIQUE INDEX jobs_key ON jobs (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_name ON jobs (tenant, name);
CREATE INDEX jobs_attend ON jobs (attend_at) WHERE attend_at IS NOT NULL;
CREATE INDEX jobs_paused ON jobs (tenant, id) WHERE paused = 1;

-- A job's columns in the order in which rows.py reads them.
CREATE VIEW job_records AS
SELECT id, tenant, version, version_from, paused, note, paused_until, clock_id, since, until, once_at, attend_at,
    created_at, updated_at, lane, spec
FROM jobs;

-- Versions that are over; the present one is in jobs. Append-only, and outlives history.
CREATE TABLE versions (
    job_id       INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    tenant       TEXT NOT NULL,
    version_from INTEGER NOT NULL,
    until        INTEGER NOT NULL,
    paused       INTEGER NOT NULL,
    deleted      INTEGER NOT NULL,
    note         TEXT,
    spec         TEXT NOT NULL,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;

-- Active recurring jobs by clock, with just what planning needs.
CREATE TABLE members (
    clock_id  INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    lane      INTEGER NOT NULL,
    jitter_us INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    policy    TEXT NOT NULL,
    grace_us  INTEGER NOT NULL,
    catch_up  INTEGER NOT NULL,
    PRIMARY KEY (clock_id, job_id)
) WITHOUT ROWID;

CREATE TABLE planned (
    scheduled_at INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    lane         INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    trigger      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    tries        INTEGER NOT NULL,
    PRIMARY KEY (scheduled_at, job_id)
) WITHOUT ROWID;
CREATE INDEX planned_lane ON planned (lane, due_at);
CREATE INDEX planned_beside ON planned (job_id, scheduled_at) WHERE trigger <> 0;

-- The concurrency limit is the primary key. phase: 0 ready, 1 executing, 2 reported, 3 retrying.
CREATE TABLE running (
    job_id       INTEGER NOT NULL,
    slot         INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    lane         INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    trigger      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    tries        INTEGER NOT NULL,
    phase        INTEGER NOT NULL,
    node_id      INTEGER,
    deadline_at  INTEGER,
    claimed_at   INTEGER,
    version      INTEGER,
    cancel       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, slot)
) WITHOUT ROWID;
CREATE INDEX running_held ON running (node_id, deadline_at) WHERE phase IN (1, 2);
CREATE INDEX running_lane ON running (lane, due_at) WHERE phase IN (0, 3);
CREATE INDEX running_cancel ON running (node_id) WHERE cancel = 1;

-- Waiting for a slot. rank 0: scheduled, 1: the others, which wait behind them.
CREATE TABLE blocked (
    job_id       INTEGER NOT NULL,
    rank         INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    lane         INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    trigger      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    tries        INTEGER NOT NULL,
    PRIMARY KEY (job_id, rank, scheduled_at)
) WITHOUT ROWID;

CREATE TABLE dead (
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    tenant       TEXT NOT NULL,
    failed_at    INTEGER NOT NULL,
    trigger      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    tries        INTEGER NOT NULL,
    lane         INTEGER NOT NULL,
    error        TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    PRIMARY KEY (job_id, scheduled_at)
) WITHOUT ROWID;
CREATE INDEX dead_newest ON dead (tenant, failed_at, job_id, scheduled_at);
CREATE INDEX dead_old ON dead (failed_at);

-- A row per attempt, the last is final; never rewritten; dropped from the front, by id.
CREATE TABLE history (
    id           INTEGER PRIMARY KEY,
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    trigger      INTEGER NOT NULL,
    tries        INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    started_at   INTEGER,
    finished_at  INTEGER NOT NULL,
    version      INTEGER,
    worker       TEXT,
    detail       TEXT
);
CREATE UNIQUE INDEX history_run ON history (job_id, scheduled_at, attempt);

CREATE TABLE nodes (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
);

-- Keys of requests for manual runs, so that a repeated request is the same run.
CREATE TABLE request_keys (
    job_id       INTEGER NOT NULL,
    key          TEXT NOT NULL,
    scheduled_at INTEGER NOT NULL,
    made_at      INTEGER NOT NULL,
    PRIMARY KEY (job_id, key)
) WITHOUT ROWID;
CREATE INDEX request_keys_old ON request_keys (made_at);
