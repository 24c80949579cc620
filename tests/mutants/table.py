"""The safeguards, each with how it is switched off and who must notice.

A mutant replaces a text that occurs exactly once in one file of the source. It is caught by a test, with its seed where
it has one, which fails with the given words; the invariant is one of those in docs/proof.md.
"""

from typing import NamedTuple

_INTERLEAVINGS = "tests/interleavings/test_interleavings.py"
_STEPPED = f"{_INTERLEAVINGS}::test_some_interleavings_on_postgres"
_STEPPED_ALL = f"{_INTERLEAVINGS}::test_all_interleavings_on_postgres"
_ORDERED = f"{_INTERLEAVINGS}::test_all_orders_of_transactions_on_sqlite"
_CONTRACT = "tests/contract"
_STORM = f"{_CONTRACT}/test_races.py::test_a_storm_loses_and_doubles_nothing"
_GRAPHS = f"{_CONTRACT}/test_graph_storm.py::test_random_graphs"
_CLUSTER = "tests/mutants/simulated.py::test_a_cluster_survives_its_bad_days"


class Mutant(NamedTuple):
    """One safeguard that is switched off."""

    name: str
    safeguard: str
    file: str  # below src/hourhand
    old: str
    new: str
    caught_by: str
    invariant: str
    says: str
    quick: bool = False  # tried out with every run of the tests


MUTANTS = (
    # --- identity
    Mutant(
        "run-key",
        "a run's key is unique: planning over a row that is there changes nothing",
        "stores/sqlite/migrations/0001_begin.sql",
        "    PRIMARY KEY (scheduled_at, job_id)\n) WITHOUT ROWID;",
        "    PRIMARY KEY (scheduled_at, job_id, due_at, lane)\n) WITHOUT ROWID;",
        f"{_CONTRACT}/test_skips.py::test_a_skipped_time_does_not_run_and_says_why[sqlite-memory-False]",
        "I2",
        "UNIQUE constraint failed: history",
    ),
    Mutant(
        "idempotency-key",
        "all attempts of a run give the target the same key",
        "core/run.py",
        '"""Its public id, and the idempotency key for targets."""\n        return format_run_id(self.job_id, self.scheduled_at)',
        'return format_run_id(self.job_id, self.scheduled_at) + f".{self.fence}"',
        "tests/targets/test_http_request.py::test_every_header_of_the_surface",
        "I2",
        "Z.3'",
    ),
    Mutant(
        "request-key",
        "the same request for a run by hand, sent again, is the same run",
        "stores/relational/jobs.py",
        "return None if known is None else RunKey(job_id, known[0])",
        "return None",
        f"{_CONTRACT}/test_settling.py::test_the_same_request_key_is_the_same_run[sqlite-memory]",
        "I2",
        "UNIQUE constraint failed: request_keys",
    ),
    # --- fences
    Mutant(
        "fence-of-outcomes",
        "an outcome under an older fence is refused",
        "stores/sqlite/sql/settling.sql",
        "AND r.slot = done.slot AND r.fence = done.fence",
        "AND r.slot = done.slot",
        f"{_ORDERED}[claim/late_finish]",
        "I5",
        "claim/late finish as",
        quick=True,
    ),
    Mutant(
        "fence-of-outcomes-postgres",
        "an outcome under an older fence is refused",
        "stores/postgres/sql/settling.sql",
        "running.slot = d.slot AND running.fence = d.fence\n"
        "            AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 2 OFFSET 0) AS r),",
        "running.slot = d.slot\n"
        "            AND running.scheduled_at = d.scheduled_at AND running.phase BETWEEN 1 AND 2 OFFSET 0) AS r),",
        f"{_STEPPED}[claim/late_finish]",
        "I5",
        "claim/late finish as",
    ),
    Mutant(
        "fence-grows",
        "a claim raises the fence",
        "stores/sqlite/sql/claims.sql",
        "UPDATE running SET phase = 1, node_id = :node_id, fence = running.fence + 1,",
        "UPDATE running SET phase = 1, node_id = :node_id,",
        f"{_STORM}[sqlite-memory-0]",
        "I5",
        "UNIQUE constraint failed: history",
    ),
    Mutant(
        "fence-of-requeued",
        "a dead letter that is sent back keeps its fence",
        "stores/relational/letters.py",
        "tx.now_at, requeued, dead[0], 0)",
        "tx.now_at, requeued, 0, 0)",
        f"{_ORDERED}[requeue/finish_of_the_slot]",
        "I5",
        "fence fell behind history",
    ),
    Mutant(
        "fence-of-reports",
        "a report speaks for one attempt",
        "stores/sqlite/sql/reports.sql",
        "WHERE r.job_id = ?1 AND r.scheduled_at = ?2 AND r.fence = ?3 AND r.phase IN (1, 2)",
        "WHERE r.job_id = ?1 AND r.scheduled_at = ?2 AND ?3 = ?3 AND r.phase IN (1, 2)",
        f"{_CONTRACT}/test_reports.py::test_a_report_on_an_attempt_that_was_followed_by_another_is_stale[sqlite-memory]",
        "I5",
        "the answer to it may have been lost",
    ),
    Mutant(
        "fence-of-segments",
        "a scheduler that lost its segment plans nothing there",
        "stores/sqlite/sql/clocks.sql",
        "AND (plan_step.fence IS NULL OR s.fence = plan_step.fence)",
        "",
        f"{_CONTRACT}/test_segments.py::test_a_plan_under_an_earlier_fence_changes_nothing[sqlite-memory]",
        "I5",
        "assert 6 == 0",
    ),
    Mutant(
        "changed-while-finishing",
        "a finish that waited for a row which changed meanwhile starts over",
        "stores/postgres/settling.py",
        "if len(applied) != count:",
        "if False:",
        f"{_STEPPED}[cancel/finish]",
        "I5",
        "a run that ended, or was to, holds its slot for ever",
    ),
    # --- planning
    Mutant(
        "since",
        "nothing is planned for a time at or before a job's beginning",
        "stores/sqlite/sql/clocks.sql",
        "WHERE t.at > m.since AND t.at <= m.until",
        "WHERE t.at <= m.until",
        f"{_STORM}[sqlite-memory-0]",
        "I4",
        "the fence did not grow",
    ),
    Mutant(
        "until",
        "nothing is planned for a time after a job's end",
        "stores/sqlite/sql/clocks.sql",
        "WHERE t.at > m.since AND t.at <= m.until",
        "WHERE t.at > m.since",
        f"{_STORM}[sqlite-memory-0]",
        "I4",
        "that nothing promised",
    ),
    Mutant(
        "next-at",
        "a plan holds only where the clock still is where it expects it",
        "stores/sqlite/sql/clocks.sql",
        "AND c.next_at = plan_step.expected",
        "",
        f"{_STORM}[sqlite-memory-0]",
        "I2",
        "the fence did not grow",
    ),
    Mutant(
        "lock-of-clocks",
        "clocks are locked before their members are read",
        "stores/postgres/sql/clocks.sql",
        "ORDER BY c.segment, c.rule FOR NO KEY UPDATE OF c;",
        "ORDER BY c.segment, c.rule;",
        f"{_STEPPED}[plan/join]",
        "I1",
        "lost fire times",
    ),
    Mutant(
        "lock-order-of-edits",
        "an edit holds the clock before it looks at the job",
        "stores/relational/edits.py",
        "    await hold_clocks(tx, settings, jobs)\n    record = await hold(tx, tenant, job_id)",
        "    record = await hold(tx, tenant, job_id)",
        f"{_STEPPED}[plan/pause]",
        "I14",
        "that nothing promised",
    ),
    Mutant(
        "cut",
        "a change takes effect after what workers may hold",
        "stores/relational/edits.py",
        "return max(tx.now_at + settings.lead_us, record.version_from, newest)",
        "return max(tx.now_at, record.version_from)",
        f"{_ORDERED}[claim/pause]",
        "I4",
        "after the effective time of a change was taken",
        quick=True,
    ),
    Mutant(
        "changed-while-editing",
        "an edit that waited for a job which changed meanwhile starts over",
        "stores/relational/edits.py",
        "    if record is not None and record.version != seen.version:\n        raise ChangedMeanwhile\n    return record",
        "    return record",
        f"{_STEPPED_ALL}[edit,_then_plan/edit]",
        "I14",
        "that nothing promised",
    ),
    Mutant(
        "misfire",
        "a run that nobody took within its grace is for the misfire policy",
        "stores/sqlite/sql/claims.sql",
        "p.trigger = 0 AND p.due_at + j.grace_us < :now,",
        "0,",
        f"{_CONTRACT}/test_slots.py::test_what_nobody_claimed_within_the_grace_is_for_the_policy"
        "[sqlite-memory-claim-skip-runs1-skipped1]",
        "I14",
        "assert [1, 2, 3, 4, 5, 6] == [4, 5, 6]",
    ),
    # --- claims and slots
    Mutant(
        "slot-key",
        "the concurrency limit is a key",
        "stores/postgres/migrations/0001_begin.sql",
        "    PRIMARY KEY (job_id, slot)\n",
        "    PRIMARY KEY (job_id, slot, scheduled_at)\n",
        f"{_STEPPED}[claim/claim_of_one_slot]",
        "I11",
        "a slot was left free, or given twice",
    ),
    Mutant(
        "put-back",
        "a run that did not get its slot after all is planned again",
        "stores/postgres/claims.py",
        "if taken and taken[0][14] < len(taken):",
        "if False:",
        f"{_STEPPED}[claim/claim_one_by_one]",
        "I1",
        "what workers hold is not what the store thinks they hold",
    ),
    Mutant(
        "lease-at-claim",
        "a worker whose lease is over claims nothing",
        "stores/relational/nodes.py",
        "if row is None or row[0] <= tx.now_at:",
        "if row is None:",
        f"{_CONTRACT}/test_claiming.py::test_a_claim_needs_a_live_lease[sqlite-memory]",
        "I11",
        "DID NOT RAISE LeaseLost",
        quick=True,
    ),
    Mutant(
        "due-time",
        "a run that is in hand starts when it is due",
        "services/worker.py",
        "elif run.due_at <= now_at < self._sure_until:",
        "elif now_at < self._sure_until:",
        f"{_CLUSTER}[0]",
        "I3",
        "µs early",
    ),
    Mutant(
        "sure-of-lease",
        "a worker that stood still for longer than its lease starts nothing",
        "services/worker.py",
        "sure = now_at < self._sure_until",
        "sure = True",
        "tests/services/test_worker_faults.py"
        "::test_a_worker_that_stood_still_beyond_its_lease_starts_nothing_of_what_it_holds",
        "I11",
        "== []",
    ),
    Mutant(
        "doubtful-slots",
        "a run is blocked only behind slots that nobody is about to free",
        "stores/postgres/claims.py",
        "is_full = all((job_id, slot) in held for slot in in_use)",
        "is_full = True",
        f"{_STEPPED}[claim/finish]",
        "I7",
        "a run waits for a slot that nobody holds",
    ),
    Mutant(
        "hand-on",
        "who ends a run hands its slot on",
        "stores/sqlite/settling.py",
        'if await tx.one("any_blocked") is not None:',
        "if False:",
        f"{_ORDERED}[claim/finish]",
        "I7",
        "a run waits for a slot that nobody holds",
        quick=True,
    ),
    Mutant(
        "delete-holds-slots",
        "a delete waits for claims that block a run of the job",
        "stores/relational/edits.py",
        '    await tx.all(\n        "hold_slots", (tx.array([job_id]),)\n    )',
        "    ...",
        f"{_STEPPED}[claim_that_blocks/delete]",
        "I4",
        "a run of a deleted job waits for a slot for ever",
    ),
    # --- repair
    Mutant(
        "sweeper",
        "runs of lost workers are given back",
        "services/sweeper.py",
        "strays = await self._store.stray_runs(SLACK_US, PAGE)",
        "strays = (await self._store.stray_runs(SLACK_US, PAGE))[:0]",
        "tests/services/test_sweeper.py::test_runs_of_a_dead_worker_go_on_at_once_with_a_try_counted",
        "I7",
        "'RUNNING'> != <State.RETRYING",
    ),
    Mutant(
        "strangers",
        "a claim whose answer was lost is given back",
        "services/worker.py",
        "strangers = [run for run in held if _held_key(run) not in self._in_hand]",
        "strangers = [run for run in held[:0] if _held_key(run) not in self._in_hand]",
        "tests/services/test_worker_faults.py::test_a_claim_whose_answer_was_lost_is_given_back_at_the_heartbeat",
        "I7",
        "assert 0 == 1",
    ),
    Mutant(
        "native-fallback",
        "a hint that is lost costs a second: every duty also looks by itself",
        "services/loop.py",
        "sleep_us = min([at - now_at for at in ends] + [MAX_SLEEP_US])",
        "sleep_us = min([at - now_at for at in ends if at == next_at] + [3_600 * SECOND_US])",
        "tests/services/test_node.py::test_it_works_without_any_hint",
        "I7",
        "assert [] ==",
    ),
    Mutant(
        "at-most-once",
        "what may have happened is not tried again where it must not happen twice",
        "core/retry.py",
        "once_only = spec.delivery is Delivery.AT_MOST_ONCE and may_have_happened",
        "once_only = False and may_have_happened",
        "tests/core/test_retry.py::test_a_failure_is_tried_again_while_it_may_be"
        "[at_most_once-failure5-0-exhaust-failed]",
        "I2",
        "Event.RETRY: 'retry'> != <Event.EXHAUST",
    ),
    Mutant(
        "tries",
        "a run ends when its tries are used up",
        "core/retry.py",
        "or once_only or tries > spec.retry.max:",
        "or once_only:",
        "tests/core/test_retry.py::test_without_retries_the_first_failure_is_the_last",
        "I8",
        "<Event.EXHAUST: 'exhaust'>",
    ),
    # --- graphs and backfills
    Mutant(
        "waits-of-runs-that-exist",
        "a run that exists does not wait for its parents again",
        "stores/relational/descents.py",
        "        if late:\n            await drop_waits(tx, late)",
        "        if False:\n            await drop_waits(tx, late)",
        f"{_GRAPHS}[0]",
        "I12",
        "UNIQUE constraint failed: history",
    ),
    Mutant(
        "all-parents",
        "a dependent waits for all its parents",
        "core/dag.py",
        "    if any(parent not in outcomes for parent in parents):\n        return Decision(step=Step.WAIT)\n",
        "    parents = [parent for parent in parents if parent in outcomes]\n",
        f"{_GRAPHS}[0]",
        "I12",
        "it ran although a parent is SKIPPED",
    ),
    Mutant(
        "waits-held",
        "two who end parents of the same run decide about it one after the other",
        "stores/postgres/sql/graphs.sql",
        "    SELECT * FROM waiting WHERE waiting.job_id = asked.job_id AND waiting.scheduled_at = asked.at FOR UPDATE) AS w;",
        "    SELECT * FROM waiting WHERE waiting.job_id = asked.job_id AND waiting.scheduled_at = asked.at) AS w;",
        f"{_STEPPED_ALL}[finish/finish_of_two_of_three_parents]",
        "I12",
        "a run waits for parents that have ended",
    ),
    Mutant(
        "backfill-anti-join",
        "a backfill makes no run where there is one, wherever it is",
        "stores/sqlite/sql/backfills.sql",
        "    AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.job_id = :job_id AND h.scheduled_at = t.value)\n",
        "",
        f"{_CONTRACT}/test_backfills.py::test_what_ran_waits_runs_or_failed_is_there_already[sqlite-memory]",
        "I2",
        "assert 10 == 11",
    ),
    Mutant(
        "backfill-behind-the-clock",
        "a backfill leaves alone what the clock has not come to",
        "stores/relational/backfills.py",
        "bound_at = tx.now_at if planned_from is None else min(tx.now_at, planned_from - 1)",
        "bound_at = tx.now_at",
        f"{_CONTRACT}/test_backfills.py::test_times_that_the_clock_has_not_come_to_are_left_to_it[sqlite-memory]",
        "I14",
        "assert 1794819600000000 <",
    ),
)
