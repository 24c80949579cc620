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
