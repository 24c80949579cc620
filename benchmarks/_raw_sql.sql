-- The tables and statements of `_raw_sql`: the shape of our cycle with nothing around it.

-- tables: what the hot path of the store has, down to keys, index and storage settings
CREATE TABLE clocks (
    id          bigint PRIMARY KEY,
    interval_us bigint NOT NULL,
    next_at     bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX clocks_due ON clocks (next_at);
CREATE TABLE members (
    clock_id bigint NOT NULL,
    job_id   bigint NOT NULL,
    since    bigint NOT NULL,
    until    bigint NOT NULL,
    lane     integer NOT NULL,
    PRIMARY KEY (clock_id, job_id)
);
CREATE TABLE jobs (
    id         bigint PRIMARY KEY,
    timeout_us bigint NOT NULL,
    version    integer NOT NULL,
    spec       text NOT NULL
);
CREATE TABLE planned (
    scheduled_at bigint NOT NULL,
    job_id       bigint NOT NULL,
    due_at       bigint NOT NULL,
    lane         integer NOT NULL,
    fence        integer NOT NULL,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    PRIMARY KEY (scheduled_at, job_id)
);
CREATE INDEX planned_lane ON planned (lane, due_at, scheduled_at, job_id);
CREATE TABLE running (
    job_id       bigint NOT NULL,
    slot         bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    due_at       bigint NOT NULL,
    node_id      bigint,
    deadline_at  bigint,
    claimed_at   bigint,
    lane         integer NOT NULL,
    fence        integer NOT NULL,
    version      integer,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    phase        smallint NOT NULL,
    PRIMARY KEY (job_id, slot)
);
CREATE TABLE history (
    job_id       bigint NOT NULL,
    scheduled_at bigint NOT NULL,
    due_at       bigint NOT NULL,
    started_at   bigint,
    finished_at  bigint NOT NULL,
    day          integer NOT NULL,
    attempt      integer NOT NULL,
    version      integer,
    state        smallint NOT NULL,
    trigger      smallint NOT NULL,
    tries        smallint NOT NULL,
    worker       text
) PARTITION BY RANGE (day);
ALTER TABLE planned SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE running SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000, autovacuum_vacuum_cost_delay = 0);

-- partition: one day of history, with the one index that it has
CREATE TABLE history_{day} PARTITION OF history FOR VALUES FROM ({day}) TO ({day} + 1);
CREATE UNIQUE INDEX history_{day}_run ON history_{day} (job_id, scheduled_at, attempt);

-- plan: the runs of the clocks that are next; their clocks move on by one
WITH due AS MATERIALIZED (
    SELECT id, next_at, interval_us, ctid AS place FROM clocks ORDER BY next_at LIMIT $1::bigint FOR UPDATE),
moved AS (UPDATE clocks SET next_at = next_at + interval_us WHERE ctid = ANY (ARRAY(SELECT place FROM due))),
made AS (
    INSERT INTO planned (scheduled_at, job_id, due_at, lane, fence, trigger, tries)
    SELECT due.next_at, m.job_id, due.next_at, m.lane, 0, 0, 0 FROM due JOIN members AS m ON m.clock_id = due.id
    WHERE m.since < due.next_at AND due.next_at <= m.until
    ON CONFLICT DO NOTHING RETURNING 1)
SELECT count(*) FROM made;

-- claim: take runs from every lane into free slots; what finds its slot taken stays planned
WITH looked AS MATERIALIZED (
    SELECT p.* FROM unnest($1::integer[]) AS page (lane) CROSS JOIN LATERAL (
        SELECT ctid AS place, job_id, scheduled_at, due_at, lane, fence, trigger, tries FROM planned
        WHERE planned.lane = page.lane
        ORDER BY planned.due_at, planned.scheduled_at, planned.job_id LIMIT $2::bigint
        FOR UPDATE SKIP LOCKED) AS p),
known AS MATERIALIZED (
    SELECT looked.*, j.version, j.timeout_us, j.spec FROM looked JOIN jobs AS j ON j.id = looked.job_id),
taken AS (
    INSERT INTO running (job_id, slot, scheduled_at, due_at, node_id, deadline_at, claimed_at, lane, fence, version,
        trigger, tries, phase)
    SELECT job_id, 0, scheduled_at, due_at, $3::bigint, $4::bigint + timeout_us, $4::bigint, lane, fence + 1, version,
        trigger, tries, 1
    FROM known ORDER BY job_id, scheduled_at ON CONFLICT DO NOTHING RETURNING job_id, scheduled_at),
won AS MATERIALIZED (SELECT known.* FROM known JOIN taken USING (job_id, scheduled_at)),
gone AS (DELETE FROM planned WHERE ctid = ANY (ARRAY(SELECT place FROM won)))
SELECT job_id, scheduled_at, due_at, fence + 1, tries, version, spec FROM won;

-- finish: ended runs, each found by its key and fence, leave their slots for history
WITH done AS MATERIALIZED (
    SELECT d.*, (SELECT ctid FROM running AS r
        WHERE r.job_id = d.job_id AND r.slot = 0 AND r.scheduled_at = d.scheduled_at AND r.fence = d.fence) AS place
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
        AS d (job_id, scheduled_at, fence, started_at, finished_at)),
freed AS (
    DELETE FROM running WHERE ctid = ANY (ARRAY(SELECT place FROM done))
    RETURNING job_id, scheduled_at, due_at, fence, version, trigger, tries),
kept AS (
    INSERT INTO history (job_id, scheduled_at, due_at, started_at, finished_at, day, attempt, version, state, trigger,
        tries, worker)
    SELECT job_id, scheduled_at, due_at, started_at, finished_at, scheduled_at / 86400000000, fence, version, 3,
        trigger, tries, $6::text FROM freed JOIN done USING (job_id, scheduled_at, fence) RETURNING 1)
SELECT count(*) FROM kept;
