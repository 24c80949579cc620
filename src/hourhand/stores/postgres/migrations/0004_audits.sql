-- Audits look for jobs that were deleted, by id.

CREATE INDEX versions_gone ON versions (job_id, version_from) WHERE deleted = 1;

-- What a worker can run, as JSON: its pools, whether it runs commands, its functions. For those who ask why a run waits.
-- In the same step, since the version before goes on working at a database that is one step further.

ALTER TABLE nodes ADD COLUMN serves text;
