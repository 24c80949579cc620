"""Who did what: every change that somebody asked for leaves one deed for each thing it changed, and nothing else does."""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator

import msgspec
import pytest

from hourhand.core.access import EVERY_TENANT, Via
from hourhand.core.api_token import format_token_id
from hourhand.core.backfill import Backfill, BackfillAction, BackfillSpec, new_backfill
from hourhand.core.deeds import Act, Deed
from hourhand.core.identity import (
    RunKey,
    format_backfill_id,
    format_job_id,
    format_operation_id,
    format_run_id,
)
from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import AfterTiming, Job
from hourhand.core.quota import QuotaOverride
from hourhand.core.skipping import NoSuchTime
from hourhand.core.webhooks import Webhook, format_webhook_id, rotated
from hourhand.errors import Conflict, Invalid
from hourhand.ports.acting import Actor, acting_for
from hourhand.ports.backfills import BackfillQuery, DecideBackfill
from hourhand.ports.deeds import DeedQuery
from hourhand.ports.reading import JobQuery
from hourhand.ports.store import JobEdit, Refusal, Store
from hourhand.ports.tokens import TokenQuery
from tests.contract import deed_killed
from tests.contract.builders import draft, every, once, spec
from tests.contract.harness import KEEP_US, at
from tests.contract.scene import DEFAULT_TENANT, Scene
from tests.contract.test_operations import add as add_operation
from tests.contract.test_tokens import token
from tests.contract.test_webhooks import add as add_webhook

ANN = Actor(subject="ann", via=Via.TOKEN, request_id="r-1")
BOB = Actor(subject="bob", via=Via.JWT)


@pytest.fixture
def by_ann() -> Iterator[None]:
    with acting_for(ANN):
        yield


async def deeds(scene: Scene, tenant: str = DEFAULT_TENANT, **query: object) -> list[Deed]:
    """All deeds, oldest first."""
    page = await scene.store.deeds(tenant, DeedQuery(**{"limit": 1_000, **query}))  # type: ignore[arg-type]
    assert page.next_before is None
    return list(page.deeds[::-1])


async def acts(scene: Scene) -> list[tuple[str, str | None, int | None]]:
    """What was done to what, and which version that made."""
    return [(one.action, one.done_to, one.version) for one in await deeds(scene)]


async def letters(scene: Scene, count: int = 2) -> tuple[Job, list[RunKey]]:
    """A job with some dead letters; nobody asked for any of it."""
    job = await scene.create(spec(every(1), concurrency=None))
    await scene.plan()
    node_id = await scene.worker()
    scene.go_to(at(count))
    runs = (await scene.take(node_id, lead_us=0))[:count]
    return job, [await scene.kill(run) for run in runs]


def backfill_of(hours: int = 3) -> DecideBackfill:
    def decide(job: Job, now_at: int) -> Backfill:
        asked = BackfillSpec(from_at=now_at - hours * HOUR_US, to_at=now_at, note="INC-7")
        return new_backfill(job.id + 1, job, asked, now_at, KEEP_US)

    return decide


# --- jobs


async def test_jobs_leave_who_made_each_version(scene: Scene) -> None:
    with acting_for(ANN):
        job = await scene.create()
    scene.pass_time(1)
    with acting_for(BOB):
        await scene.change(job, name="new")
    scene.pass_time(10)

    def pause(present: Job, now_at: int) -> JobEdit:
        return JobEdit(spec=present.spec, paused=True, note="INC-42", act=Act.JOB_PAUSE)

    with acting_for(ANN):
        await scene.store.change_job(job.tenant, job.id, pause)
        scene.pass_time(10)
        await scene.delete(job)
    job_id = format_job_id(job.id)
    assert await acts(scene) == [
        ("job.create", job_id, 1),
        ("job.update", job_id, 2),
        ("job.pause", job_id, 3),
        ("job.delete", job_id, 4),
    ]
    first, second, third, _ = await deeds(scene)
    assert (first.subject, first.via, first.request_id, first.at) == ("ann", "token", "r-1", at(0))
    assert (second.subject, second.via, second.request_id, second.at) == ("bob", "jwt", None, at(1))
    assert (second.note, third.note) == (None, "INC-42")
    versions = [one.version for one in await scene.store.versions(job.tenant, job.id)]
    assert versions == [1, 2, 3, 4]
    assert await scene.store.makers(job.tenant, job.id) == {1: "ann", 2: "bob", 3: "ann", 4: "ann"}


async def test_what_nobody_asked_for_leaves_nothing(scene: Scene) -> None:
    job = await scene.create()
    await scene.change(job, name="new")
    await scene.pause(job, until=scene.now + 10 * SECOND_US)
    await scene.run_now(job)
    with acting_for(ANN):
        gone = await scene.create(spec(once(at(60))))
    scene.pass_time(60)
    await scene.tend()  # the pause ends by itself
    assert (await scene.get(job)).version == 4
    await scene.delete(gone)
    assert [one.action for one in await deeds(scene)] == ["job.create"]
    assert await scene.store.makers(job.tenant, job.id) == {}


async def test_many_jobs_leave_one_deed_each_and_refused_ones_none(scene: Scene, by_ann: None) -> None:
    drafts = [draft(spec(key=f"k{n % 700}")) for n in range(1_000)]
    answers = await scene.store.create_jobs(drafts)
    made = [answer for answer in answers if isinstance(answer, Job)]
    assert answers.count(Refusal.KEY_TAKEN) == 300
    found = await deeds(scene)
    assert {one.job_id for one in found} == {job.id for job in made}
    assert len(found) == len(made) == 700
    assert {(one.action, one.version, one.subject) for one in found} == {("job.create", 1, "ann")}


async def test_requests_that_share_a_transaction_keep_who_asked(scene: Scene) -> None:
    async def create(number: int) -> tuple[Job, str | None]:
        who = None if number % 3 == 0 else f"person-{number}"
        if who is None:
            return await scene.create(), who
        with acting_for(Actor(subject=who, via=Via.TOKEN)):
            return await scene.create(), who

    made = await asyncio.gather(*(create(n) for n in range(60)))
    asked = {job.id: who for job, who in made if who is not None}
    assert {one.job_id: one.subject for one in await deeds(scene)} == asked


async def test_a_refused_change_leaves_nothing(scene: Scene) -> None:
    job, other = await scene.create(spec(key="a")), await scene.create(spec(key="b"))
    child = await scene.create(spec(AfterTiming(parents=(other.id,))))

    def refuse(present: Job, now_at: int) -> JobEdit:
        raise Invalid("no")

    with acting_for(ANN):
        with pytest.raises(Invalid):
            await scene.store.change_job(job.tenant, job.id, refuse)
        with pytest.raises(Conflict):
            await scene.change(job, key="b")
        with pytest.raises(Conflict):  # somebody follows it
            await scene.store.delete_job(other.tenant, other.id, False)
        with pytest.raises(Invalid):  # a circle
            await scene.change(other, timing=AfterTiming(parents=(child.id,)))
        nobodys = job.id + 1_000_000
        assert await scene.store.delete_job(job.tenant, nobodys, False) is None
        assert await scene.store.delete_job("others", job.id, False) is None
        assert await scene.store.add_run("others", job.id, None) is None
        with pytest.raises(NoSuchTime):
            await scene.store.skip_time(job.tenant, job.id, 5, None)
    assert await deeds(scene) == []
    assert await deeds(scene, "others") == []


async def test_roots_that_move_together_leave_a_deed_each(scene: Scene) -> None:
    roots = [await scene.create(spec(every(60))) for _ in range(2)]
    await scene.create(spec(AfterTiming(parents=tuple(root.id for root in roots))))

    def decide(present: Job, now_at: int) -> JobEdit:
        return JobEdit(spec=msgspec.structs.replace(present.spec, timing=every(30)), paused=False)

    with acting_for(ANN):
        await scene.store.change_job(DEFAULT_TENANT, roots[0].id, decide, roots_too=True)
    expected = {("job.update", format_job_id(root.id), 2) for root in roots}
    assert set(await acts(scene)) == expected
    assert len(await deeds(scene)) == 2


# --- runs


async def test_runs_beside_the_schedule(scene: Scene) -> None:
    job = await scene.create()
    child = await scene.create(spec(AfterTiming(parents=(job.id,))))
    with acting_for(ANN):
        first = await scene.run_now(job, "same")
        assert await scene.run_now(job, "same") == first
        scene.pass_time(1)
        wave = await scene.store.add_run(job.tenant, job.id, None, downstream=True)
        assert wave is not None
        scene.pass_time(1)
        await scene.store.cancel_run(job.tenant, first)
        with pytest.raises(Conflict):
            await scene.store.cancel_run(job.tenant, first)
        scene.pass_time(1)
        again = await scene.store.rerun(job.tenant, first, "key")
        assert again == await scene.store.rerun(job.tenant, first, "key")
        assert again is not None
        with pytest.raises(Conflict):
            await scene.store.rerun(job.tenant, again, None)
    assert await acts(scene) == [
        ("job.run", format_run_id(*first), None),
        ("job.run", format_run_id(*wave), None),
        ("run.cancel", format_run_id(*first), None),
        ("run.rerun", format_run_id(*first), None),
    ]
    assert [one.count for one in await deeds(scene)] == [None, 2, None, None]
    assert await deeds(scene, job_id=child.id) == []


async def test_a_worker_that_is_asked_twice_was_asked_once(scene: Scene) -> None:
    _, _, run = await scene.busy(spec(every(1)))
    with acting_for(ANN):
        for _ in range(2):
            await scene.store.cancel_run(DEFAULT_TENANT, run.key)
    assert await acts(scene) == [("run.cancel", format_run_id(*run.key), None)]


async def test_skipped_times(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    with acting_for(ANN):
        skip = await scene.store.skip_time(job.tenant, job.id, None, "holiday")
        assert skip is not None
        time_ = skip.scheduled_at
        await scene.store.skip_time(job.tenant, job.id, time_, "holiday")  # nothing new
        scene.pass_time(1)
        await scene.store.skip_time(job.tenant, job.id, time_, "no, a strike")
        scene.pass_time(1)
        await scene.store.unskip_time(job.tenant, job.id, time_)
        with pytest.raises(NoSuchTime):
            await scene.store.unskip_time(job.tenant, job.id, time_)
    run_id = format_run_id(job.id, time_)
    found = [(one.action, one.done_to, one.note) for one in await deeds(scene)]
    assert found == [
        ("job.skip", run_id, "holiday"),
        ("job.skip", run_id, "no, a strike"),
        ("job.unskip", run_id, None),
    ]


async def test_dead_letters_leave_one_deed_each(scene: Scene) -> None:
    job, keys = await letters(scene, 3)
    with acting_for(ANN):
        assert await scene.store.requeue(job.tenant, keys[:2]) == keys[:2]
        assert await scene.store.requeue(job.tenant, keys[:2]) == []
        scene.pass_time(1)
        assert await scene.store.discard(job.tenant, keys) == keys[2:]
        assert await scene.store.discard(job.tenant, keys) == []
        assert await scene.store.requeue("others", keys) == []
    found = await acts(scene)
    assert set(found[:2]) == {("dead_letters.requeue", format_run_id(*key), None) for key in keys[:2]}
    assert found[2:] == [("dead_letters.discard", format_run_id(*keys[2]), None)]


async def test_backfills(scene: Scene) -> None:
    job = await scene.create(spec(every(3_600)))
    with acting_for(ANN):
        made = await scene.store.add_backfill(job.tenant, job.id, backfill_of())
        assert made is not None
        with pytest.raises(Conflict):
            await scene.store.add_backfill(job.tenant, job.id, backfill_of())
        for action in (BackfillAction.PAUSE, BackfillAction.RESUME, BackfillAction.CANCEL):
            for _ in range(2):
                scene.pass_time(1)
                await scene.store.change_backfill(job.tenant, made.id, action)
        with pytest.raises(Conflict):
            await scene.store.change_backfill(job.tenant, made.id, BackfillAction.PAUSE)
        assert await scene.store.change_backfill("others", made.id, BackfillAction.CANCEL) is None
    await scene.store.feed_backfill(made.id)
    name = format_backfill_id(made.id)
    found = await deeds(scene)
    assert [(one.action, one.done_to, one.job_id) for one in found] == [
        (f"backfill.{word}", name, job.id) for word in ("create", "pause", "resume", "cancel")
    ]
    assert (found[0].count, found[0].note) == (made.tally.total, "INC-7")


async def test_operations(scene: Scene, by_ann: None) -> None:
    made = await add_operation(scene, 5, tenant=DEFAULT_TENANT)
    await scene.store.move_operation(msgspec.structs.replace(made, done=1))  # how far it is
    scene.pass_time(1)
    for _ in range(2):
        await scene.store.cancel_operation(DEFAULT_TENANT, 5)
    assert await scene.store.cancel_operation("others", 5) is None
    name = format_operation_id(5)
    found = [(one.action, one.done_to, one.count, one.note) for one in await deeds(scene)]
    assert found == [("operation.create", name, 1, "why"), ("operation.cancel", name, None, None)]


async def test_tokens_are_their_tenants_whoever_makes_them(scene: Scene, by_ann: None) -> None:
    for tenant, number in (("acme", 7), (EVERY_TENANT, 8)):
        made = token(number, tenant)
        for _ in range(2):
            assert await scene.store.add_token(made)
        assert not await scene.store.add_token(msgspec.structs.replace(made, digest=b"another"))
        assert await scene.store.revoke_token("others", number) is None
        scene.pass_time(1)
        for _ in range(2):
            await scene.store.revoke_token(None, number)
        found = [(one.action, one.done_to, one.note) for one in await deeds(scene, tenant)]
        name = format_token_id(number)
        assert found == [("token.create", name, f"ci {number}"), ("token.revoke", name, f"ci {number}")]
    await scene.store.note_token_use([7, 8])
    assert len(await deeds(scene, "acme")) == 2


async def test_quotas_are_their_tenants_where_they_differ(scene: Scene, by_ann: None) -> None:
    for override in (QuotaOverride(jobs=5), QuotaOverride(jobs=5), QuotaOverride(jobs=5, payload_bytes=0)):
        await scene.store.set_quota("acme", override)
        scene.pass_time(1)
    found = [(one.action, one.done_to, one.note) for one in await deeds(scene, "acme")]
    assert found == [
        ("quota.set", "acme", "jobs: 5"),
        ("quota.set", "acme", "jobs: 5, payload_bytes: 0"),
    ]


async def test_webhooks_never_with_a_secret_or_an_address(scene: Scene, by_ann: None) -> None:
    secret = {"url": "https://example.com/canary", "secrets": ("whsec_canary",)}
    made = await add_webhook(scene, **secret, description="our chat")
    await scene.store.add_webhook(made)  # nothing new
    steps: list[Callable[[], Awaitable[object]]] = [
        lambda: scene.store.change_webhook(made.tenant, made.id, _renamed),
        lambda: scene.store.change_webhook(
            made.tenant, made.id, lambda old, now_at: rotated(old, "whsec_canary_2", now_at)
        ),
        lambda: scene.store.deliver(made.tenant, made.id, "test-1", "{}"),
        lambda: scene.store.deliver(made.tenant, made.id, "test-1", "{}"),  # nothing new
        lambda: scene.store.redeliver(made.tenant, made.id, "test-1"),
        lambda: scene.store.redeliver(made.tenant, made.id, "unknown"),
        lambda: scene.store.delete_webhook("others", made.id),
        lambda: scene.store.delete_webhook(made.tenant, made.id),
        lambda: scene.store.delete_webhook(made.tenant, made.id),
        lambda: scene.store.change_webhook(made.tenant, made.id, _renamed),
        lambda: scene.store.deliver(made.tenant, made.id, "test-2", "{}"),
    ]
    for step in steps:
        scene.pass_time(1)
        await step()
    found = await deeds(scene)
    assert [(one.action, one.note) for one in found] == [
        ("webhook.create", "our chat"),
        ("webhook.update", "new"),
        ("webhook.rotate", "new"),
        ("webhook.test", "test-1"),
        ("webhook.redeliver", "test-1"),
        ("webhook.delete", "new"),
    ]
    assert {one.done_to for one in found} == {format_webhook_id(made.id)}
    assert "canary" not in str(found)
    assert await deeds(scene, "others") == []


def _renamed(old: Webhook, now_at: int) -> Webhook:
    return msgspec.structs.replace(old, description="new", updated_at=now_at)


async def test_what_workers_and_duties_do_is_nobodys_deed(scene: Scene) -> None:
    _, _, run = await scene.busy(spec(every(1)))
    await scene.finish(run, Event.SUCCEED)
    await scene.plan()
    await scene.store.purge(0, 0, 100)
    assert await deeds(scene) == []


# --- reading


async def test_pages_are_newest_first_and_stable_while_more_is_done(scene: Scene, by_ann: None) -> None:
    jobs = [await scene.create() for _ in range(7)]  # all in one moment
    seen: list[Deed] = []
    before = None
    while True:
        page = await scene.store.deeds(DEFAULT_TENANT, DeedQuery(limit=2, before=before))
        seen += page.deeds
        if page.next_before is None:
            break
        before = page.next_before
        scene.pass_time(1)
        await scene.create()
    assert [one.job_id for one in seen] == [job.id for job in reversed(jobs)]


async def test_filters(scene: Scene) -> None:
    with acting_for(ANN):
        first = await scene.create()
        scene.pass_time(10)
        other = await scene.create(tenant="others")
    with acting_for(BOB):
        second = await scene.create()
        scene.pass_time(10)
        await scene.run_now(first)

    async def found(**query: object) -> list[tuple[str, int | None]]:
        return [(one.action, one.job_id) for one in await deeds(scene, **query)]  # type: ignore[arg-type]

    everything = [("job.create", first.id), ("job.create", second.id), ("job.run", first.id)]
    assert await found() == everything
    assert await found(tenant="others") == [("job.create", other.id)]
    assert await found(job_id=first.id) == [everything[0], everything[2]]
    assert await found(job_id=other.id) == []
    assert await found(subject="ann") == everything[:1]
    assert await found(action="job.run") == everything[2:]
    assert await found(action="job.*") == everything
    assert await found(action="run.*") == []
    assert await found(from_at=at(10), to_at=at(20)) == everything[1:2]
    assert await found(job_id=first.id, from_at=at(1)) == everything[2:]
    assert await scene.store.makers("others", first.id) == {}


async def test_a_filter_that_few_fit_ends_in_bounded_pages(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.deeds.MOST_LOOKED_AT", 10)
    with acting_for(BOB):
        wanted = await scene.create()
    with acting_for(ANN):
        for _ in range(25):
            await scene.create()
    pages, before = [], None
    while True:
        page = await scene.store.deeds(DEFAULT_TENANT, DeedQuery(subject="bob", limit=3, before=before))
        pages.append([one.job_id for one in page.deeds])
        before = page.next_before
        if before is None:
            break
    assert pages == [[], [], [wanted.id]]


async def test_a_cursor_of_another_shape_is_refused(scene: Scene) -> None:
    with pytest.raises(Invalid, match="next_cursor"):
        await scene.store.deeds(DEFAULT_TENANT, DeedQuery(before=(1, 2, 3)))


# --- keeping


async def test_deeds_are_kept_as_long_as_history(scene: Scene, by_ann: None) -> None:
    old = await scene.create()
    scene.pass_time(40 * DAY_US // SECOND_US)
    new = await scene.create()
    limit_at = scene.now - KEEP_US
    for _ in range(10):
        if not await scene.store.purge(limit_at, limit_at, 100):
            break
    assert [one.job_id for one in await deeds(scene)] == [new.id]
    assert await scene.store.makers(old.tenant, old.id) == {}


async def test_they_survive_the_end_of_the_process(scene: Scene, by_ann: None) -> None:
    job = await scene.create()
    await scene.harness.reopen()
    assert [one.job_id for one in await deeds(scene)] == [job.id]


# --- both or neither


async def _standing(scene: Scene, job: Job, keys: list[RunKey]) -> list[object]:
    """All that the changes below could leave behind."""
    return [
        await scene.tables(),
        await scene.store.versions(job.tenant, job.id),
        await scene.store.list_jobs(job.tenant, JobQuery()),
        await scene.store.skips(job.tenant, job.id),
        await scene.store.list_backfills(job.tenant, BackfillQuery()),
        await scene.store.list_operations(job.tenant, None, 10),
        await scene.store.list_tokens(TokenQuery(tenant=None)),
        await scene.store.list_webhooks(job.tenant),
        await scene.store.standing(job.tenant),
        [await scene.store.get_run(job.tenant, key) for key in keys],
    ]


_HOOK = 77  # a webhook that is there

CHANGES: dict[str, Callable[[Scene, Job, list[RunKey]], Awaitable[object]]] = {
    "create_jobs": lambda scene, job, keys: scene.create(),
    "change_job": lambda scene, job, keys: scene.change(job, name="new"),
    "delete_job": lambda scene, job, keys: scene.delete(job, cancel_running=True),
    "add_run": lambda scene, job, keys: scene.run_now(job, "key"),
    "skip_time": lambda scene, job, keys: scene.store.skip_time(job.tenant, job.id, None, "x"),
    "unskip_time": lambda scene, job, keys: scene.store.unskip_time(job.tenant, job.id, None),
    "cancel_run": lambda scene, job, keys: scene.store.cancel_run(job.tenant, keys[-1]),
    "rerun": lambda scene, job, keys: scene.store.rerun(job.tenant, keys[0], None),
    "requeue": lambda scene, job, keys: scene.store.requeue(job.tenant, keys[:2]),
    "discard": lambda scene, job, keys: scene.store.discard(job.tenant, keys[:2]),
    "add_backfill": lambda scene, job, keys: scene.store.add_backfill(job.tenant, job.id, backfill_of(1)),
    "change_backfill": lambda scene, job, keys: scene.store.change_backfill(
        job.tenant, job.id + 1, BackfillAction.PAUSE
    ),
    "add_operation": lambda scene, job, keys: add_operation(scene, 6, tenant=job.tenant),
    "add_token": lambda scene, job, keys: scene.store.add_token(token(9, job.tenant)),
    "revoke_token": lambda scene, job, keys: scene.store.revoke_token(None, 8),
    "cancel_operation": lambda scene, job, keys: scene.store.cancel_operation(job.tenant, 5),
    "set_quota": lambda scene, job, keys: scene.store.set_quota(job.tenant, QuotaOverride(jobs=77)),
    "add_webhook": lambda scene, job, keys: add_webhook(scene, tenant=job.tenant),
    "change_webhook": lambda scene, job, keys: scene.store.change_webhook(job.tenant, _HOOK, _renamed),
    "delete_webhook": lambda scene, job, keys: scene.store.delete_webhook(job.tenant, _HOOK),
    "deliver": lambda scene, job, keys: scene.store.deliver(job.tenant, _HOOK, "test-2", "{}"),
    "redeliver": lambda scene, job, keys: scene.store.redeliver(job.tenant, _HOOK, "test-1"),
}


@pytest.mark.parametrize("verb", CHANGES)
async def test_a_change_whose_deed_cannot_be_written_did_not_happen(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    job, keys = await letters(scene)
    keys.append(await scene.run_now(job))
    await add_operation(scene, 5, tenant=job.tenant)
    await scene.store.add_token(token(8, job.tenant))
    await scene.store.add_webhook(Webhook(id=_HOOK, tenant=job.tenant, url="https://example.com/"))
    await scene.store.deliver(job.tenant, _HOOK, "test-1", "{}")
    if verb == "unskip_time":
        await scene.store.skip_time(job.tenant, job.id, None, None)
    if verb == "change_backfill":
        await scene.store.add_backfill(job.tenant, job.id, backfill_of(1))
    before = await _standing(scene, job, keys)

    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("somebody pulled the plug")

    with monkeypatch.context() as broken, acting_for(ANN):
        broken.setattr("hourhand.stores.relational.deeds._row", breaks)
        broken.setattr("hourhand.stores.relational.jobs.note_creations", breaks)
        with pytest.raises(RuntimeError, match="the plug"):
            await CHANGES[verb](scene, job, keys)
    assert await _standing(scene, job, keys) == before
    assert await deeds(scene) == []
    with acting_for(ANN):
        await CHANGES[verb](scene, job, keys)
    assert len(await deeds(scene)) == (2 if verb in ("requeue", "discard") else 1)


def test_every_verb_that_people_change_something_by_is_tried_above() -> None:
    """Those that ask for a tenant and do not read; a new one belongs into the table."""
    reads = {
        "backlog", "place", "get_job", "find_jobs", "list_jobs", "versions", "missed", "job_runs", "get_run", "run_facts",
        "list_runs", "job_marks", "graph", "peek_jobs", "glance", "dead_letters", "dead_groups", "get_backfill",
        "list_backfills", "skips", "get_operation", "list_operations", "deeds", "makers", "look_at_job", "count_jobs",
        "get_webhook", "list_webhooks", "list_deliveries", "get_delivery", "standing", "history_kept_us", "room",
    }  # fmt: skip
    verbs = {
        name: inspect.signature(verb)
        for kind in Store.__mro__
        for name, verb in vars(kind).items()
        if not name.startswith("_") and callable(verb)
    }
    asked = {name for name, signature in verbs.items() if "tenant" in signature.parameters}
    by_record = {"create_jobs", "add_operation", "add_token", "add_webhook"}  # they are given their tenant's
    of_requests = {"fence_off", "finish_answer", "abandon_answer"}  # kept beside what a request changes
    assert asked | by_record == reads | of_requests | set(CHANGES)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_that_dies_at_the_deed_leaves_neither(scene: Scene, moment: str) -> None:
    place = getattr(scene.harness, "url", None) or getattr(scene.harness, "path", None)
    if place is None:
        pytest.skip("a store in memory leaves nothing behind")
    await scene.store.close()
    command = (sys.executable, "-m", "tests.contract.deed_killed", str(place), moment)
    process = await asyncio.create_subprocess_exec(*command)
    assert await asyncio.wait_for(process.wait(), 60) == 9
    await scene.harness.reopen()
    assert await scene.store.get_job(DEFAULT_TENANT, deed_killed.ID) is None
    assert await deeds(scene) == []
