-- What one version brought beside firing on time: files, reports, logs, graphs, order ahead of time, backfills, audits. One step,
-- since the version before goes on working at a database that is one step further.

-- Jobs that are applied from files belong to a set, so that a later apply finds what the files no longer have. A
-- job's spec has the truth; a row here without it is passed over.

CREATE TABLE job_sets (
    job_id   bigint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    set_name text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, set_name, job_id)
);

-- How far attempts under way are, the latest of each. Apart from running, so that telling it is nobody's wait; rows of
-- attempts that are over are not shown, and dropped some time after. Rows change in place: the pages have room for that.
CREATE TABLE progress (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    slot         bigint NOT NULL,
    noted_at     bigint NOT NULL,
    fraction     double precision,
    attempt      integer NOT NULL,
    message      text,
    PRIMARY KEY (job_id, scheduled_at)
) WITH (fillfactor = 50);
ALTER TABLE progress SET (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);

-- What attempts wrote, in pieces. Partitioned as history is: by the day of scheduled_at, which is dropped as a whole;
-- bucket 0 is for what was written a day or more from that.
CREATE TABLE run_log (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    at           bigint NOT NULL,
    bucket       integer NOT NULL,
    attempt      integer NOT NULL,
    seq          integer NOT NULL,
    stream       smallint NOT NULL,
    text         text NOT NULL
) PARTITION BY RANGE (bucket);
CREATE TABLE run_log_far PARTITION OF run_log FOR VALUES FROM (0) TO (1);
CREATE UNIQUE INDEX run_log_far_run ON run_log_far (job_id, scheduled_at, attempt, seq);
CREATE INDEX run_log_far_old ON run_log_far (at);

-- Jobs that follow others. Nobody else pays for this: a finish looks into edges, which is empty where no job follows
-- another, and the runs that wait for their parents are in a table that no claim reads.

-- An edge holds for nominal times in (since_at, until_at]; one that is over stays as long as a run may wait by it.
CREATE TABLE edges (
    parent_id bigint NOT NULL,
    child_id  bigint NOT NULL,
    since_at  bigint NOT NULL,
    until_at  bigint NOT NULL,
    PRIMARY KEY (parent_id, child_id, since_at)
);
CREATE INDEX edges_child ON edges (child_id, parent_id);
CREATE INDEX edges_over ON edges (until_at) WHERE until_at < 4611686018427387903;

-- Runs of parents that have ended and whose children have not been told.
CREATE TABLE descents (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    state        smallint NOT NULL,
    trigger      smallint NOT NULL
);
CREATE INDEX descents_run ON descents (job_id, scheduled_at);

-- Runs that wait for their parents; which those are is fixed when the row is made. look_at: when somebody looks
-- whether they can still come, deadline_at at the latest.
CREATE TABLE waiting (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    made_at      bigint NOT NULL,
    deadline_at  bigint NOT NULL,
    look_at      bigint NOT NULL,
    fence        integer NOT NULL,
    trigger      smallint NOT NULL,
    parents      text NOT NULL,
    PRIMARY KEY (job_id, scheduled_at)
);
CREATE INDEX waiting_look ON waiting (look_at);

-- How a parent of a waiting run ended: a state's number, or -1 when it has no run for that time.
CREATE TABLE signals (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    parent_id    bigint NOT NULL,
    state        smallint NOT NULL,
    PRIMARY KEY (job_id, scheduled_at, parent_id)
);

ALTER TABLE descents SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
ALTER TABLE waiting SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
ALTER TABLE signals SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- The nominal time of the same job directly before a planned one, where it is so near that both may be claimed ahead of
-- their time: a later run is not taken ahead while the one before it still waits. NULL: there is none, or it is of no concern.
ALTER TABLE planned ADD COLUMN after_at bigint;

-- A run that no worker could run is looked at again later: then due_at says when, and this when it was due. NULL otherwise.
ALTER TABLE running ADD COLUMN was_due_at bigint;

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

-- Audits look for jobs that were deleted, by id.

CREATE INDEX versions_gone ON versions (job_id, version_from) WHERE deleted = 1;

-- What a worker can run, as JSON: its pools, whether it runs commands, its functions. For those who ask why a run waits.
-- In the same step, since the version before goes on working at a database that is one step further.

ALTER TABLE nodes ADD COLUMN serves text;
