"""The auditor as a process builds it: what it pings, through which guard, and when it stays silent."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hourhand.clock import ManualClock
from hourhand.config import Settings
from hourhand.core.instant import SECOND_US
from hourhand.ids import IdSource
from hourhand.services.auditor import FIRST_US, PERIOD_US
from hourhand.services.log_writer import LogRouter
from hourhand.services.progress import ProgressBoard
from hourhand.services.room import Room
from hourhand.stores.sqlite import SqliteStore
from hourhand.telemetry import Telemetry
from hourhand.wiring.nodes import Nodes
from tests.contract.builders import draft, every, spec


class Watch:
    """A dead man's switch on this machine."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.paths.append(head.split(b" ")[1].decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@pytest.fixture
async def watch() -> AsyncIterator[Watch]:
    made = Watch()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


def nodes(watch: Watch, *allow_hosts: str) -> Nodes:
    settings = Settings()
    settings = replace(
        settings,
        alerts=replace(settings.alerts, deadman_url=f"http://127.0.0.1:{watch.port}/ping/{{shard}}"),
        targets=replace(settings.targets, allow_hosts=allow_hosts),
    )
    return Nodes(
        settings=settings,
        ids=IdSource(ManualClock(), seed=1),
        telemetry=Telemetry(),
        targets={},
        room=Room(1),
        logs=LogRouter(),
        board=ProgressBoard(),
    )


async def test_a_clean_audit_is_told_to_the_dead_mans_url_and_no_other(watch: Watch) -> None:
    clock = ManualClock()
    store = SqliteStore.in_memory(clock=clock)
    auditor = nodes(watch, "127.0.0.1")._auditor(store, clock, shard=3)
    await auditor.step(clock.now())
    assert watch.paths == []
    await auditor.step(clock.advance(FIRST_US))
    assert watch.paths == ["/ping/3"]
    await store.create_jobs([draft(spec(every(60, phase_at=clock.now())))])
    await auditor.step(clock.advance(PERIOD_US + 600 * SECOND_US))  # nobody plans
    assert watch.paths == ["/ping/3"]
    await store.close()


async def test_an_address_that_is_not_allowed_is_not_called(watch: Watch) -> None:
    clock = ManualClock()
    store = SqliteStore.in_memory(clock=clock)
    auditor = nodes(watch)._auditor(store, clock, shard=0)
    await auditor.step(clock.now())
    await auditor.step(clock.advance(FIRST_US))
    assert watch.paths == []
    await store.close()
