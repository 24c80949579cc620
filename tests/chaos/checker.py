"""The judge: holds the sink's log against schedules and acknowledgements, knowing nothing else.

Lost: an owed time without a call, and without an honest end in the job's history. Doubled: two effects of
one run, a call again without a reason, fences that do not grow. Early: a call before its time. Phantom: a
call that nobody asked for. Late: slow although nothing has been wrong for a while.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from tests.chaos.calls import SECOND_US, Call, nominal_of, spelled
from tests.chaos.ledger import JobLife

Endings = Mapping[tuple[str, int], str]  # (job, nominal time) -> "SKIPPED overlap", "FAILED", …


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is known from outside."""

    jobs: Sequence[JobLife]
    calls: Sequence[Call]
    endings: Endings
    disturbed: Sequence[tuple[int, int]]  # from a kill to the next time it was ready
    healed_at: int  # since when nothing is disturbed
    final_at: int  # everything owed by then has had its time: it is quiet since long before the log was read
    window_us: int  # within which an owed time must be called while things go wrong
    calm_us: int = 5 * SECOND_US  # how long after healing lateness is excused
    calm_window_us: int = 2 * SECOND_US
    paused: Sequence[tuple[int, int]] = ()  # while a worker stood still and others went on with its runs


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What was found wrong; each line names the run."""

    owed: int = 0
    called: int = 0
    repeated: int = 0
    excused: int = 0
    stale: int = 0  # calls of a worker that had stood still, under an older fence, without an effect
    worst_healed_us: int = 0  # lateness of times after healing
    worst_calm_us: int = 0  # and once lateness is not excused any more
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    phantoms: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Every finding, with its sort in front."""
        sorts = ("lost", "doubled", "early", "phantoms", "late")
        return [f"{sort}: {line}" for sort in sorts for line in getattr(self, sort)]

    def __str__(self) -> str:
        counts = (
            f"{sort} {len(getattr(self, sort))}" for sort in ("lost", "doubled", "early", "phantoms", "late")
        )
        head = f"owed {self.owed}, called {self.called}, repeated {self.repeated}, excused {self.excused}"
        worst = f"worst lag after heal {self.worst_healed_us / 1e6:.2f} s, when calm {self.worst_calm_us / 1e6:.2f} s"
        return f"{head}, stale {self.stale}; {', '.join(counts)}; {worst}"


def check(evidence: Evidence) -> Verdict:
    """The verdict on one history."""
    verdict = Verdict()
    jobs = {life.job: life for life in evidence.jobs}
    by_key: dict[str, list[Call]] = defaultdict(list)
    for call in evidence.calls:
        by_key[call.key].append(call)
    for key, calls in by_key.items():
        _judge_identity(verdict, evidence, key, calls)
        life = jobs.get(calls[0].job)
        if life is None:
            verdict.phantoms.append(f"{key}: its job was never acknowledged")
        else:
            _judge_repeats(verdict, evidence, life, key, calls)
    for life in evidence.jobs:
        first = {key: calls[0] for key, calls in by_key.items() if calls[0].job == life.job}
        _judge_job(verdict, evidence, life, first)
    verdict.called = len(by_key)
    verdict.repeated = sum(len(calls) > 1 for calls in by_key.values())
    return verdict


def unmatched(windows: Iterable[tuple[int, int]], arrivals: Iterable[int]) -> list[int]:
    """Openings of the windows for which no arrival is left, when each arrival serves one window.

    Arrivals in order of time, each given to the open window that closes first: no assignment serves more.
    """
    coming = sorted(windows)
    open_now: list[tuple[int, int]] = []  # (closes, opens)
    missed: list[int] = []
    position = 0
    for at in sorted(arrivals):
        while position < len(coming) and coming[position][0] <= at:
            heappush(open_now, coming[position][::-1])
            position += 1
        while open_now and open_now[0][0] < at:
            missed.append(heappop(open_now)[1])
        if open_now:
            heappop(open_now)
    return sorted(missed + [opens for _, opens in open_now] + [opens for opens, _ in coming[position:]])


def _judge_identity(verdict: Verdict, evidence: Evidence, key: str, calls: Sequence[Call]) -> None:
    """The key names job and time, the same at every call; one effect; fences grow; nothing is early.

    A target that refuses older fences would refuse the call of a worker that had stood still.
    """
    for call in calls:
        if not key.startswith(f"{call.job}@") or nominal_of(key) != call.nominal_at:
            verdict.doubled.append(f"{key}: called as {call.job} at {spelled(call.nominal_at)}")
        if call.at < call.nominal_at:
            verdict.early.append(f"{key}: {call.nominal_at - call.at} us too early")
    if sum(call.applied for call in calls) != 1:
        verdict.doubled.append(f"{key}: {sum(call.applied for call in calls)} effects")
    for before, after in pairwise(calls):
        if after.attempt < before.attempt and _is_disturbed(evidence.paused, before.at, after.at):
            verdict.stale += 1
        elif after.attempt <= before.attempt:
            verdict.doubled.append(f"{key}: attempt {after.attempt} after attempt {before.attempt}")


def _judge_repeats(
    verdict: Verdict, evidence: Evidence, life: JobLife, key: str, calls: Sequence[Call]
) -> None:
    """A run is called again only if its call failed or its worker was disturbed meanwhile."""
    if life.at_most_once and len(calls) > 1:
        verdict.doubled.append(f"{key}: {len(calls)} calls of an at_most_once job")
    for before, after in pairwise(calls):
        if _went_wrong(before) or _is_disturbed(evidence.disturbed, before.at, after.at):
            continue
        verdict.doubled.append(f"{key}: attempt {after.attempt} although attempt {before.attempt} went well")


def _went_wrong(call: Call) -> bool:
    """Whether the sink was told to answer this call badly."""
    words = call.path.strip("/").split("/")
    return call.applied if words[0] == "once" else words[0] not in ("ok", "slow")


def _is_disturbed(disturbed: Sequence[tuple[int, int]], from_at: int, to_at: int) -> bool:
    return any(begun_at <= to_at and over_at >= from_at for begun_at, over_at in disturbed)


def _judge_job(verdict: Verdict, evidence: Evidence, life: JobLife, first: Mapping[str, Call]) -> None:
    scheduled = {call.nominal_at: call for key, call in first.items() if key not in life.manual}
    manual = {key: call for key, call in first.items() if key in life.manual}
    for key in sorted(life.manual - manual.keys()):
        if not _is_excused(verdict, evidence, life, nominal_of(key)):
            verdict.lost.append(f"{key} ({life.name}): acknowledged run now, never called")
    possible = life.possible(max([evidence.final_at, *scheduled]))
    for at in sorted(scheduled.keys() - possible):
        verdict.phantoms.append(f"{life.job}@{spelled(at)} ({life.name}): not a time of this job")
    owed = life.owed(evidence.final_at)
    verdict.owed += len(owed)
    missing = {at for at in owed - scheduled.keys() if not _is_excused(verdict, evidence, life, at)}
    for at in sorted(missing):
        ending = evidence.endings.get((life.job, at), "no trace")
        verdict.lost.append(f"{life.job}@{spelled(at)} ({life.name}): {ending}")
    _judge_windows(verdict, evidence, life, owed & scheduled.keys(), scheduled)


def _is_excused(verdict: Verdict, evidence: Evidence, life: JobLife, at: int) -> bool:
    """Whether a time without a call has an end in history that its job allows."""
    ending = evidence.endings.get((life.job, at))
    excused = ending is not None and ending in life.tolerated
    verdict.excused += excused
    return excused


def _judge_windows(
    verdict: Verdict, evidence: Evidence, life: JobLife, owed: set[int], scheduled: Mapping[int, Call]
) -> None:
    """Whatever the calls call themselves: enough of them came, each within the window of a time of its own."""
    calm_at = evidence.healed_at + evidence.calm_us
    lags = [(at, scheduled[at].at - at) for at in owed]
    healed = [lag_us for at, lag_us in lags if at >= evidence.healed_at]
    calm = [lag_us for at, lag_us in lags if at >= calm_at]
    verdict.worst_healed_us = max(verdict.worst_healed_us, *healed, 0)
    verdict.worst_calm_us = max(verdict.worst_calm_us, *calm, 0)
    windows = [(at, at + (evidence.calm_window_us if at >= calm_at else evidence.window_us)) for at in owed]
    for at in unmatched(windows, [call.at for call in scheduled.values()]):
        late_us = scheduled[at].at - at
        verdict.late.append(
            f"{life.job}@{spelled(at)} ({life.name}): first called {late_us} us after its time"
        )
