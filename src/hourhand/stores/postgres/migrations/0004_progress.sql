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
