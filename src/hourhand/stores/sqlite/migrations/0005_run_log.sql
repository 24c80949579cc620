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
