-- Jobs that are applied from files belong to a set, so that a later apply finds what the files no longer have. A
-- job's spec has the truth; a row here without it is passed over.
CREATE TABLE job_sets (
    tenant   TEXT NOT NULL,
    set_name TEXT NOT NULL,
    job_id   INTEGER NOT NULL,
    PRIMARY KEY (tenant, set_name, job_id)
) WITHOUT ROWID;
