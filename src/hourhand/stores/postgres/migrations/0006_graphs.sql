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
