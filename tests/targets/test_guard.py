"""The guard at the socket: no name, spelling or change of mind of a resolver reaches loopback."""

import asyncio
import errno
import socket
from collections.abc import Sequence

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from hourhand.targets.addresses import parse_allowed
from hourhand.targets.guard import GuardedConnector, Refused
from hourhand.targets.lookups import Lookups
from tests.targets.conftest import Serve
from tests.targets.runs import WAIT_S, LocalServer, answer, read_request


class ScriptedResolver(AbstractResolver):
    """Answers with the next list of addresses each time it is asked; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked += 1
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_UNSPEC, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None:
        pass


class Network:
    """Notes every address that a connection is attempted to; only loopback is really there."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def open(self, address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        family, kind, protocol, _, target = address
        self.attempts.append(str(target[0]))
        if not str(target[0]).startswith("127."):
            raise OSError(errno.ENETUNREACH, "there is no network in this test")
        return socket.socket(family, kind, protocol)


async def ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(answer())


async def get(
    url: str, network: Network, resolver: AbstractResolver, allow: Sequence[str] = (), times: int = 1
) -> list[object]:
    """The status or the exception of each of so many calls, with nothing cached or pooled between them."""
    connector = GuardedConnector(
        parse_allowed(allow),
        resolver=resolver,
        socket_factory=network.open,
        force_close=True,
    )
    outcomes: list[object] = []
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(times):
            try:
                async with asyncio.timeout(WAIT_S), session.get(url, allow_redirects=False) as response:
                    outcomes.append(response.status)
            except (aiohttp.ClientError, Refused) as error:
                outcomes.append(error)
    return outcomes


@pytest.fixture
async def loopback(serve: Serve) -> LocalServer:
    return await serve(ok)


@pytest.mark.parametrize(
    "answers",
    [
        [["93.184.215.14"], ["127.0.0.1"]],
        [["127.0.0.1"]],
        [["93.184.215.14", "127.0.0.1"]],
        [["127.0.0.1", "93.184.215.14"]],
        [["93.184.215.14"], ["93.184.215.14", "127.0.0.1"], ["127.0.0.1"], ["::1"]],
        [["::ffff:127.0.0.1"]],
        [["64:ff9b::7f00:1"]],
        [["0.0.0.0"]],
    ],
)
async def test_rebinding_never_reaches_loopback(loopback: LocalServer, answers: list[list[str]]) -> None:
    network, resolver = Network(), ScriptedResolver(*answers)
    outcomes = await get(f"http://rebind.example:{loopback.port}/", network, resolver, times=len(answers) + 1)
    assert isinstance(outcomes[-1], Refused)
    assert resolver.asked == len(answers) + 1
    assert set(network.attempts) <= {"93.184.215.14"}
    assert loopback.connections == 0


async def test_a_name_is_resolved_once_per_connection_and_that_address_is_used() -> None:
    network, resolver = Network(), ScriptedResolver(["93.184.215.14"], ["127.0.0.1"])
    (outcome,) = await get("http://rebind.example/", network, resolver)
    assert isinstance(outcome, aiohttp.ClientConnectorError)
    assert resolver.asked == 1
    assert network.attempts == ["93.184.215.14"]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "①②⑦.⓪.⓪.①",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[::127.0.0.1]",
        "0.0.0.0",
        "0",
        "localhost",
        "user@127.0.0.1",
        "example.com@127.0.0.1",
    ],
)
async def test_no_spelling_of_loopback_passes(loopback: LocalServer, host: str) -> None:
    network = Network()
    resolver = Lookups("test-lookup", size=1)
    try:
        (outcome,) = await get(f"http://{host}:{loopback.port}/", network, resolver)
    except ValueError:
        outcome = None  # no URL at all is as good
    assert outcome is None or isinstance(outcome, Refused | aiohttp.ClientError)
    assert network.attempts == []
    assert loopback.connections == 0
    await resolver.close()


@pytest.mark.parametrize("allow", ["svc.internal", "*.internal", "127.0.0.0/8", "svc.internal:{port}"])
async def test_what_the_operator_allows_is_called_with_its_own_name(serve: Serve, allow: str) -> None:
    seen = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await read_request(reader)).headers["host"])
        writer.write(answer())

    server = await serve(note)
    entry = allow.format(port=server.port)
    url = f"http://svc.internal:{server.port}/"
    assert await get(url, Network(), ScriptedResolver(["127.0.0.1"]), [entry]) == [200]
    assert seen == [f"svc.internal:{server.port}"]


async def test_a_failing_lookup_is_an_error_of_the_call() -> None:
    resolver = Lookups("test-lookup", size=1)
    with pytest.raises(OSError, match="no host name"):
        await resolver.resolve("a" * 64 + ".example", 80)  # longer than a label may be: nobody is asked
    assert [found["host"] for found in await resolver.resolve("127.0.0.1", 80)] == ["127.0.0.1"]
    await resolver.close()
