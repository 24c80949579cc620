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
