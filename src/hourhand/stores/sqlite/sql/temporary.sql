-- temp_step: clocks that a plan moves
CREATE TEMP TABLE IF NOT EXISTS plan_step (clock_id INTEGER PRIMARY KEY, expected INTEGER, next_at INTEGER,
    late_to INTEGER, fence INTEGER);

-- temp_time: nominal times that a plan inserts
CREATE TEMP TABLE IF NOT EXISTS plan_time (clock_id INTEGER, at INTEGER, after_at INTEGER, room_us INTEGER,
    background INTEGER, policy TEXT, grace_us INTEGER, catch_up INTEGER, until INTEGER, since_from INTEGER, since_below INTEGER);

-- temp_candidate: runs that a claim looks at, with what it needs of their jobs, which is read once
CREATE TEMP TABLE IF NOT EXISTS candidate (job_id INTEGER, scheduled_at INTEGER, lane INTEGER, due_at INTEGER,
    rank INTEGER, late INTEGER, fate INTEGER, slot INTEGER, trigger INTEGER, fence INTEGER, tries INTEGER,
    deadline_at INTEGER, version INTEGER, tenant TEXT, spec TEXT, behind_at INTEGER);

-- temp_done: settlements of a batch, by their place in it
CREATE TEMP TABLE IF NOT EXISTS done (place INTEGER, job_id INTEGER, slot INTEGER, scheduled_at INTEGER, fence INTEGER,
    event INTEGER, version INTEGER, tries INTEGER, due_at INTEGER, started_at INTEGER, finished_at INTEGER, detail TEXT);
