"""Names take turns, and what waits under one name keeps its order."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.turns import Turns


def test_names_take_turns_whatever_waits_under_each() -> None:
    turns: Turns[str] = Turns()
    for n in range(5):
        turns.add("a", f"a{n}")
    turns.add("b", "b0")
    turns.add("b", "b1")
    assert turns.take(3) == ["a0", "b0", "a1"]
    turns.add("c", "c0")
    assert turns.take(10) == ["b1", "a2", "c0", "a3", "a4"]
    assert not turns
    assert turns.take(1) == []


def test_turns_go_on_where_they_ended() -> None:
    turns: Turns[str] = Turns()
    for name in "abc":
        turns.add(name, f"{name}0")
        turns.add(name, f"{name}1")
    assert [turns.take(1) for _ in range(6)] == [["a0"], ["b0"], ["c0"], ["a1"], ["b1"], ["c1"]]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3))))
def test_nothing_is_lost_or_doubled_and_nobody_waits_for_more_than_one_of_each_other(
    steps: list[tuple[str, int]],
) -> None:
    turns: Turns[tuple[str, int]] = Turns()
    waiting: dict[str, deque[int]] = {}
    passed: dict[str, list[str]] = {}  # whom each name that waits has let pass since its last turn
    for number, (name, most) in enumerate(steps):
        turns.add(name, (name, number))
        waiting.setdefault(name, deque()).append(number)
        passed.setdefault(name, [])
        for taken, which in turns.take(most):
            assert waiting[taken].popleft() == which
            for other in passed:
                assert taken == other or taken not in passed[other]
                passed[other].append(taken)
            passed[taken] = []
            if not waiting[taken]:
                del waiting[taken], passed[taken]
    rest = turns.take(len(steps))
    assert sorted(number for _, number in rest) == sorted(n for one in waiting.values() for n in one)
