"""The judge judged: a clean history passes, and each sort of wrong makes it say so."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.calls import SECOND_US, Call, nominal_of, spelled
from tests.chaos.checker import Evidence, Verdict, check, unmatched
from tests.chaos.ledger import Every, JobLife, Once, Seconds, Version

T0 = 1_800_000_000 * SECOND_US
END = T0 + 100 * SECOND_US
KILL = (T0 + 50 * SECOND_US, T0 + 52 * SECOND_US)


def key(at: int, job: str = "J-1") -> str:
    return f"{job}@{spelled(at).replace('-', '').replace(':', '')}"


def call(at: int, *, late_us: int = 1000, attempt: int = 1, **more: object) -> Call:
    fields = {"key": key(at), "job": "J-1", "nominal_at": at, "attempt": attempt, "at": at + late_us}
    return Call(**{**fields, "applied": attempt == 1, "path": "/ok", **more})


def clean() -> Evidence:
    """A job that ran every second, was paused from 20 to 30, and saw a kill in the middle of one call."""
    rule = Every(SECOND_US)
    versions = [
        Version(rule=rule, from_lo=T0 - 5, from_hi=T0),
        Version(rule=None, from_lo=T0 + 20 * SECOND_US, from_hi=T0 + 20 * SECOND_US),
        Version(rule=rule, from_lo=T0 + 30 * SECOND_US, from_hi=T0 + 30 * SECOND_US),
    ]
    seconds = [*range(1, 21), *range(31, 101)]
    calls = [call(T0 + second * SECOND_US) for second in seconds]
    calls.append(call(T0 + 50 * SECOND_US, late_us=2_100_000, attempt=2))
    return Evidence(
        jobs=[JobLife(job="J-1", name="one", versions=versions)],
        calls=sorted(calls, key=lambda one: one.at),
        endings={},
        disturbed=[KILL],
        healed_at=KILL[1],
        final_at=END,
        window_us=30 * SECOND_US,
    )


def test_a_clean_history_passes() -> None:
    verdict = check(clean())
    assert verdict.problems() == []
    assert (verdict.owed, verdict.called, verdict.repeated) == (90, 90, 1)


def without(evidence: Evidence, second: int) -> Evidence:
    gone = T0 + second * SECOND_US
    return replace(evidence, calls=[one for one in evidence.calls if one.nominal_at != gone])


def with_calls(evidence: Evidence, *calls: Call) -> Evidence:
    return replace(evidence, calls=sorted([*evidence.calls, *calls], key=lambda one: one.at))


def second(number: int) -> int:
    return T0 + number * SECOND_US


WRONG: dict[str, tuple[str, Callable[[Evidence], Evidence]]] = {
    "a time without a call": ("lost", lambda e: without(e, 7)),
    "an end that the job does not allow": (
        "lost",
        lambda e: replace(without(e, 7), endings={("J-1", second(7)): "SKIPPED misfire"}),
    ),
    "a manual run without a call": (
        "lost",
        lambda e: replace(e, jobs=[replace_life(e, manual={key(second(3) + 1)})]),
    ),
    "a call again for no reason": (
        "doubled",
        lambda e: with_calls(e, call(second(9), late_us=9000, attempt=2)),
    ),
    "an older fence": (
        "doubled",
        lambda e: with_calls(e, call(second(50), late_us=2_200_000, attempt=1, applied=False)),
    ),
    "a second effect": (
        "doubled",
        lambda e: with_calls(e, call(second(50), late_us=2_200_000, attempt=3, applied=True)),
    ),
    "a key that names another time": (
        "doubled",
        lambda e: with_calls(without(e, 9), call(second(9), key=key(second(8) + 5))),
    ),
    "a call before its time": ("early", lambda e: with_calls(without(e, 9), call(second(9), late_us=-1))),
    "a call while paused": ("phantoms", lambda e: with_calls(e, call(second(25)))),
    "a call between the times": ("phantoms", lambda e: with_calls(e, call(second(9) + 500))),
    "a job nobody created": (
        "phantoms",
        lambda e: with_calls(e, call(second(9), job="J-2", key=key(second(9), "J-2"))),
    ),
    "a slow call in calm times": (
        "late",
        lambda e: with_calls(without(e, 100), call(second(100), late_us=3 * SECOND_US)),
    ),
}


def replace_life(evidence: Evidence, **changes: object) -> JobLife:
    return replace(evidence.jobs[0], **changes)


@pytest.mark.parametrize("wrong", WRONG)
def test_each_sort_of_wrong_is_seen(wrong: str) -> None:
    sort, spoil = WRONG[wrong]
    verdict: Verdict = check(spoil(clean()))
    assert getattr(verdict, sort), verdict.problems()


def test_an_end_that_the_job_allows_excuses() -> None:
    evidence = replace(without(clean(), 7), endings={("J-1", second(7)): "SKIPPED overlap"})
    evidence = replace(evidence, jobs=[replace_life(evidence, tolerated=frozenset({"SKIPPED overlap"}))])
    assert check(evidence).problems() == []


@pytest.mark.parametrize(
    ("windows", "arrivals", "expected"),
    [
        ([(0, 10)], [0], []),
        ([(0, 10)], [10], []),
        ([(0, 10)], [11], [0]),
        ([(5, 10)], [4], [5]),
        ([(0, 10), (1, 3)], [2, 9], []),  # the one that closes first is served first
        ([(0, 2), (0, 10), (0, 10)], [1, 5], [0]),
        ([(0, 10), (20, 30)], [], [0, 20]),
    ],
)
def test_arrivals_serve_windows_greedily(
    windows: list[tuple[int, int]], arrivals: list[int], expected: list[int]
) -> None:
    assert unmatched(windows, arrivals) == expected


def test_a_lost_answer_makes_times_possible_and_not_owed() -> None:
    old, new = Every(2 * SECOND_US), Seconds(frozenset({3, 6}))
    life = JobLife(
        job="J-1",
        name="edited",
        versions=[
            Version(rule=old, from_lo=0, from_hi=SECOND_US),
            Version(rule=new, from_lo=second(0), from_hi=second(4)),
        ],
    )
    life.versions[0] = Version(rule=old, from_lo=second(-6), from_hi=second(-3))
    owed = {(at - T0) // SECOND_US for at in life.owed(second(7))}
    possible = {(at - T0) // SECOND_US for at in life.possible(second(7))}
    assert owed == {-2, 0, 6}
    assert possible == {-4, -2, 0, 2, 4, 3, 6}


def test_a_one_time_job_is_owed_although_it_was_created_late() -> None:
    life = JobLife(job="J-1", name="once", versions=[Version(rule=Once(T0), from_lo=T0 + 5, from_hi=T0 + 9)])
    assert life.owed(END) == life.possible(END) == {T0}


def test_run_ids_are_read_by_a_rule_of_their_own() -> None:
    assert nominal_of("J-1@20261116T080000Z") == 1_794_816_000 * SECOND_US
    assert nominal_of("J-1@20261116T080000.000100Z") == 1_794_816_000 * SECOND_US + 100
    with pytest.raises(ValueError, match="not a run id"):
        nominal_of("J-1")
