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
