-- audit_jobs: jobs by id, with what says when they run
SELECT id, tenant, version, version_from, until, paused, CASE WHEN octet_length(spec) <= :large::integer THEN spec
    ELSE (SELECT jsonb_object_agg(key, value)::text FROM jsonb_each(spec::jsonb)
        WHERE key IN ('timing', 'name', 'starts_at', 'misfire')) END, since
FROM jobs WHERE id > :after::bigint AND id <= :last::bigint ORDER BY id LIMIT :limit::bigint;

-- audit_jobs_of: the same of one tenant
SELECT id, tenant, version, version_from, until, paused, CASE WHEN octet_length(spec) <= :large::integer THEN spec
    ELSE (SELECT jsonb_object_agg(key, value)::text FROM jsonb_each(spec::jsonb)
        WHERE key IN ('timing', 'name', 'starts_at', 'misfire')) END, since
FROM jobs WHERE tenant = :tenant AND id > :after::bigint AND id <= :last::bigint
ORDER BY tenant, id LIMIT :limit::bigint;

-- audit_gone: jobs that were deleted and had times after an instant, by id
SELECT job_id, tenant FROM versions
WHERE deleted = 1 AND job_id > :after::bigint AND job_id <= :last::bigint AND version_from >= :from_at::bigint
ORDER BY job_id LIMIT :limit::bigint;

-- audit_versions: versions of some jobs that are over, but for those that ended before an instant
SELECT asked.id, NULL, v.version, v.version_from, v.until, v.paused, v.spec, v.deleted, v.next_from
FROM unnest(:ids::bigint[]) WITH ORDINALITY AS asked (id, place) CROSS JOIN LATERAL (
    SELECT version, version_from, until, paused, deleted, CASE WHEN octet_length(spec) <= :large::integer THEN spec
            ELSE (SELECT jsonb_object_agg(key, value)::text FROM jsonb_each(spec::jsonb)
                WHERE key IN ('timing', 'name', 'starts_at', 'misfire')) END AS spec,
        lead(version_from) OVER (ORDER BY version) AS next_from
    FROM versions WHERE job_id = asked.id) AS v
WHERE v.next_from IS NULL OR v.next_from >= :from_at::bigint
ORDER BY asked.place, v.version LIMIT :limit::bigint;

-- audit_history: lines of history of some jobs in a window, by job, and hardly ever not by time; each column as one array
SELECT array_agg(asked.id), array_agg(h.scheduled_at), array_agg(h.code)
FROM unnest(:ids::bigint[], :mosts::bigint[]) AS asked (id, most) CROSS JOIN LATERAL (
    SELECT scheduled_at, state * 8 + trigger AS code FROM history
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint
        AND bucket >= :first::integer AND bucket <= :last::integer
    UNION ALL
    SELECT scheduled_at, state * 8 + trigger FROM history_far
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint
    LIMIT asked.most) AS h;

-- audit_live: runs of some jobs in a window that have not ended, and dead letters; but plain planned ones
SELECT asked.id, r.scheduled_at, r.place, r.trigger
FROM unnest(:ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT scheduled_at, 1 AS place, trigger FROM running
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint
    UNION ALL
    SELECT scheduled_at, 2, trigger FROM blocked
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint
    UNION ALL
    SELECT scheduled_at, 3, trigger FROM waiting
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint
    UNION ALL
    SELECT scheduled_at, 4, trigger FROM dead
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint
    UNION ALL
    SELECT scheduled_at, 0, trigger FROM planned
    WHERE job_id = asked.id AND trigger <> 0
        AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint) AS r
LIMIT :limit::bigint;

-- audit_untold: runs of some jobs in a window that have ended, and whose children are yet to be told
SELECT d.job_id, d.scheduled_at FROM unnest(:ids::bigint[]) AS asked (id) CROSS JOIN LATERAL (
    SELECT job_id, scheduled_at FROM descents
    WHERE job_id = asked.id AND scheduled_at >= :from_at::bigint AND scheduled_at < :to_at::bigint OFFSET 0) AS d
LIMIT :limit::bigint;

-- audit_planned: which of some runs are planned by the schedule
SELECT asked.job_id, asked.at, p.trigger
FROM (SELECT (value ->> 0)::bigint AS job_id, (value ->> 1)::bigint AS at FROM jsonb_array_elements($1::text::jsonb)) AS asked
CROSS JOIN LATERAL (
    SELECT trigger FROM planned WHERE planned.scheduled_at = asked.at AND planned.job_id = asked.job_id AND trigger = 0
    OFFSET 0) AS p;

-- audit_clocks: how far the clocks of some rules are, each in its segment, and what they missed in a window
SELECT c.rule, c.segment, c.next_at, g.from_at, g.to_at, g.policy, g.grace_us, g.catch_up, g.missed, g.ran
FROM (SELECT value ->> 0 AS rule, (value ->> 1)::integer AS segment FROM jsonb_array_elements(:places::text::jsonb))
    AS wanted
CROSS JOIN LATERAL (
    SELECT id, rule, segment, next_at FROM clocks
    WHERE clocks.segment = wanted.segment AND clocks.rule = wanted.rule COLLATE "C" OFFSET 0) AS c
LEFT JOIN LATERAL (
    SELECT * FROM clock_gaps WHERE clock_id = c.id AND from_at < :to_at::bigint AND to_at >= :from_at::bigint OFFSET 0)
    AS g ON true
LIMIT :limit::bigint;
