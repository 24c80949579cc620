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
