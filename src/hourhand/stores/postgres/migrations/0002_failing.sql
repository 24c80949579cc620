-- What fails is listed by job and by cause, however much of it there is. Runs that do not fail pay nothing for this:
-- a row of running is in its index only between two attempts.

CREATE INDEX dead_of_job ON dead (tenant, job_id, failed_at, scheduled_at);
CREATE INDEX dead_of_cause ON dead (tenant, fingerprint, failed_at, job_id, scheduled_at);
CREATE INDEX running_retrying ON running (job_id) WHERE phase = 3;
