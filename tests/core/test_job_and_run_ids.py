"""Public ids: exact spellings, order, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.identity import RunKey, format_job_id, format_run_id, parse_job_id, parse_run_id

IDS = st.integers(0, 2**63 - 1)
TIMES = st.integers(0, 4_000_000_000_000_000)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "J-0000000000000"),
        (31, "J-000000000000z"),
        (32, "J-0000000000010"),
        (77, "J-000000000002d"),
        (2**63 - 1, "J-7zzzzzzzzzzzz"),
    ],
)
def test_spelling(number: int, text: str) -> None:
    assert format_job_id(number) == text
    assert parse_job_id(text) == number


@given(IDS, IDS)
def test_ids_sort_as_their_numbers_do(one: int, other: int) -> None:
    assert (format_job_id(one) < format_job_id(other)) is (one < other)
    assert parse_job_id(format_job_id(one)) == one


@given(IDS, TIMES)
def test_a_run_id_names_exactly_one_run(job_id: int, scheduled_at: int) -> None:
    assert parse_run_id(format_run_id(job_id, scheduled_at)) == RunKey(job_id, scheduled_at)
