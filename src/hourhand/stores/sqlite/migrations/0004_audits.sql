-- Audits look for jobs that were deleted, by id.
CREATE INDEX versions_gone ON versions (job_id, version_from) WHERE deleted = 1;
