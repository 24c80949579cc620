-- Jobs that are applied from files belong to a set, so that a later apply finds what the files no longer have. A
-- job's spec has the truth; a row here without it is passed over.

CREATE TABLE job_sets (
    job_id   bigint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    set_name text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, set_name, job_id)
);
