"""Looks up names for calls, on threads of its own: one lookup of a name at a time, however many calls wait for it.

An address is remembered for some seconds and a failure for one, so that a herd of calls to a name costs one lookup.
The names of one domain get a part of the threads only; where all of that part hang, calls there fail at once
and can be tried again, while other domains are asked as ever. Whether an address may be connected to is the guard's.
"""

import asyncio
import copy
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from hourhand.clock import monotonic_us
from hourhand.core.instant import SECOND_US
from hourhand.targets.threads import Threads, ThreadsExhausted

FOUND_US = 10 * SECOND_US  # how long an address is used again
FAILED_US = SECOND_US
PATIENCE_S = 5.0  # what a call waits for a lookup, which goes on without it
DOMAIN_SHARE = 4  # a domain gets one thread of so many
MOST_KNOWN = 4_096  # names whose addresses or failures are remembered

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV

Addresses = list[tuple[Any, ...]]  # as `socket.getaddrinfo` has them
AskSystem = Callable[[str, socket.AddressFamily], Addresses]
_Key = tuple[str, socket.AddressFamily]


def ask_system(host: str, family: socket.AddressFamily) -> Addresses:
    """Every address of a name by the system's resolver; blocks, OSError where it has none."""
    try:
        return socket.getaddrinfo(host, 0, family=family, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "it is no host name") from None


class Lookups(AbstractResolver):
    """The resolver of a connector that keeps nothing itself. Used on one event loop."""

    def __init__(
        self,
        name: str,
        *,
        size: int,
        ask: AskSystem = ask_system,
        now_us: Callable[[], int] = monotonic_us,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._threads = Threads(name, size=size, left_behind_max=size)
        self._of_domain = max(1, size // DOMAIN_SHARE)
        self._ask = ask
        self._now_us = now_us
        self._patience_s = patience_s
        self._known: dict[_Key, _Outcome] = {}
        self._under_way: dict[_Key, _Lookup] = {}
        self._domains: dict[str, _Domain] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Every address of a name, each first in its turn; OSError where there is none, or no answer in time."""
        key = (host, family)
        outcome = self._known.get(key)
        if outcome is None or outcome.until_us <= self._now_us():
            outcome = await self._looked_up(key)
        if isinstance(outcome.found, Exception):
            raise copy.copy(outcome.found)  # many calls share it, and each adds where it was raised
        outcome.found.rotate(-1)
        return [
            ResolveResult(
                hostname=host,
                host=_address_text(sockaddr),
                port=port,
                family=found_family,
                proto=proto,
                flags=_NUMERIC,
            )
            for found_family, _, proto, _, sockaddr in outcome.found
        ]

    async def close(self) -> None:
        """Ends the idle threads; nobody waits for the others any more."""
        tasks = [lookup.task for domain in self._domains.values() for lookup in domain.lookups]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.close()

    async def _looked_up(self, key: _Key) -> "_Outcome":
        lookup = self._under_way.get(key)
        if lookup is None:
            lookup = self._begin(key)
        elif lookup.is_late:
            raise _try_again(f"a lookup of {key[0]} has not come back for over {self._patience_s:g} s")
        lookup.waiting += 1
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.shield(lookup.task)
        except TimeoutError:
            lookup.is_late = lookup.is_asked
            raise _try_again(f"no answer within {self._patience_s:g} s") from None
        finally:
            lookup.waiting -= 1
            if not lookup.waiting and not lookup.is_asked:  # nobody wants to know any more
                self._leave(lookup)
                lookup.task.cancel()

    def _begin(self, key: _Key) -> "_Lookup":
        name = domain_of(key[0])
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = _Domain(name, self._of_domain)
        elif domain.hangs:
            raise _try_again(f"{self._of_domain} lookups of names in {name} have not come back")
        lookup = _Lookup(key, domain)
        domain.lookups.add(lookup)
        self._under_way[key] = lookup
        lookup.task = asyncio.create_task(self._carry_out(lookup))
        return lookup

    async def _carry_out(self, lookup: "_Lookup") -> "_Outcome":
        host, family = lookup.key
        found: deque[tuple[Any, ...]] | Exception
        try:
            async with lookup.domain.places:
                lookup.is_asked = True
                call = partial(self._ask, host, family)
                found = deque(await self._threads.run(call, label=f"lookup of {host}"))
        except ThreadsExhausted as error:
            found = _try_again(f"it could not be asked for: {error}")
        except Exception as error:
            found = error.with_traceback(None)  # which would keep what it went through
        finally:
            self._leave(lookup)
        kept_us = FAILED_US if isinstance(found, Exception) else FOUND_US
        outcome = _Outcome(found, self._now_us() + kept_us)
        self._remember(lookup.key, outcome)
        return outcome

    def _leave(self, lookup: "_Lookup") -> None:
        domain = lookup.domain
        domain.lookups.discard(lookup)
        if self._under_way.get(lookup.key) is lookup:
            del self._under_way[lookup.key]
        if not domain.lookups and self._domains.get(domain.name) is domain:
            del self._domains[domain.name]

    def _remember(self, key: _Key, outcome: "_Outcome") -> None:
        self._known.pop(key, None)
        self._known[key] = outcome
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def domain_of(host: str) -> str:
    """What somebody registers of a name, as near as one comes without a list: example.com, example.co.uk."""
    labels = host.lower().rstrip(".").split(".")
    is_country_code = len(labels[-1]) == 2 and len(labels[-2:][0]) <= 3
    return ".".join(labels[-3:] if is_country_code else labels[-2:])


class _Outcome:
    __slots__ = ("found", "until_us")

    def __init__(self, found: deque[tuple[Any, ...]] | Exception, until_us: int) -> None:
        self.found = found
        self.until_us = until_us


class _Domain:
    __slots__ = ("lookups", "name", "places", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.places = asyncio.Semaphore(size)
        self.lookups: set[_Lookup] = set()

    @property
    def hangs(self) -> bool:
        """Whether every place is held by a lookup that nobody waited for to the end."""
        return sum(one.is_late for one in self.lookups) >= self.size


class _Lookup:
    __slots__ = ("domain", "is_asked", "is_late", "key", "task", "waiting")

    task: "asyncio.Task[_Outcome]"

    def __init__(self, key: _Key, domain: _Domain) -> None:
        self.key = key
        self.domain = domain
        self.waiting = 0
        self.is_asked = False
        self.is_late = False


def _try_again(why: str) -> socket.gaierror:
    return socket.gaierror(socket.EAI_AGAIN, why)


def _address_text(sockaddr: tuple[Any, ...]) -> str:
    scope = f"%{sockaddr[3]}" if len(sockaddr) > 3 and sockaddr[3] else ""
    return f"{sockaddr[0]}{scope}" if "%" not in sockaddr[0] else sockaddr[0]
