"""Kept answers: one request has a key at a time, a repeat gets the answer, and nothing is changed twice."""

import asyncio

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.repeating import KEPT_US, LEASE_US, Answer, Fate
from hourhand.errors import Conflict
from hourhand.ports.answers import Asked, Begun, Numbered, Promise, promising
from hourhand.ports.store import JobDraft, JobEdit
from tests.contract.builders import spec
from tests.contract.scene import Scene

ANSWER = Answer(status=201, headers={"location": "/api/v1/jobs/J-1"}, body=b'{"job_id":"J-1"}')


def asked(key: str = "k", body: bytes = b"a", tenant: str = "default") -> Asked:
    return Asked(tenant=tenant, key=key, sum=body)


def under(begun: Begun, key: str = "k") -> Promise:
    return Promise(tenant="default", key=key, fence=begun.fence, since=begun.since)


async def test_a_key_has_one_sender_and_then_one_answer(scene: Scene) -> None:
    first = await scene.store.begin_answer(asked())
    assert first.fate is Fate.NEW
    waiting = await scene.store.begin_answer(asked())
    assert waiting.fate is Fate.IN_FLIGHT
    assert 0 < waiting.retry_after_us <= LEASE_US
    assert (await scene.store.begin_answer(asked(body=b"b"))).fate is Fate.OTHER
    assert (await scene.store.begin_answer(asked(tenant="other"))).fate is Fate.NEW
    assert await scene.store.finish_answer("default", "k", first.fence, ANSWER)
    again = await scene.store.begin_answer(asked())
    assert (again.fate, again.answer) == (Fate.REPLAY, ANSWER)
    assert (await scene.store.begin_answer(asked(body=b"b"))).fate is Fate.OTHER


async def test_of_many_at_once_one_begins(scene: Scene) -> None:
    begun = await asyncio.gather(*(scene.store.begin_answer(asked()) for _ in range(12)))
    assert sorted(one.fate for one in begun) == [Fate.IN_FLIGHT] * 11 + [Fate.NEW]


async def test_an_answer_is_forgotten_after_a_day(scene: Scene) -> None:
    first = await scene.store.begin_answer(asked())
    await scene.store.finish_answer("default", "k", first.fence, ANSWER)
    scene.pass_time((KEPT_US - SECOND_US) / SECOND_US)
    assert (await scene.store.begin_answer(asked())).fate is Fate.REPLAY
    scene.pass_time((SECOND_US) / SECOND_US)
    other = await scene.store.begin_answer(asked(body=b"b"))
    assert other.fate is Fate.NEW
    assert other.fence > first.fence


async def test_purging_takes_pages_and_spares_what_is_young(scene: Scene) -> None:
    for number in range(5):
        await scene.store.begin_answer(asked(f"old-{number}"))
    scene.pass_time((KEPT_US + SECOND_US) / SECOND_US)
    young = await scene.store.begin_answer(asked("young"))
    await scene.store.finish_answer("default", "young", young.fence, ANSWER)
    assert await scene.store.purge(0, 0, 2)
    while await scene.store.purge(0, 0, 2):
        pass
    assert (await scene.store.begin_answer(asked("young"))).fate is Fate.REPLAY
    assert (await scene.store.begin_answer(asked("old-1", b"other"))).fate is Fate.NEW


async def test_whoever_takes_over_learns_what_was_changed(scene: Scene) -> None:
    job = await scene.create(spec())
    first = await scene.store.begin_answer(asked())
    with promising(under(first)):
        await scene.store.change_job(
            "default", job.id, lambda job, now_at: JobEdit(spec=job.spec, paused=True)
        )
    scene.pass_time((LEASE_US) / SECOND_US)
    second = await scene.store.begin_answer(asked())
    assert second.fate is Fate.AGAIN
    past = await scene.store.fence_off("default", "k", fence=second.fence, since=second.since)
    assert past.applied


async def test_whoever_takes_over_learns_that_nothing_was_changed(scene: Scene) -> None:
    await scene.store.begin_answer(asked())
    scene.pass_time((LEASE_US) / SECOND_US)
    second = await scene.store.begin_answer(asked())
    past = await scene.store.fence_off("default", "k", fence=second.fence, since=second.since)
    assert (past.applied, dict(past.made)) == (False, {})


async def test_jobs_that_were_made_are_found_by_their_place(scene: Scene) -> None:
    first = await scene.store.begin_answer(asked())
    drafts = [
        JobDraft(id=10 + n, tenant="default", spec=spec(), numbered=numbered)
        for n, numbered in enumerate([Numbered(key="k", since=first.since, place=place) for place in (0, 3)])
    ]
    with promising(under(first)):
        await scene.store.create_jobs(drafts)
    await scene.store.abandon_answer("default", "k", first.fence)
    second = await scene.store.begin_answer(asked())
    assert second.fate is Fate.AGAIN
    past = await scene.store.fence_off("default", "k", fence=second.fence, since=second.since)
    assert (past.applied, dict(past.made)) == (False, {0: 10, 3: 11})


async def test_who_was_taken_over_changes_nothing_any_more(scene: Scene) -> None:
    job = await scene.create(spec())
    first = await scene.store.begin_answer(asked())
    scene.pass_time((LEASE_US) / SECOND_US)
    second = await scene.store.begin_answer(asked())
    await scene.store.fence_off("default", "k", fence=second.fence, since=second.since)
    draft = JobDraft(id=77, tenant="default", spec=spec())
    with pytest.raises(Conflict, match="taken over"), promising(under(first)):
        await scene.store.create_jobs([draft])
    with pytest.raises(Conflict, match="taken over"), promising(under(first)):
        await scene.store.delete_job("default", job.id, False)
    assert await scene.store.get_job("default", 77) is None
    assert await scene.store.get_job("default", job.id) is not None
    assert not await scene.store.finish_answer("default", "k", first.fence, ANSWER)
    with promising(under(second)):
        assert await scene.store.delete_job("default", job.id, False) is not None


async def test_what_an_earlier_life_of_a_key_changed_is_no_matter(scene: Scene) -> None:
    job = await scene.create(spec())
    first = await scene.store.begin_answer(asked())
    with promising(under(first)):
        await scene.store.delete_job("default", job.id, False)
    scene.pass_time((KEPT_US) / SECOND_US)
    second = await scene.store.begin_answer(asked())
    assert second.fate is Fate.NEW
    scene.pass_time((LEASE_US) / SECOND_US)
    third = await scene.store.begin_answer(asked())
    assert third.fate is Fate.AGAIN
    past = await scene.store.fence_off("default", "k", fence=third.fence, since=third.since)
    assert not past.applied


async def test_a_promise_that_is_over_binds_nobody(scene: Scene) -> None:
    first = await scene.store.begin_answer(asked())
    one = under(first)
    with promising(one):
        pass
    with promising(one):  # what a task that outlives its request would still see
        one.is_open = False
        await scene.create(spec())
    scene.pass_time((LEASE_US) / SECOND_US)
    second = await scene.store.begin_answer(asked())
    past = await scene.store.fence_off("default", "k", fence=second.fence, since=second.since)
    assert not past.applied
