-- The first schema. A run's state is the table it lives in: planned, blocked, running, dead, history.
-- Hot tables stay small and lead their keys with what their one query needs; see docs/architecture.md.
-- Instants are microseconds since the epoch. Texts that are compared or sorted are so byte by byte.

CREATE TABLE pools (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- One rule in one segment. next_at: everything before it is planned; NULL: no active member, asleep.
CREATE TABLE clocks (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    segment integer NOT NULL,
    rule    text COLLATE "C" NOT NULL,
    next_at bigint,
    UNIQUE (segment, rule)
) WITH (fillfactor = 70);
CREATE INDEX clocks_due ON clocks (segment, next_at) WHERE next_at IS NOT NULL;

-- What members under one misfire policy missed while nobody planned; read together with versions.
CREATE TABLE clock_gaps (
    clock_id   bigint NOT NULL,
    from_at    bigint NOT NULL,
    to_at      bigint NOT NULL,
    policy     text COLLATE "C" NOT NULL,
    grace_us   bigint NOT NULL,
    catch_up   integer NOT NULL,
    missed     bigint NOT NULL,
    ran        bigint NOT NULL,
    decided_at bigint NOT NULL,
    PRIMARY KEY (clock_id, from_at, to_at, policy, grace_us, catch_up)
);
CREATE INDEX clock_gaps_old ON clock_gaps (decided_at);

-- The present version of each job. The columns beside spec are what statements need without parsing it.
CREATE TABLE jobs (
    id           bigint PRIMARY KEY,
    version_from bigint NOT NULL,
    paused_until bigint,
    clock_id     bigint,
    since        bigint NOT NULL,
    until        bigint NOT NULL,
    once_at      bigint,
    attend_at    bigint,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    grace_us     bigint NOT NULL,
    timeout_us   bigint NOT NULL,
    version      integer NOT NULL,
    lane         integer NOT NULL,
    concurrency  integer,
    paused       smallint NOT NULL,
    at_most_once smallint NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    key          text COLLATE "C",
    name         text COLLATE "C" NOT NULL,
    note         text,
    spec         text NOT NULL,
    CHECK (concurrency IS NULL OR concurrency BETWEEN 1 AND 1000)
);
CREATE UNIQUE INDEX jobs_key ON jobs (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_name ON jobs (tenant, name, id);
CREATE INDEX jobs_tenant ON jobs (tenant, id);
CREATE INDEX jobs_attend ON jobs (attend_at) WHERE attend_at IS NOT NULL;
CREATE INDEX jobs_paused ON jobs (tenant, id) WHERE paused = 1;

-- A job's columns in the order in which rows.py reads them.
CREATE VIEW job_records AS
SELECT id, tenant, version, version_from, paused, note, paused_until, clock_id, since, until, once_at, attend_at,
    created_at, updated_at, lane, spec
FROM jobs;

-- Versions that are over; the present one is in jobs. Append-only, and outlives history.
CREATE TABLE versions (
    job_id       bigint NOT NULL,
    version      integer NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    version_from bigint NOT NULL,
    until        bigint NOT NULL,
    paused       smallint NOT NULL,
    deleted      smallint NOT NULL,
    note         text,
    spec         text NOT NULL,
    PRIMARY KEY (job_id, version)
);

-- Active recurring jobs by clock, with just what planning needs.
CREATE TABLE members (
    clock_id  bigint NOT NULL,
    job_id    bigint NOT NULL,
    jitter_us bigint NOT NULL,
    since     bigint NOT NULL,
    until     bigint NOT NULL,
    grace_us  bigint NOT NULL,
    lane      integer NOT NULL,
    catch_up  integer NOT NULL,
    policy    text COLLATE "C" NOT NULL,
    PRIMARY KEY (clock_id, job_id)
);

-- Keys lead with time; the lane's index holds the whole order of a claim, so that ties need no sort.
CREATE TABLE planned (
    scheduled_at bigint NOT NULL,
    job_id       bigint NOT NULL,
    due_at       bigint NOT NULL,
    lane         integer NOT NULL,
    fence        integer NOT NULL,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    PRIMARY KEY (scheduled_at, job_id)
);
CREATE INDEX planned_lane ON planned (lane, due_at, scheduled_at, job_id);
CREATE INDEX planned_beside ON planned (job_id, scheduled_at) WHERE trigger <> 0;

-- The concurrency limit is the primary key. phase: 0 ready, 1 executing, 2 reported, 3 retrying.
CREATE TABLE running (
    job_id       bigint NOT NULL,
    slot         bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    due_at       bigint NOT NULL,
    node_id      bigint,
    deadline_at  bigint,
    claimed_at   bigint,
    lane         integer NOT NULL,
    fence        integer NOT NULL,
    version      integer,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    phase        smallint NOT NULL,
    cancel       smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, slot)
);
CREATE INDEX running_held ON running (node_id, deadline_at) WHERE phase IN (1, 2);
CREATE INDEX running_lane ON running (lane, due_at) WHERE phase IN (0, 3);
CREATE INDEX running_cancel ON running (node_id) WHERE cancel = 1;

-- Waiting for a slot. rank 0: scheduled, 1: the others, which wait behind them.
CREATE TABLE blocked (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    due_at       bigint NOT NULL,
    lane         integer NOT NULL,
    fence        integer NOT NULL,
    rank         smallint NOT NULL,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    PRIMARY KEY (job_id, rank, scheduled_at)
);

CREATE TABLE dead (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    failed_at    bigint NOT NULL,
    lane         integer NOT NULL,
    fence        integer NOT NULL,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    error        text NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, scheduled_at)
);
CREATE INDEX dead_newest ON dead (tenant, failed_at, job_id, scheduled_at);
CREATE INDEX dead_old ON dead (failed_at);

-- A row per attempt, the last is final; never rewritten. bucket: the day of scheduled_at since the epoch, each a
-- partition that is dropped as a whole; 0 for times far from the present, which have no partition of their own.
CREATE TABLE history (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    due_at       bigint NOT NULL,
    started_at   bigint,
    finished_at  bigint NOT NULL,
    bucket       integer NOT NULL,
    attempt      integer NOT NULL,
    version      integer,
    state        smallint NOT NULL,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    worker       text,
    detail       text
) PARTITION BY RANGE (bucket);
CREATE TABLE history_far PARTITION OF history FOR VALUES FROM (0) TO (1);
CREATE UNIQUE INDEX history_far_run ON history_far (job_id, scheduled_at, attempt);
CREATE INDEX history_far_finished ON history_far (finished_at);

CREATE TABLE nodes (
    id          bigint PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    name        text NOT NULL,
    started_at  bigint NOT NULL,
    lease_until bigint NOT NULL
) WITH (fillfactor = 50);

-- Who plans which segment. A row belongs to the node that it names while that node's lease runs; the fence
-- grows with every change of hands, so that a plan made under an earlier one is refused.
CREATE TABLE segments (
    segment integer PRIMARY KEY,
    node_id bigint,
    fence   integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Keys of requests for manual runs, so that a repeated request is the same run.
CREATE TABLE request_keys (
    job_id       bigint NOT NULL,
    key          text COLLATE "C" NOT NULL,
    scheduled_at bigint NOT NULL,
    made_at      bigint NOT NULL,
    PRIMARY KEY (job_id, key)
);
CREATE INDEX request_keys_old ON request_keys (made_at);

-- Rows of these live for seconds: clean up by number of dead rows, not by a share of a table that is mostly
-- empty, and without pauses, for the work is small each time and grows when it is put off. Space at the end stays:
-- it is needed again in a moment, and giving it back would lock everybody out.
ALTER TABLE planned SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000, vacuum_truncate = off);
ALTER TABLE running SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off);
ALTER TABLE blocked SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off);
ALTER TABLE clocks SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE nodes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
ALTER TABLE segments SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
