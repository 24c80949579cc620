"""`exactly_once` on every driver: one effect whatever is delivered twice, one after another or at the same moment."""

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from threading import Event

import pytest

from hourhand import OldAttempt
from tests.receiver.receivers import Broken, Call, Receiver, effects, ledger

DEADLINE_S = 30
A_WHILE_S = 0.3  # in which what waits must not get further

RUN = "J-0d3x8m2k7q1vt@20261116T080000Z"


def attempt(number: int) -> Call:
    return {"Webhook-Id": RUN, "Hourhand-Attempt": str(number), "Idempotency-Key": "not this one"}


def nothing(first: bool) -> None:
    """What a block does beside its effect."""


def test_the_first_has_the_effect_and_later_ones_do_not(url: str, receive: Receiver) -> None:
    assert receive(url, attempt(2), nothing, False) is True
    assert receive(url, attempt(2), nothing, False) is False  # delivered twice
    assert receive(url, attempt(3), nothing, False) is False  # tried again, since the answer was lost
    assert ledger(url) == ["effect", "note", "note", "note"]
    assert effects(url) == [(RUN, 2)]


def test_an_older_attempt_is_refused(url: str, receive: Receiver) -> None:
    receive(url, attempt(7), nothing, False)
    with pytest.raises(
        OldAttempt, match=f"attempt 6 of {RUN} comes after attempt 7 had its effect"
    ) as caught:
        receive(url, attempt(6), nothing, False)
    assert caught.value.status == 409
    assert ledger(url) == ["effect", "note"]


def test_what_raises_leaves_neither_row_nor_effect(url: str, receive: Receiver) -> None:
    def broken(first: bool) -> None:
        raise Broken("no disk")

    with pytest.raises(Broken, match="no disk"):
        receive(url, attempt(1), broken, False)
    assert (ledger(url), effects(url)) == ([], [])

    receive(url, attempt(2), broken, True)  # caught around the block, and the rest committed
    assert (ledger(url), effects(url)) == (["note"], [])

    assert receive(url, attempt(3), nothing, False) is True
    assert ledger(url) == ["effect", "note", "note"]


def test_nothing_is_committed_before_its_owner_commits(url: str, receive: Receiver) -> None:
    with pytest.raises(Broken, match="after the block"):
        receive(url, {**attempt(1), "then": "after the block"}, nothing, False)
    assert (ledger(url), effects(url)) == ([], [])


@pytest.mark.parametrize("how_it_ends", ["committed", "rolled back"])
def test_a_second_waits_for_the_first(url: str, receive: Receiver, how_it_ends: str) -> None:
    reached, go_on, trying = Event(), Event(), Event()

    def slow(first: bool) -> None:
        reached.set()
        assert go_on.wait(DEADLINE_S)
        if how_it_ends == "rolled back":
            raise Broken

    def second() -> bool:
        trying.set()
        return receive(url, attempt(2), nothing, False)

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(receive, url, attempt(1), slow, False)
        assert reached.wait(DEADLINE_S)
        other: Future[bool] = threads.submit(second)
        assert trying.wait(DEADLINE_S)
        with pytest.raises(NotYet):
            other.result(A_WHILE_S)
        go_on.set()
        if how_it_ends == "rolled back":
            with pytest.raises(Broken):
                one.result(DEADLINE_S)
            assert other.result(DEADLINE_S) is True
        else:
            assert one.result(DEADLINE_S) is True
            assert other.result(DEADLINE_S) is False
    assert ledger(url).count("effect") == 1
    assert effects(url) == [(RUN, 1 if how_it_ends == "committed" else 2)]


def test_many_at_once_have_one_effect(url: str, receive: Receiver) -> None:
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: receive(url, attempt(1), nothing, False), range(6)))
    assert sorted(answers) == [False] * 5 + [True]
    assert ledger(url).count("effect") == 1
