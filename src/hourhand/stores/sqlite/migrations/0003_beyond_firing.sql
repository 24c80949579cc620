-- What one version brought beside firing on time: files, reports, logs, graphs, order ahead of time, backfills, audits. One step,
-- since the version before goes on working at a database that is one step further.

-- Jobs that are applied from files belong to a set, so that a later apply finds what the files no longer have. A
-- job's spec has the truth; a row here without it is passed over.
CREATE TABLE job_sets (
    tenant   TEXT NOT NULL,
    set_name TEXT NOT NULL,
    job_id   INTEGER NOT NULL,
    PRIMARY KEY (tenant, set_name, job_id)
) WITHOUT ROWID;

-- How far attempts under way are, the latest of each. Apart from running, so that telling it is nobody's wait; rows of
-- attempts that are over are not shown, and dropped some time after.
CREATE TABLE progress (
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    slot         INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    noted_at     INTEGER NOT NULL,
    fraction     REAL,
    message      TEXT,
    PRIMARY KEY (job_id, scheduled_at)
) WITHOUT ROWID;

-- What attempts wrote, in pieces. In order of arrival, so that old ones are dropped from the front, by id.
CREATE TABLE run_log (
    id           INTEGER PRIMARY KEY,
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    stream       INTEGER NOT NULL,
    text         TEXT NOT NULL
);
CREATE UNIQUE INDEX run_log_run ON run_log (job_id, scheduled_at, attempt, seq);

-- Jobs that follow others. An edge holds for nominal times in (since_at, until_at]; one that is over stays as long
-- as a run may wait by it.
CREATE TABLE edges (
    parent_id INTEGER NOT NULL,
    child_id  INTEGER NOT NULL,
    since_at  INTEGER NOT NULL,
    until_at  INTEGER NOT NULL,
    PRIMARY KEY (parent_id, child_id, since_at)
) WITHOUT ROWID;
CREATE INDEX edges_child ON edges (child_id, parent_id);
CREATE INDEX edges_over ON edges (until_at) WHERE until_at < 4611686018427387903;

-- Runs of parents that have ended and whose children have not been told.
CREATE TABLE descents (
    id           INTEGER PRIMARY KEY,
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    trigger      INTEGER NOT NULL
);
CREATE INDEX descents_run ON descents (job_id, scheduled_at);

-- Runs that wait for their parents; which those are is fixed when the row is made. look_at: when somebody looks
-- whether they can still come, deadline_at at the latest.
CREATE TABLE waiting (
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    made_at      INTEGER NOT NULL,
    deadline_at  INTEGER NOT NULL,
    look_at      INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    trigger      INTEGER NOT NULL,
    parents      TEXT NOT NULL,
    PRIMARY KEY (job_id, scheduled_at)
) WITHOUT ROWID;
CREATE INDEX waiting_look ON waiting (look_at);

-- How a parent of a waiting run ended: a state's number, or -1 when it has no run for that time.
CREATE TABLE signals (
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    parent_id    INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    PRIMARY KEY (job_id, scheduled_at, parent_id)
) WITHOUT ROWID;

-- The nominal time of the same job directly before a planned one, where it is so near that both may be claimed ahead of
-- their time: a later run is not taken ahead while the one before it still waits. NULL: there is none, or it is of no concern.
ALTER TABLE planned ADD COLUMN after_at INTEGER;

-- A run that no worker could run is looked at again later: then due_at says when, and this when it was due. NULL otherwise.
ALTER TABLE running ADD COLUMN was_due_at INTEGER;

-- Backfills: ranges of passed times that are fed behind live traffic. mark: everything on one side of it is fed.
-- state: 0 running, 1 paused, 2 done, 3 cancelled; finished_at is NULL as long as a run of it has not ended.
CREATE TABLE backfills (
    id           INTEGER PRIMARY KEY,
    job_id       INTEGER NOT NULL,
    from_at      INTEGER NOT NULL,
    to_at        INTEGER NOT NULL,
    mark         INTEGER NOT NULL,
    next_at      INTEGER NOT NULL,
    pace_us      INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    max_open     INTEGER NOT NULL,
    total        INTEGER NOT NULL,
    fed          INTEGER NOT NULL,
    already      INTEGER NOT NULL,
    succeeded    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    cancelled    INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    newest_first INTEGER NOT NULL,
    while_paused INTEGER NOT NULL,
    tenant       TEXT NOT NULL,
    rule         TEXT NOT NULL,
    present_rule TEXT NOT NULL,
    note         TEXT,
    reason       TEXT
);
CREATE INDEX backfills_tenant ON backfills (tenant, id);
CREATE INDEX backfills_job ON backfills (job_id, id);
CREATE INDEX backfills_unfinished ON backfills (id) WHERE finished_at IS NULL;
CREATE INDEX backfills_unfinished_of ON backfills (tenant, job_id) WHERE finished_at IS NULL;
CREATE INDEX backfills_old ON backfills (finished_at) WHERE finished_at IS NOT NULL;

-- Runs of backfills that have not been counted as ended.
CREATE TABLE backfill_runs (
    backfill_id  INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    PRIMARY KEY (backfill_id, scheduled_at)
) WITHOUT ROWID;

-- Coming times that will not run. What keeps them from being planned is a row in planned, in a lane of no pool.
CREATE TABLE skips (
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    made_at      INTEGER NOT NULL,
    note         TEXT,
    PRIMARY KEY (job_id, scheduled_at)
) WITHOUT ROWID;
CREATE INDEX skips_due ON skips (scheduled_at, job_id);

-- Which run repeats which; kept as long as history is.
CREATE TABLE reruns (
    job_id       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    of_at        INTEGER NOT NULL,
    made_at      INTEGER NOT NULL,
    PRIMARY KEY (job_id, scheduled_at)
) WITHOUT ROWID;
CREATE INDEX reruns_of ON reruns (job_id, of_at);
CREATE INDEX reruns_old ON reruns (made_at);

-- Audits look for jobs that were deleted, by id.
CREATE INDEX versions_gone ON versions (job_id, version_from) WHERE deleted = 1;

-- What a worker can run, as JSON: its pools, whether it runs commands, its functions. For those who ask why a run waits.
-- In the same step, since the version before goes on working at a database that is one step further.

ALTER TABLE nodes ADD COLUMN serves TEXT;

-- Dead letters by cause, without a look at what each says: the index in order of time knows the cause too.

DROP INDEX dead_newest;
CREATE INDEX dead_newest ON dead (tenant, failed_at, job_id, scheduled_at, fingerprint);
