-- Backfills: ranges of passed times that are fed behind live traffic. mark: everything on one side of it is fed.
-- state: 0 running, 1 paused, 2 done, 3 cancelled; finished_at is NULL as long as a run of it has not ended.
CREATE TABLE backfills (
    id           bigint PRIMARY KEY,
    job_id       bigint NOT NULL,
    from_at      bigint NOT NULL,
    to_at        bigint NOT NULL,
    mark         bigint NOT NULL,
    next_at      bigint NOT NULL,
    pace_us      bigint,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    finished_at  bigint,
    max_open     integer NOT NULL,
    total        integer NOT NULL,
    fed          integer NOT NULL,
    already      integer NOT NULL,
    succeeded    integer NOT NULL,
    failed       integer NOT NULL,
    skipped      integer NOT NULL,
    cancelled    integer NOT NULL,
    state        smallint NOT NULL,
    newest_first smallint NOT NULL,
    while_paused smallint NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    rule         text COLLATE "C" NOT NULL,
    present_rule text COLLATE "C" NOT NULL,
    note         text,
    reason       text
) WITH (fillfactor = 70);
CREATE INDEX backfills_tenant ON backfills (tenant, id);
CREATE INDEX backfills_job ON backfills (job_id, id);
CREATE INDEX backfills_unfinished ON backfills (id) WHERE finished_at IS NULL;
CREATE INDEX backfills_unfinished_of ON backfills (tenant, job_id) WHERE finished_at IS NULL;
CREATE INDEX backfills_old ON backfills (finished_at) WHERE finished_at IS NOT NULL;

-- Runs of backfills that have not been counted as ended.
CREATE TABLE backfill_runs (
    backfill_id  bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    PRIMARY KEY (backfill_id, scheduled_at)
);

-- Coming times that will not run. What keeps them from being planned is a row in planned, in a lane of no pool.
CREATE TABLE skips (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    made_at      bigint NOT NULL,
    note         text,
    PRIMARY KEY (job_id, scheduled_at)
);
CREATE INDEX skips_due ON skips (scheduled_at, job_id);

-- Which run repeats which; kept as long as history is.
CREATE TABLE reruns (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    of_at        bigint NOT NULL,
    made_at      bigint NOT NULL,
    PRIMARY KEY (job_id, scheduled_at)
);
CREATE INDEX reruns_of ON reruns (job_id, of_at);
CREATE INDEX reruns_old ON reruns (made_at);
