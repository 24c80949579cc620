"""Offers through Redis Streams: a stream for each pool, class and part of the jobs, a group of workers on each.

Streams of one part share a hash tag, so that a Redis Cluster keeps them together. An entry holds several offers, a
line each, since a server counts entries. What is acknowledged is deleted; what is not is trimmed one day, or taken
over from workers that are gone. A server that forgot everything gets its groups anew from whoever reads.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from hourhand.core.model import Priority
from hourhand.core.offer import NotAnOffer, Offer, decode, encode
from hourhand.errors import CannotStart, Unavailable
from hourhand.ports.queue import Message
from hourhand.telemetry import logger

PARTS = 4
MOST_OFFERS = 200_000  # in a stream; what a server has no room for comes to workers from the store
PER_ENTRY = 16
ABANDONED_MS = 5_000  # what a worker has had for so long without a word, another takes over
_LOOK_FOR_ABANDONED_S = 2.0
_FORGET_CONSUMERS_MS = 3_600_000
_BLOCK_MS = 1_000
_PATIENCE_S = 2.0
_GROUP = "workers"
_RETURNED = "returned"  # whom those that left gave back what they had not acknowledged
_FIELD = b"offers"
_CLASSES: tuple[int, ...] = tuple(Priority)

T = TypeVar("T")

_log = logger("hourhand.queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """Where the streams are: `redis://host:6379/0?name=hh&parts=4`."""

    url: str
    name: str = "hh"
    parts: int = PARTS

    def stream(self, part: int, pool: str, run_class: int) -> str:
        """The key of a stream; what is between braces decides about its place in a cluster."""
        return f"{{{self.name}:{part}}}:{quote(pool, safe='')}:{Priority(run_class).name.lower()}"


def parse_address(url: str) -> RedisAddress:
    """A URL with our own parameters taken out; CannotStart says what is wrong with it."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    name = query.pop("name", "hh")
    if not name or set(name) & set("{} \r\n") or len(name) > 100:
        raise CannotStart(
            f"queue.url: name={name[:100]} cannot be used; up to 100 characters without braces or spaces"
        )
    count = query.pop("parts", str(PARTS))
    if not count.isdecimal() or not 1 <= int(count) <= 64:
        raise CannotStart(f"queue.url: parts={count[:20]} is not a number from 1 to 64")
    plain = urlunsplit(parts._replace(query=urlencode(query)))
    return RedisAddress(url=plain, name=name, parts=int(count))


class RedisOffers:
    """Writes offers to the streams, in one round trip per batch."""

    wants_jobs = False

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._client = connect(address)

    async def offer(self, offers: Sequence[Offer]) -> None:
        """Each job's in order, since they are in one stream."""
        lines: dict[str, list[bytes]] = {}
        for offer in offers:
            part = offer.job_id % self._address.parts
            lines.setdefault(self._address.stream(part, offer.pool, offer.run_class), []).append(
                encode(offer)
            )
        pipeline = self._client.pipeline(transaction=False)
        for stream, texts in lines.items():
            for start in range(0, len(texts), PER_ENTRY):
                entry = {_FIELD: b"\n".join(texts[start : start + PER_ENTRY])}
                pipeline.xadd(stream, entry, maxlen=MOST_OFFERS // PER_ENTRY, approximate=True)
        for answer in await _asked(pipeline.execute(raise_on_error=False)):
            if isinstance(answer, Exception):
                raise _away(answer)

    async def close(self) -> None:
        """Let go."""
        await _quietly(self._client.aclose())


class _Place(NamedTuple):
    """The entry that a message came in."""

    stream: str
    entry: bytes


class RedisFeed:
    """One worker's reading of its pools' streams."""

    def __init__(self, address: RedisAddress, pools: Sequence[str], consumer: str) -> None:
        self._address = address
        self._pools = tuple(pools)
        self._consumer = consumer
        self._reader = connect(address)
        self._acker = connect(address)
        self._has_groups = False
        self._read: dict[int, deque[Message]] = {run_class: deque() for run_class in _CLASSES}
        self._owed: Counter[_Place] = Counter()  # messages of an entry that were not acknowledged
        self._spoilt: dict[str, list[bytes]] = {}  # entries without anything that can be read
        self._turn = 0  # which part of the streams is read first
        self._look_at = 0.0  # when to look for what others left
        self._closed = False

    async def read(self, room: Mapping[int, int]) -> Sequence[Message]:
        """What is there, the classes in their order; where nothing is, whatever comes first."""
        if not self._has_groups:
            await self._make_groups()
        try:
            await self._take_over()
            if not self._waiting(room):
                await self._fetch(room)
            if not self._waiting(room) and all(room.get(run_class, 0) for run_class in _CLASSES):
                await self._wait()
            if self._spoilt:
                await self._delete(self._spoilt)
                self._spoilt = {}
        except _Forgotten:
            self._has_groups = False
        found: list[Message] = []
        for run_class in _CLASSES:
            read = self._read[run_class]
            found += [read.popleft() for _ in range(min(len(read), room.get(run_class, 0)))]
        return found

    async def ack(self, messages: Sequence[Message]) -> None:
        """Delete the entries of which nothing is left to acknowledge."""
        done: dict[str, list[bytes]] = {}
        for message in messages:
            place: _Place = message.place
            self._owed[place] -= 1
            if self._owed[place] <= 0:
                del self._owed[place]
                done.setdefault(place.stream, []).append(place.entry)
        if done:
            await self._delete(done)

    async def close(self) -> None:
        """Give back what was read and not acknowledged, so that others need not wait for it to grow old."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(Unavailable, asyncio.CancelledError):
                await self._give_back()
        await _quietly(self._reader.aclose())
        await _quietly(self._acker.aclose())

    # --- reading

    def _waiting(self, room: Mapping[int, int]) -> bool:
        """Whether something that was read before can be answered."""
        return any(self._read[run_class] and room.get(run_class, 0) > 0 for run_class in _CLASSES)

    async def _fetch(self, room: Mapping[int, int]) -> None:
        """Read without waiting: the parts in turn, so many that there is room for what may come."""
        wanted = max(room.values(), default=0)
        parts = min(self._address.parts, max(1, wanted // PER_ENTRY))
        classes = [run_class for run_class in _CLASSES if room.get(run_class, 0) > 0]
        if not classes:
            return
        each = max(1, wanted // (PER_ENTRY * parts))
        pipeline = self._reader.pipeline(transaction=False)
        for step in range(parts):
            part = (self._turn + step) % self._address.parts
            pipeline.xreadgroup(_GROUP, self._consumer, _from_here(self._streams(part, classes)), count=each)
        self._turn = (self._turn + parts) % self._address.parts
        for answer in await _asked(pipeline.execute(raise_on_error=False)):
            self._keep(_checked(answer))

    async def _wait(self) -> None:
        """Block until something comes."""
        streams = [stream for part in range(self._address.parts) for stream in self._streams(part, _CLASSES)]
        try:
            async with asyncio.timeout(_BLOCK_MS / 1_000 + _PATIENCE_S):
                answer = await self._reader.xreadgroup(
                    _GROUP, self._consumer, _from_here(streams), count=1, block=_BLOCK_MS
                )
        except ResponseError as error:
            _checked(error)
            return
        except (RedisError, OSError, TimeoutError) as error:
            raise _away(error) from error
        self._keep(answer)

    def _keep(self, answer: Iterable[tuple[bytes, Iterable[tuple[bytes, Mapping[bytes, bytes]]]]]) -> None:
        for stream, entries in answer or ():
            for entry, fields in entries:
                self._keep_entry(_Place(stream.decode(), entry), fields)

    def _keep_entry(self, place: _Place, fields: Mapping[bytes, bytes] | None) -> None:
        """Put an entry's offers where they can be answered."""
        for line in ((fields or {}).get(_FIELD) or b"").splitlines():
            try:
                offer = decode(line)
            except NotAnOffer as error:
                _log.warning("a message cannot be read", stream=place.stream, why=str(error))
                continue
            self._owed[place] += 1
            self._read[offer.run_class].append(Message(offer, place))
        if place not in self._owed:
            self._spoilt.setdefault(place.stream, []).append(place.entry)

    def _streams(self, part: int, classes: Iterable[int]) -> list[str]:
        return [self._address.stream(part, pool, run_class) for run_class in classes for pool in self._pools]

    # --- groups and those that are gone

    async def _delete(self, done: Mapping[str, Sequence[bytes]]) -> None:
        pipeline = self._acker.pipeline(transaction=False)
        for stream, entries in done.items():
            pipeline.xack(stream, _GROUP, *entries)
            pipeline.xdel(stream, *entries)
        await _asked(pipeline.execute(raise_on_error=False))

    async def _make_groups(self) -> None:
        """Make the streams and their groups where they are not there; they begin with what already waits."""
        pipeline = self._reader.pipeline(transaction=False)
        streams = [stream for part in range(self._address.parts) for stream in self._streams(part, _CLASSES)]
        for stream in streams:
            pipeline.xgroup_create(stream, _GROUP, id="0", mkstream=True)
        for answer in await _asked(pipeline.execute(raise_on_error=False)):
            if isinstance(answer, Exception) and "BUSYGROUP" not in str(answer):
                raise _away(answer)
        self._has_groups = True
        self._look_at = 0.0
        await self._forget_consumers(streams)

    async def _forget_consumers(self, streams: Sequence[str]) -> None:
        """Workers have a new name at each start: those that are long gone and hold nothing are taken off the list."""
        pipeline = self._reader.pipeline(transaction=False)
        for stream in streams:
            pipeline.xinfo_consumers(stream, _GROUP)
        gone = self._reader.pipeline(transaction=False)
        for stream, consumers in zip(
            streams, await _asked(pipeline.execute(raise_on_error=False)), strict=True
        ):
            for consumer in consumers if isinstance(consumers, list) else ():
                if not consumer["pending"] and consumer["idle"] > _FORGET_CONSUMERS_MS:
                    gone.xgroup_delconsumer(stream, _GROUP, consumer["name"])
        if len(gone):
            await _asked(gone.execute(raise_on_error=False))

    async def _take_over(self) -> None:
        """Now and then, take what others read long ago and did not acknowledge."""
        now = asyncio.get_running_loop().time()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_FOR_ABANDONED_S
        streams = [stream for part in range(self._address.parts) for stream in self._streams(part, _CLASSES)]
        pipeline = self._reader.pipeline(transaction=False)
        for stream in streams:
            pipeline.xautoclaim(stream, _GROUP, self._consumer, ABANDONED_MS, count=PER_ENTRY)
        for stream, answer in zip(streams, await _asked(pipeline.execute(raise_on_error=False)), strict=True):
            for entry, fields in _checked(answer)[1]:
                place = _Place(stream, entry)
                if place not in self._owed:  # its own, which it has just not got to
                    self._keep_entry(place, fields)

    async def _give_back(self) -> None:
        """Let another's next look take over at once what this one has."""
        held: dict[str, list[bytes]] = {}
        for place in self._owed:
            held.setdefault(place.stream, []).append(place.entry)
        pipeline = self._acker.pipeline(transaction=False)
        for stream, entries in held.items():
            pipeline.xclaim(stream, _GROUP, _RETURNED, 0, entries, idle=_FORGET_CONSUMERS_MS, justid=True)
        for part in range(self._address.parts):
            for stream in self._streams(part, _CLASSES):
                pipeline.xgroup_delconsumer(stream, _GROUP, self._consumer)
        if self._has_groups:
            await _asked(pipeline.execute(raise_on_error=False))


def connect(address: RedisAddress) -> Any:
    """A client that tries once. Time limits are ours: the library's own may swallow that a task is cancelled."""
    try:
        return Redis.from_url(
            address.url,
            socket_timeout=None,
            socket_connect_timeout=_PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise CannotStart(f"queue.url: {error}") from error


async def check(address: RedisAddress) -> str:
    """Ask the server who it is; Unavailable where it does not answer."""
    client = connect(address)
    try:
        about = await _asked(client.info("server"))
        return f"Redis {about.get('redis_version', 'of unknown version')}"
    finally:
        await _quietly(client.aclose())


class _Forgotten(Exception):
    """The server has no such group: it was emptied, or another took its place."""


def _from_here(streams: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(streams, ">")


def _checked(answer: Any) -> Any:
    """An answer of a pipeline, where it is none of the errors that say something."""
    if not isinstance(answer, Exception):
        return answer
    text = str(answer)
    if "NOGROUP" in text or "UNBLOCKED" in text or "no longer exists" in text:
        raise _Forgotten from answer
    raise _away(answer)


async def _asked(answer: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await answer
    except (RedisError, OSError, TimeoutError) as error:
        raise _away(error) from error


def _away(error: Exception) -> Unavailable:
    said = " ".join(str(error).split())[:200]
    return Unavailable(f"Redis: {said or type(error).__name__}")


async def _quietly(closing: Awaitable[object]) -> None:
    with contextlib.suppress(RedisError, OSError, TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            await closing
