"""The agenda hands out each offer once, when it is time, and knows what it has seen."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.agenda import SLOT_US, Agenda
from hourhand.core.instant import SECOND_US
from hourhand.core.model import Durability
from hourhand.core.offer import UpcomingRun

LEAD_US = 2 * SECOND_US
NOW_AT = 1_794_819_600_000_000
ALL = 10**9


def add(agenda, one, now_at=0):
    return agenda.add(one, now_at)


def run(job_id=1, due_at=NOW_AT + 10 * SECOND_US, **fields):
    plain = UpcomingRun(job_id, due_at, due_at, 0, 1, "default", Durability.CRITICAL, False)
    return msgspec.structs.replace(plain, **fields)


def test_an_offer_is_made_a_lead_before_its_time():
    agenda = Agenda(LEAD_US)
    due_at = NOW_AT + 10 * SECOND_US + 1
    assert agenda.next_at() is None
    assert add(agenda, run(due_at=due_at))
    next_at = agenda.next_at()
    assert due_at - LEAD_US <= next_at < due_at - LEAD_US + SLOT_US
    assert agenda.take(next_at - 1, ALL) == []
    [offer] = agenda.take(next_at, ALL)
    assert (offer.job_id, offer.scheduled_at, offer.due_at, offer.fence) == (1, due_at, due_at, 0)
    assert (len(agenda), agenda.next_at(), agenda.take(next_at + SECOND_US, ALL)) == (0, None, [])


def test_everything_of_a_run_comes_out_again():
    agenda = Agenda(LEAD_US)
    added = [
        run(job_id=(1 << 63) - 1, fence=(1 << 31) - 1, run_class=2, pool="gpu", has_slot=True),
        run(job_id=3, durability=Durability.FIRE_AND_FORGET, run_class=0),
    ]
    for one in added:
        add(agenda, one)
    found = agenda.take(NOW_AT + 60 * SECOND_US, ALL)
    assert [(o.key, o.due_at, o.fence, o.run_class, o.pool, o.durability) for o in found] == [
        ((r.job_id, r.scheduled_at), r.due_at, r.fence, r.run_class, r.pool, r.durability) for r in added
    ]


def test_what_is_heard_of_too_late_is_offered_at_once():
    agenda = Agenda(LEAD_US)
    add(agenda, run(due_at=NOW_AT - SECOND_US), NOW_AT)
    assert agenda.next_at() == NOW_AT
    assert len(agenda.take(NOW_AT, ALL)) == 1


def test_what_is_known_is_not_offered_again_until_it_is_news():
    agenda = Agenda(LEAD_US)
    assert add(agenda, run())
    assert not add(agenda, run())
    agenda.take(NOW_AT + 60 * SECOND_US, ALL)
    assert not add(agenda, run())
    assert add(agenda, run(fence=1))
    assert add(agenda, run(has_slot=True))
    assert add(agenda, run(due_at=NOW_AT + 11 * SECOND_US, scheduled_at=NOW_AT + 10 * SECOND_US))
    assert len(agenda) == 3


def test_what_is_well_past_is_forgotten():
    agenda = Agenda(LEAD_US)
    add(agenda, run(due_at=NOW_AT))
    add(agenda, run(due_at=NOW_AT + 5 * SECOND_US))
    agenda.take(NOW_AT + 60 * SECOND_US, ALL)
    agenda.forget(NOW_AT)
    assert agenda.remembered == 2
    agenda.forget(NOW_AT + 2 * SECOND_US)
    assert agenda.remembered == 1
    assert not add(agenda, run(due_at=NOW_AT + 5 * SECOND_US))
    assert add(agenda, run(due_at=NOW_AT))


def test_what_could_not_be_offered_is_offered_later():
    agenda = Agenda(LEAD_US)
    add(agenda, run())
    offers = agenda.take(NOW_AT + 8 * SECOND_US, ALL)
    agenda.again(offers, NOW_AT + 9 * SECOND_US)
    assert agenda.take(NOW_AT + 8 * SECOND_US + 500_000, ALL) == []
    assert agenda.take(NOW_AT + 9 * SECOND_US, ALL) == offers


@given(
    st.lists(st.integers(0, 100 * SLOT_US), max_size=60),
    st.lists(st.tuples(st.integers(0, 120 * SLOT_US), st.integers(1, 20)), max_size=40),
)
def test_each_comes_out_once_in_order_and_never_early(dues, calls):
    agenda = Agenda(0)
    for number, due_at in enumerate(dues):
        add(agenda, run(job_id=number, due_at=due_at))
    out = []
    for now_at, most in [*calls, (200 * SLOT_US, ALL)]:
        taken = agenda.take(now_at, most)
        assert len(taken) <= most
        assert all(offer.due_at <= now_at for offer in taken)
        slots = [-(-offer.due_at // SLOT_US) for offer in taken]
        assert slots == sorted(slots)
        out += [offer.job_id for offer in taken]
        assert len(agenda) == len(dues) - len(out)
    assert sorted(out) == list(range(len(dues)))


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_full_slot_is_handed_out_in_parts(most):
    agenda = Agenda(0)
    for number in range(100):
        add(agenda, run(job_id=number, due_at=NOW_AT))
    out = []
    while batch := agenda.take(NOW_AT, most):
        out += [offer.job_id for offer in batch]
    assert out == list(range(100))
