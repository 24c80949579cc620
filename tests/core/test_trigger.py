"""Triggers as bytes: spelled as people are told, read back as the same offer, and without anybody's secrets."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.identity import BACKGROUND
from hourhand.core.model import (
    Durability,
    HttpTarget,
    Job,
    JobSpec,
    OnceTiming,
    PythonTarget,
    ShellTarget,
    Target,
)
from hourhand.core.offer import NotAnOffer, Offer
from hourhand.core.trigger import decode_trigger, encode_reference, encode_trigger, trigger_key

INSTANTS = st.integers(0, 250_000_000_000_000_000)
OFFERS = st.builds(
    Offer,
    job_id=st.integers(0, 2**63 - 1),
    scheduled_at=INSTANTS,
    due_at=INSTANTS,
    fence=st.integers(0, 2**31 - 1),
    run_class=st.integers(0, BACKGROUND - 1),
    pool=st.text(min_size=1, max_size=200).filter(lambda text: text.isprintable()),
    durability=st.sampled_from(Durability),
)
OFFER = Offer(
    job_id=7,
    scheduled_at=1_763_280_000_000_000,
    due_at=1_763_280_000_250_000,
    fence=3,
    run_class=0,
    pool="gpu",
)
PLAIN: dict[str, Any] = {
    "version": 1,
    "job_id": "J-0000000000007",
    "scheduled_time": "2025-11-16T08:00:00Z",
    "due": "2025-11-16T08:00:00.25Z",
    "fence": 3,
    "priority": "HIGH",
    "pool": "gpu",
    "durability": "critical",
}
SECRET = "very-secret"


def carrying(target: Target) -> Offer:
    spec = JobSpec(timing=OnceTiming(at=5), target=target, name="report", payload=msgspec.Raw(b'{"a": [1]}'))
    job = Job(id=7, tenant="acme", spec=spec, version=4, since=0, created_at=0, updated_at=0)
    return msgspec.structs.replace(OFFER, job=job)


@given(OFFERS)
def test_what_is_written_is_read(offer: Offer) -> None:
    assert decode_trigger(encode_trigger(offer)) == offer


def test_the_reference_is_what_others_have_been_told() -> None:
    assert json.loads(encode_reference(OFFER)) == PLAIN
    assert trigger_key(OFFER) == b"J-0000000000007"


def test_a_whole_message_tells_the_job_too_and_reads_back_as_the_same_offer() -> None:
    offer = carrying(HttpTarget(url="https://example.com/hook", headers={"Authorization": SECRET}))
    assert json.loads(encode_trigger(offer)) == {
        **PLAIN,
        "tenant": "acme",
        "job_version": 4,
        "name": "report",
        "key": None,
        "tags": [],
        "target": {"type": "http", "url": "https://example.com/hook", "method": "POST", "timeout": "30s"},
        "payload": {"a": [1]},
        "timeout": "5m",
        "delivery": "at_least_once",
    }
    assert decode_trigger(encode_trigger(offer)) == OFFER
    assert encode_reference(offer) == encode_trigger(OFFER)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (PythonTarget(function="app:report"), {"type": "python", "function": "app:report"}),
        (
            ShellTarget(argv=("a", "b"), env={"KEY": SECRET}),
            {"type": "shell", "argv": ["a", "b"], "cwd": None},
        ),
        (
            HttpTarget(url=f"https://me:{SECRET}@example.com/", headers={"X": SECRET}),
            {"type": "http", "url": "https://me:***@example.com/", "method": "POST", "timeout": "30s"},
        ),
    ],
)
def test_targets_are_told_without_credentials(target: Target, told: dict[str, Any]) -> None:
    text = encode_trigger(carrying(target))
    assert json.loads(text)["target"] == told
    assert SECRET.encode() not in text


def test_fields_of_later_writers_are_left_alone() -> None:
    assert decode_trigger(json.dumps({**PLAIN, "colour": "red"}).encode()) == OFFER


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"\xff\xfe",
        b"{}",
        *(
            json.dumps({**PLAIN, **change}).encode()
            for change in (
                {"version": 2},
                {"job_id": "J-1"},
                {"job_id": 7},
                {"scheduled_time": "yesterday"},
                {"scheduled_time": "2025-11-16T08:00:00"},
                {"due": None},
                {"fence": -1},
                {"priority": "URGENT"},
                {"pool": ""},
                {"durability": "eternal"},
            )
        ),
    ],
)
def test_nothing_else_is_taken_for_one(text: bytes) -> None:
    with pytest.raises(NotAnOffer):
        decode_trigger(text)
