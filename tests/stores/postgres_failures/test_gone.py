"""A server that is gone: every verb says so in time and in words, and nothing that was acknowledged is lost."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.lifecycle import Event
from hourhand.core.log import LogChunk, LogPlace, Stream
from hourhand.core.model import Job
from hourhand.core.plan import ClockPlan
from hourhand.core.run import ProgressNote, Settlement
from hourhand.core.serving import Serves
from hourhand.errors import Unavailable
from hourhand.ports.reading import DeadQuery, JobQuery, RunQuery, Wanted
from hourhand.ports.store import ClaimRequest, JobEdit, Store
from hourhand.stores.postgres import PostgresStore
from tests.contract.builders import draft, once, spec
from tests.servers.postgres import PostgresServer
from tests.servers.tcp_proxy import TcpProxy
from tests.stores.postgres_failures.probes import (
    HOUR_US,
    LEASE_US,
    count,
    healed,
    idle_again,
    now_at,
    said,
    until,
)

_KEY = RunKey(1, 2)
_CHUNK = LogChunk(job_id=1, scheduled_at=2, attempt=1, seq=1, at=3, stream=Stream.OUTPUT, text="said")
_SETTLEMENT = Settlement(
    job_id=1, scheduled_at=2, slot=0, fence=1, event=Event.SUCCEED, version=1, tries=0, finished_at=3
)
EXAMPLES: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "now": lambda s: s.now(),
    "ping": lambda s: s.ping(),
    "backlog": lambda s: s.backlog(),
    "create_jobs": lambda s: s.create_jobs([draft()]),
    "change_job": lambda s: s.change_job("t", 1, lambda job, _: JobEdit(spec=job.spec, paused=True)),
    "delete_job": lambda s: s.delete_job("t", 1, cancel_running=True),
    "get_job": lambda s: s.get_job("t", 1),
    "find_jobs": lambda s: s.find_jobs("t", "name", 1),
    "list_jobs": lambda s: s.list_jobs("t", JobQuery()),
    "count_jobs": lambda s: s.count_jobs("t", JobQuery()),
    "versions": lambda s: s.versions("t", 1),
    "missed": lambda s: s.missed("t", 1),
    "tend_jobs": lambda s: s.tend_jobs(1),
    "due_clocks": lambda s: s.due_clocks([0], 1, 1),
    "next_clock_at": lambda s: s.next_clock_at([0]),
    "plan": lambda s: s.plan([ClockPlan(clock_id=1, expected_next_at=1, new_next_at=2, times=())]),
    "add_run": lambda s: s.add_run("t", 1, "key"),
    "claim": lambda s: s.claim(ClaimRequest(node_id=11, pools=("default",), room=1, lead_us=0)),
    "settle": lambda s: s.settle("w", [_SETTLEMENT]),
    "held_runs": lambda s: s.held_runs(1),
    "cancel_asked": lambda s: s.cancel_asked(1),
    "cancel_run": lambda s: s.cancel_run("t", _KEY),
    "stray_runs": lambda s: s.stray_runs(1, 1),
    "judge_late": lambda s: s.judge_late({}, 1),
    "hand_on_slots": lambda s: s.hand_on_slots(1),
    "purge": lambda s: s.purge(0, 0, 1),
    "tidy": lambda s: s.tidy(),
    "renew_node": lambda s: s.renew_node(1, "worker", "w", LEASE_US),
    "end_node": lambda s: s.end_node(1),
    "hold_segments": lambda s: s.hold_segments(1, "scheduler", "s", LEASE_US),
    "hold_allotted": lambda s: s.hold_allotted(1, "scheduler", "s", LEASE_US, {0: 0}),
    "tell_served": lambda s: s.tell_served(1, Serves(pools=("default",))),
    "segments": lambda s: s.segments(),
    "nodes": lambda s: s.nodes(),
    "job_runs": lambda s: s.job_runs("t", 1, [], None, 1),
    "look_at_job": lambda s: s.look_at_job("t", 1, lambda *_: Wanted(nominals=[], before_at=1, limit=1)),
    "get_run": lambda s: s.get_run("t", _KEY),
    "list_runs": lambda s: s.list_runs("t", RunQuery(from_at=0, to_at=1)),
    "dead_letters": lambda s: s.dead_letters("t", DeadQuery()),
    "dead_groups": lambda s: s.dead_groups("t", "error", 1),
    "requeue": lambda s: s.requeue("t", [_KEY]),
    "discard": lambda s: s.discard("t", [_KEY]),
    "find_attempt": lambda s: s.find_attempt(_KEY, 1),
    "note_progress": lambda s: s.note_progress([ProgressNote(job_id=1, scheduled_at=1, slot=0, fence=1)]),
    "descend": lambda s: s.descend(1),
    "judge_waits": lambda s: s.judge_waits(1),
    "run_facts": lambda s: s.run_facts("t", _KEY),
    "job_marks": lambda s: s.job_marks("t", [1], 1),
    "append_log": lambda s: s.append_log([_CHUNK]),
    "read_log": lambda s: s.read_log(_KEY, LogPlace(), None, 1),
    "graph": lambda s: s.graph("t", 1),
    "peek_jobs": lambda s: s.peek_jobs("t", [1]),
    "glance": lambda s: s.glance("t", [1], None),
}


def test_every_verb_has_an_example() -> None:
    verbs = {name for name, verb in vars(Store).items() if inspect.iscoroutinefunction(verb)}
    assert set(EXAMPLES) == verbs - {"close", "report_key"}  # the key is read at the start and kept


@pytest.mark.parametrize("fault", ["refused", "cut at the beginning", "cut at the end"])
async def test_every_verb_says_that_the_database_is_unavailable(
    fault: str, far_store: PostgresStore, proxy: TcpProxy, server: PostgresServer, url: str
) -> None:
    await far_store.renew_node(11, "worker", "the one that claims", HOUR_US)
    if fault == "refused":
        await proxy.refuse()
        proxy.cut()
    for name, verb in EXAMPLES.items():
        if name == "tidy":  # works outside transactions
            proxy.cut_before(b"SELECT")
        elif fault != "refused":
            proxy.cut_before(b"BEGIN" if fault == "cut at the beginning" else b"COMMIT")
        try:
            assert await said(verb(far_store)), name
        except BaseException as error:
            error.add_note(f"verb: {name}")
            raise
    await proxy.heal()
    await healed(far_store)
    assert (count(server, url, "jobs"), count(server, url, "nodes")) == (0, 1)
    await idle_again(server, url)


@pytest.mark.parametrize("fault", ["restart", "immediate stop", "kill"])
async def test_a_stop_of_the_server_loses_nothing_that_was_acknowledged(
    fault: str, store: PostgresStore, server: PostgresServer, url: str
) -> None:
    acknowledged: list[Job] = []
    asked: list[int] = []
    failures: list[Unavailable] = []
    stop = asyncio.Event()

    async def creator() -> None:
        while not stop.is_set():
            one = draft(spec(once(now_at() + HOUR_US)))
            asked.append(one.id)
            try:
                [job] = await store.create_jobs([one])
            except Unavailable as error:
                failures.append(error)
                await asyncio.sleep(0.02)
            else:
                assert isinstance(job, Job)
                acknowledged.append(job)

    creators = [asyncio.create_task(creator()) for _ in range(4)]
    await until(lambda: len(acknowledged) > 5)
    if fault == "kill":
        await asyncio.to_thread(server.kill)
        await until(lambda: len(failures) > 0)
        await asyncio.to_thread(server.start)
    else:
        await asyncio.to_thread(server.restart, "fast" if fault == "restart" else "immediate")
    before = len(acknowledged)
    await until(lambda: len(acknowledged) > before + 5)
    stop.set()
    await asyncio.gather(*creators)
    assert failures
    kept = {row[0] for row in server.query("SELECT id FROM jobs", database=url)}
    assert {job.id for job in acknowledged} <= kept <= set(asked)
    planned = {row[0] for row in server.query("SELECT job_id FROM planned", database=url)}
    assert planned == kept  # each whole, or not at all
    await idle_again(server, url)
