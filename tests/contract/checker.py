"""What must hold over everything that is stored, computed the slow and plain way.

It knows the jobs' versions and walks their rules time by time; it shares no code with planning.
"""

from collections import Counter
from collections.abc import Sequence

from hourhand.core.identity import segment_of
from hourhand.core.lifecycle import FINAL, Phase, State
from hourhand.core.model import OnceTiming, Trigger, Version
from tests.contract.harness import Tables


def expected_nominals(versions: Sequence[Version], until_at: int) -> set[int]:
    """Every nominal time up to an instant that a job's versions promise."""
    found: set[int] = set()
    for version in versions:
        if version.deleted:
            continue
        ends_at = until_at if version.to_at is None else min(version.to_at, until_at)
        if isinstance(version.spec.timing, OnceTiming):
            if version.spec.timing.at <= ends_at:
                found.add(version.spec.timing.at)
        elif not version.paused:
            found |= _walk(version, min(ends_at, version.until))
    return found


def assert_sound(tables: Tables, limits: dict[int, int | None] | None = None) -> None:
    """Each run is in one place, no slot is doubled, and history is one growing line per run."""
    live = [row for table in (tables.planned, tables.blocked, tables.running, tables.dead) for row in table]
    places = Counter((row.job_id, row.scheduled_at) for row in live)
    doubled = [key for key, count in places.items() if count > 1]
    assert not doubled, f"in more than one table: {doubled}"

    slots = Counter((row.job_id, row.slot) for row in tables.running)
    assert all(count == 1 for count in slots.values()), f"doubled slots: {slots}"
    held = Counter(row.job_id for row in tables.running)
    for job_id, limit in (limits or {}).items():
        assert limit is None or held[job_id] <= limit, f"job {job_id} holds {held[job_id]} of {limit} slots"
    for row in tables.running:
        assert (row.node_id is not None) == (row.phase is Phase.EXECUTING), row

    last: dict[tuple[int, int], tuple[int, State]] = {}
    for line in tables.history:
        key = (line.job_id, line.scheduled_at)
        attempt, state = last.get(key, (0, State.RETRYING))
        assert line.attempt > attempt, f"fences do not grow: {line}"
        reopened = state is State.SKIPPED and line.trigger is Trigger.REQUEUED  # with the run that it follows
        assert state in (State.RETRYING, State.FAILED) or reopened, f"history goes on after the end: {line}"
        last[key] = (line.attempt, line.state)
    dead = {(row.job_id, row.scheduled_at) for row in tables.dead}
    for row in live:
        key = (row.job_id, row.scheduled_at)
        attempt, state = last.get(key, (0, State.RETRYING))
        assert row.fence >= attempt, f"fence fell behind history: {row}"
        reopened = state is State.SKIPPED and getattr(row, "trigger", None) is Trigger.REQUEUED
        assert state not in FINAL or state is State.FAILED or reopened, f"both live and {state}: {row}"
        assert key not in dead or state is State.FAILED, f"dead without a failure in history: {row}"


def assert_covered(
    tables: Tables, job_id: int, versions: Sequence[Version], planned_to: int, segments: int = 64
) -> None:
    """Every promised time is somewhere, and nothing scheduled was ever made that was not promised (I4, I14)."""
    expected = expected_nominals(versions, planned_to)
    rows = [row for table in tables[:5] for row in table if row.job_id == job_id]
    present = {row.scheduled_at for row in rows}
    missing = sorted(at for at in expected - present if not _in_gap(tables, job_id, versions, at, segments))
    assert not missing, f"lost fire times of job {job_id}: {len(missing)}, first {missing[:5]}"
    scheduled = {
        row.scheduled_at
        for table in (tables.planned, tables.blocked, tables.running, tables.history)
        for row in table
        if row.job_id == job_id and row.trigger in (Trigger.SCHEDULED, Trigger.CATCH_UP)
    }
    phantoms = sorted(at for at in scheduled - expected if at <= planned_to)
    assert not phantoms, f"runs of job {job_id} that nothing promised: {len(phantoms)}, first {phantoms[:5]}"


def _walk(version: Version, ends_at: int) -> set[int]:
    rule = version.spec.rule
    assert rule is not None
    starts_at = version.spec.starts_at
    at = rule.next(version.from_at if starts_at is None else max(version.from_at, starts_at - 1))
    found = set()
    while at is not None and at <= ends_at:
        found.add(at)
        at = rule.next(at)
    return found


def _in_gap(tables: Tables, job_id: int, versions: Sequence[Version], at: int, segments: int) -> bool:
    """Whether a missed time is accounted for by a gap of the clock that the job was a member of."""
    for version in versions:
        rule = version.spec.rule
        if rule is None:
            continue
        misfire = version.spec.misfire
        mine = (rule.key, segment_of(job_id, segments), misfire.policy.value, misfire.grace_us, misfire.limit)
        for gap in tables.gaps:
            named = (gap.rule_key, gap.segment, gap.policy, gap.grace_us, gap.limit)
            if named == mine and gap.from_at <= at <= gap.to_at:
                return True
    return False
