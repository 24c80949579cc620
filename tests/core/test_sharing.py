"""Shares without a leader: everybody computes its own, and together they are everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.sharing import quota


@given(st.integers(1, 200), st.integers(0, 1_000))
def test_shares_add_up_and_differ_by_one_at_most(nodes: int, parts: int) -> None:
    shares = [quota(place, nodes, parts) for place in range(nodes)]
    assert sum(shares) == parts
    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("place", "nodes", "parts", "share"),
    [(0, 1, 64, 64), (0, 3, 64, 22), (1, 3, 64, 21), (2, 3, 64, 21), (64, 65, 64, 0), (0, 2, 0, 0)],
)
def test_shares(place: int, nodes: int, parts: int, share: int) -> None:
    assert quota(place, nodes, parts) == share


@pytest.mark.parametrize(("place", "nodes"), [(-1, 2), (2, 2), (0, 0)])
def test_who_is_not_among_the_living_has_no_share(place: int, nodes: int) -> None:
    with pytest.raises(ValueError, match="not among"):
        quota(place, nodes, 64)
