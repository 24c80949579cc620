"""What becomes of a request whose key is known."""

import pytest

from hourhand.core.repeating import KEPT_US, LEASE_US, Fate, Turn, judge, taken

TURN = Turn(sum=b"a", fence=100, since=90, lease_until=100 + LEASE_US, began_at=90)
ANSWERED = Turn(sum=b"a", fence=100, since=90, lease_until=100 + LEASE_US, began_at=90, is_answered=True)


@pytest.mark.parametrize(
    ("turn", "sum_", "now_at", "fate"),
    [
        (TURN, b"a", 101, Fate.IN_FLIGHT),
        (TURN, b"a", 100 + LEASE_US, Fate.AGAIN),
        (TURN, b"b", 101, Fate.OTHER),
        (TURN, b"b", 100 + LEASE_US, Fate.OTHER),
        (ANSWERED, b"a", 101, Fate.REPLAY),
        (ANSWERED, b"b", 101, Fate.OTHER),
        (ANSWERED, b"a", 89 + KEPT_US, Fate.REPLAY),
        (ANSWERED, b"a", 90 + KEPT_US, Fate.NEW),
        (TURN, b"b", 90 + KEPT_US, Fate.NEW),
    ],
)
def test_fates(turn: Turn, sum_: bytes, now_at: int, fate: Fate) -> None:
    assert judge(turn, sum_, now_at) is fate


def test_a_fence_is_above_all_before_it_even_where_the_clock_was_set_back() -> None:
    over = taken(TURN, Fate.AGAIN, b"a", 50)
    assert (over.fence, over.since, over.began_at) == (101, 90, 90)
    new = taken(TURN, Fate.NEW, b"b", 50)
    assert (new.fence, new.since, new.began_at) == (101, 101, 50)
