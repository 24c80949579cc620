"""Lookups: one of a name for all who wait, failures remembered for a moment, and no domain that takes all threads."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from hourhand.targets import lookups as module
from hourhand.targets.addresses import parse_allowed
from hourhand.targets.guard import GuardedConnector, Refused
from hourhand.targets.http_answer import failed_call
from hourhand.targets.lookups import FAILED_US, FOUND_US, MOST_KNOWN, Addresses, Lookups, domain_of
from tests.targets.runs import WAIT_S


class Names:
    """A system's resolver of our own: names that are known, names that hang until they are let go, and no others."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}
        self.hanging: dict[str, threading.Event] = {}
        self.asked: Counter[str] = Counter()
        self.now_us = 0
        self._begun: dict[str, asyncio.Event] = {}
        self._loop = asyncio.get_running_loop()

    def hang(self, host: str) -> asyncio.Event:
        """Let a name hang from now on; the answer is set once it does."""
        self.hanging[host] = threading.Event()
        self._begun[host] = asyncio.Event()
        return self._begun[host]

    def let_go(self) -> None:
        for event in self.hanging.values():
            event.set()

    def __call__(self, host: str, family: socket.AddressFamily) -> Addresses:
        self.asked[host] += 1
        if host in self.hanging:
            self._loop.call_soon_threadsafe(self._begun[host].set)
            self.hanging[host].wait(WAIT_S)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in self.known[host]]


@pytest.fixture
async def names() -> AsyncIterator[Names]:
    made = Names()
    yield made
    made.let_go()


Open = Callable[..., Lookups]


@pytest.fixture
async def opened(names: Names) -> AsyncIterator[Open]:
    made: list[Lookups] = []

    def open_(size: int = 16, patience_s: float = WAIT_S) -> Lookups:
        one = Lookups("test-lookup", size=size, ask=names, now_us=lambda: names.now_us, patience_s=patience_s)
        made.append(one)
        return one

    yield open_
    names.let_go()
    for one in made:
        await one.close()


async def found(lookups: Lookups, host: str, port: int = 80) -> list[str]:
    return [one["host"] for one in await lookups.resolve(host, port)]


async def test_calls_at_once_share_one_lookup_whatever_their_port(names: Names, opened: Open) -> None:
    lookups = opened()
    names.known["a.example"] = ["93.184.215.14"]
    hangs = names.hang("a.example")
    waiting = [asyncio.create_task(lookups.resolve("a.example", port)) for port in range(1, 101)]
    await hangs.wait()
    names.let_go()
    answers = await asyncio.gather(*waiting)
    assert [answer[0]["port"] for answer in answers] == list(range(1, 101))
    assert {answer[0]["host"] for answer in answers} == {"93.184.215.14"}
    assert names.asked["a.example"] == 1


async def test_addresses_are_used_again_for_some_seconds_and_each_is_first_in_its_turn(
    names: Names, opened: Open
) -> None:
    lookups = opened()
    names.known["a.example"] = ["1.1.1.1", "1.0.0.1"]
    firsts = [(await found(lookups, "a.example"))[0] for _ in range(4)]
    assert sorted(firsts) == ["1.0.0.1"] * 2 + ["1.1.1.1"] * 2
    names.known["a.example"] = ["9.9.9.9"]
    names.now_us += FOUND_US - 1
    assert "9.9.9.9" not in await found(lookups, "a.example")
    names.now_us += 1
    assert await found(lookups, "a.example") == ["9.9.9.9"]
    assert names.asked["a.example"] == 2


async def test_a_failure_is_remembered_for_a_second(names: Names, opened: Open) -> None:
    lookups = opened()
    for expected in (1, 2):
        for _ in range(1_000):
            with pytest.raises(socket.gaierror, match="not known"):
                await lookups.resolve("no-such-host.invalid", 443)
        assert names.asked["no-such-host.invalid"] == expected
        names.now_us += FAILED_US
    names.known["no-such-host.invalid"] = ["1.1.1.1"]
    assert await found(lookups, "no-such-host.invalid") == ["1.1.1.1"]


async def test_names_of_one_domain_that_hang_leave_threads_for_others(names: Names, opened: Open) -> None:
    lookups = opened(size=8)
    names.known["fine.example"] = ["1.1.1.1"]
    black_hole = [f"n{number}.hole.example" for number in range(50)]
    begun = [names.hang(host) for host in black_hole]
    waiting = [asyncio.create_task(lookups.resolve(host)) for host in black_hole]
    await asyncio.gather(begun[0].wait(), begun[1].wait())
    async with asyncio.timeout(WAIT_S):
        assert await found(lookups, "fine.example") == ["1.1.1.1"]
    assert sum(names.asked[host] for host in black_hole) == 2, "one thread in four"
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    names.let_go()
    assert await found(lookups, "fine.example") == ["1.1.1.1"]
    assert sum(names.asked[host] for host in black_hole) == 2, "nobody wants the others any more"


async def test_what_hangs_fails_at_once_until_it_comes_back(names: Names, opened: Open) -> None:
    lookups = opened(size=4, patience_s=0.01)
    names.known["slow.example"] = ["1.1.1.1"]
    hangs = names.hang("slow.example")
    with pytest.raises(socket.gaierror, match=r"no answer within 0\.01 s"):
        await lookups.resolve("slow.example")
    await hangs.wait()
    lookups._patience_s = WAIT_S
    with pytest.raises(socket.gaierror, match=r"a lookup of slow\.example has not come back"):
        await lookups.resolve("slow.example")
    # All of the domain's part is held, so another name in it is not even asked for.
    with pytest.raises(socket.gaierror, match=r"names in slow\.example have not come back"):
        await lookups.resolve("www.slow.example")
    under_way = lookups._under_way["slow.example", socket.AF_UNSPEC].task
    names.let_go()
    await asyncio.wait_for(under_way, WAIT_S)
    assert await found(lookups, "slow.example") == ["1.1.1.1"], "the lookup went on without its caller"
    assert names.asked == Counter({"slow.example": 1})


async def test_a_caller_that_gives_up_takes_nothing_from_the_others(names: Names, opened: Open) -> None:
    lookups = opened()
    names.known["a.example"] = ["1.1.1.1"]
    hangs = names.hang("a.example")
    first, second = [asyncio.create_task(found(lookups, "a.example")) for _ in range(2)]
    await hangs.wait()
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    names.let_go()
    assert await second == ["1.1.1.1"]


async def test_a_system_without_threads_is_a_failure_that_says_so(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    lookups = opened()
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(socket.gaierror) as caught:
        await lookups.resolve("a.example", 443)
    wrapped = aiohttp.ClientConnectorDNSError(None, caught.value)  # type: ignore[arg-type]
    result = failed_call(wrapped, "a.example", 30_000_000)
    assert result.failure is not None
    assert result.failure.retryable
    assert "it could not be asked for: no thread could be started" in str(result.detail)


async def test_what_is_remembered_is_bounded(
    names: Names, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_KNOWN > 1_000
    monkeypatch.setattr(module, "MOST_KNOWN", 10)
    lookups = opened()
    for number in range(30):
        with pytest.raises(OSError, match="not known"):
            await lookups.resolve(f"{number}.example")
    assert len(lookups._known) == 10
    assert not lookups._domains
    assert not lookups._under_way


async def test_a_shared_answer_is_checked_for_every_call(names: Names, opened: Open) -> None:
    names.known["rebind.example"] = ["93.184.215.14", "127.0.0.1"]
    connector = GuardedConnector(parse_allowed(()), resolver=opened())
    async with aiohttp.ClientSession(connector=connector) as session:
        calls = [session.get("http://rebind.example/") for _ in range(10)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in outcomes] == [Refused] * 10
    assert names.asked["rebind.example"] == 1


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("a.b.Example.com.", "example.com"),
        ("a.example.co.uk", "example.co.uk"),
        ("a.example.de", "example.de"),
        ("t.co", "t.co"),
        ("db", "db"),
        ("", ""),
    ],
)
def test_the_domain_of_a_name(host: str, domain: str) -> None:
    assert domain_of(host) == domain
