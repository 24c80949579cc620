"""Offers as bytes: what is written is read again, and nothing else is taken for one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.identity import BACKGROUND
from hourhand.core.model import Durability
from hourhand.core.offer import NotAnOffer, Offer, decode, encode

IDS = st.integers(0, 2**63 - 1)
OFFERS = st.builds(
    Offer,
    job_id=IDS,
    scheduled_at=IDS,
    due_at=IDS,
    fence=st.integers(0, 2**31 - 1),
    run_class=st.integers(0, BACKGROUND - 1),
    pool=st.text(min_size=1, max_size=200).filter(lambda text: text.isprintable()),
    durability=st.sampled_from(Durability),
)
PLAIN = {"v": 1, "job_id": 7, "scheduled_at": 5, "due_at": 6, "fence": 0, "class": 1}


@given(OFFERS)
def test_what_is_written_is_read(offer):
    assert decode(encode(offer)) == offer


def test_the_form_is_what_others_have_been_told():
    offer = Offer(job_id=7, scheduled_at=5, due_at=6, fence=0, run_class=1)
    assert json.loads(encode(offer)) == PLAIN
    full = Offer(
        job_id=7,
        scheduled_at=5,
        due_at=6,
        fence=0,
        run_class=1,
        pool="gpu",
        durability=Durability.FIRE_AND_FORGET,
    )
    assert json.loads(encode(full)) == {**PLAIN, "pool": "gpu", "durability": "fire_and_forget"}


def test_fields_of_later_writers_are_left_alone():
    assert decode(json.dumps({**PLAIN, "colour": "red"}).encode()).job_id == 7


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"v": None},
        {"job_id": -1},
        {"job_id": 2**63},
        {"job_id": "7"},
        {"due_at": 1.5},
        {"class": BACKGROUND},
        {"class": -1},
        {"fence": 2**31},
        {"pool": ""},
        {"pool": "p" * 201},
        {"durability": "eternal"},
    ],
)
def test_nothing_else_is_taken_for_an_offer(change):
    with pytest.raises(NotAnOffer):
        decode(json.dumps({**PLAIN, **change}).encode())


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"{" * 500, b'{"v":1}'])
def test_noise_is_no_offer(text):
    with pytest.raises(NotAnOffer):
        decode(text)
