"""Dead letters: kept with their cause, found and counted, sent back as the same run, or removed."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Job, Trigger
from hourhand.ports.reading import DeadQuery
from tests.contract.builders import every, once, outcome, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import START_AT
from tests.contract.paging import all_letters
from tests.contract.scene import Scene


async def dead(scene: Scene, error: str = "it broke", tenant: str = "default", **fields: object) -> Job:
    """A one-time job whose run is a dead letter."""
    job = await scene.create(spec(once(scene.now), **fields), tenant=tenant)
    for run in await scene.take(await scene.worker()):
        await scene.kill(run, error)
    return job


async def test_a_dead_letter_says_what_happened(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT), name="report"), tenant="acme")
    [run] = await scene.take(await scene.worker())
    scene.pass_time(2)
    await scene.finish(run, Event.EXHAUST, tries=4, detail={"error": "no such host", "status": 500})
    [letter] = (await scene.store.dead_letters("acme", DeadQuery())).letters
    assert (letter.job_id, letter.scheduled_at, letter.tenant) == (job.id, START_AT, "acme")
    assert (letter.job_name, letter.error, letter.tries) == ("report", "no such host", 4)
    assert (letter.fence, letter.trigger, letter.failed_at) == (1, Trigger.SCHEDULED, scene.now)
    assert await scene.state(job, START_AT) is State.FAILED


async def test_a_failure_without_an_error_text_is_kept_too(scene: Scene) -> None:
    await scene.create(spec(once(START_AT)))
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, Event.EXHAUST)
    [letter] = (await scene.store.dead_letters("default", DeadQuery())).letters
    assert letter.error == "failed"


async def test_letters_come_newest_first_page_by_page(scene: Scene) -> None:
    jobs = []
    for n in range(7):
        jobs.append(await dead(scene))
        scene.pass_time(0 if n % 3 else 1)
    letters = await all_letters(scene.store, DeadQuery(limit=3))
    assert [letter.job_id for letter in letters] == [job.id for job in reversed(jobs)]


async def test_letters_are_found_by_job_cause_and_time(scene: Scene) -> None:
    one = await dead(scene, "no answer to request 12345678")
    scene.pass_time(10)
    two = await dead(scene, "no answer to request 8765432109")
    three = await dead(scene, "refused")

    async def find(**query: object) -> set[int]:
        page = await scene.store.dead_letters("default", DeadQuery(**query))  # type: ignore[arg-type]
        return {letter.job_id for letter in page.letters}

    everything = (await scene.store.dead_letters("default", DeadQuery())).letters
    prints = {letter.job_id: letter.fingerprint for letter in everything}
    assert prints[one.id] == prints[two.id] != prints[three.id]
    assert await find(job_id=two.id) == {two.id}
    assert await find(fingerprint=prints[one.id]) == {one.id, two.id}
    assert await find(job_id=one.id, fingerprint=prints[three.id]) == set()
    assert await find(failed_from=START_AT + SECOND_US) == {two.id, three.id}
    assert await find(failed_to=START_AT + SECOND_US) == {one.id}
    assert await find(failed_from=START_AT, failed_to=START_AT) == {one.id}
    assert (await scene.store.dead_letters("other", DeadQuery())).letters == ()
    assert (await scene.store.dead_letters("other", DeadQuery(job_id=one.id))).letters == ()


async def test_letters_are_counted_by_cause_and_by_job(scene: Scene) -> None:
    for _ in range(3):
        scene.pass_time(1)
        last = await dead(scene, "timeout after 5 ms", name="slow")
    await dead(scene, "refused", name="other")
    await dead(scene, "refused", tenant="elsewhere")
    by_error = await scene.store.dead_groups("default", "error", 10)
    assert [(group.count, group.sample.error) for group in by_error] == [
        (3, "timeout after 5 ms"),
        (1, "refused"),
    ]
    assert by_error[0].sample.job_id == last.id
    assert by_error[0].value == by_error[0].sample.fingerprint
    assert len(await scene.store.dead_groups("default", "error", 1)) == 1
    by_job = await scene.store.dead_groups("default", "job", 10)
    assert sorted((group.value, group.count) for group in by_job) == [("other", 1)] + [("slow", 1)] * 3


async def test_a_requeued_letter_is_the_same_run_going_on(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    await scene.plan(120 * SECOND_US)
    node = await scene.worker()
    scene.pass_time(60)
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    [run] = await scene.take(node)
    key = await scene.kill(run)
    scene.pass_time(600)
    assert await scene.store.requeue("default", [key]) == [key]
    assert (await scene.store.dead_letters("default", DeadQuery())).letters == ()
    view = await scene.view(job, key.scheduled_at)
    assert (view.state, view.trigger, view.tries, view.fence) == (State.PENDING, Trigger.REQUEUED, 0, 2)
    taken = await scene.take(node)
    [again] = [one for one in taken if one.key == key]
    assert (again.fence, again.tries, again.run_id, again.trigger) == (3, 0, run.run_id, Trigger.REQUEUED)
    assert again.due_at == scene.now
    await scene.finish(again)
    assert await scene.state(job, key.scheduled_at) is State.SUCCEEDED
    assert_sound(await scene.tables())


async def test_what_a_requeued_run_was_before_is_refused(scene: Scene) -> None:
    await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [old] = await scene.take(node)
    await scene.kill(old)
    await scene.store.requeue("default", [old.key])
    [new] = await scene.take(node)
    late = outcome(old, now_at=scene.now)
    assert await scene.settle(late) == [late]
    await scene.finish(new)


async def test_requeue_and_discard_say_which_were_there(scene: Scene) -> None:
    job, other = await dead(scene), await dead(scene)
    key, other_key = RunKey(job.id, START_AT), RunKey(other.id, START_AT)
    absent = RunKey(job.id, START_AT + 1)
    assert await scene.store.requeue("elsewhere", [key]) == []
    assert await scene.store.discard("elsewhere", [key]) == []
    assert await scene.store.requeue("default", [absent, key, key]) == [key]
    assert await scene.store.requeue("default", [key]) == []
    assert await scene.store.discard("default", [key, other_key, absent]) == [other_key]
    assert await scene.store.discard("default", [other_key]) == []
    assert await scene.state(other, START_AT) is State.FAILED
    assert len(await scene.take(await scene.worker())) == 1


async def test_the_letters_of_a_deleted_job_go_with_it(scene: Scene) -> None:
    job = await dead(scene)
    await scene.delete(job)
    assert (await scene.store.dead_letters("default", DeadQuery())).letters == ()
    assert await scene.store.requeue("default", [RunKey(job.id, START_AT)]) == []
    assert await scene.store.dead_groups("default", "error", 10) == []


@pytest.mark.parametrize("count", [1, 300])
async def test_many_letters_are_sent_back_at_once(scene: Scene, count: int) -> None:
    for _ in range(count):
        await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    for run in await scene.take(node, count):
        await scene.kill(run)
    page = await scene.store.dead_letters("default", DeadQuery(limit=count))
    keys = [RunKey(letter.job_id, letter.scheduled_at) for letter in page.letters]
    assert len(await scene.store.requeue("default", keys)) == count
    assert len(await scene.take(node, count)) == count
