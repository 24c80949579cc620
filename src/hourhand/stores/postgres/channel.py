"""The way from process to process: LISTEN on a connection of its own, NOTIFY through the store's.

Owns that one connection: it must hear an echo first (a pooler may swallow LISTEN), is made again when it
is cut, with growing pauses, and asked now and then whether it still lives. Nothing here raises into its
callers, and nothing depends on a message arriving: whoever waits for hints polls while there are none, and
is told to look once after each reconnection.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from zlib import crc32

import asyncpg

from hourhand.errors import Unavailable
from hourhand.stores.postgres.faults import unavailable
from hourhand.telemetry import logger

HINTS = "hourhand_hints"  # words, parted by spaces; many messages are as good as one with all their words
EVENTS = "hourhand_events"  # messages that stand each for itself
MAX_PAYLOAD_BYTES = 7_999  # PostgreSQL's own bound
_MERGE_S = 0.02  # how long further messages wait for one another, after one went out
_MOST_WAITING = 32  # messages that do not merge; events are worth no more memory
_CHECK_S = 30.0  # how often a silent connection is asked
_ANSWER_S = 10.0  # how long it may take to answer, and to connect
_ECHO_S = 3.0  # how long the first message to oneself may take
_PAUSES_S = (0.1, 10.0)  # before the next try, the first and the longest
_DEAF_PAUSES_S = (1.0, 60.0)  # where LISTEN does not work; it may have been a slow server
_CLOSE_S = 1.0
_APPLICATION_NAME = "hourhand listen"  # tells it from the store's in pg_stat_activity

ExecuteNotify = Callable[[str, str], Awaitable[None]]  # SELECT pg_notify($1, $2), outside any transaction
Heard = Callable[[str], None]
Resync = Callable[[], None]

_log = logger("hourhand.channel")


class _Deaf(Exception):
    """LISTEN was accepted, but nothing arrives."""


class Channel:
    """One process' ear and mouth. What it says itself it does not hear. To be used on the event loop."""

    def __init__(self, *, listen_url: str | None, execute_notify: ExecuteNotify, publisher: str) -> None:
        self._url = listen_url
        self._execute = execute_notify
        self._publisher = publisher
        self._heard: dict[str, list[Heard]] = {HINTS: []}  # only what somebody wants is listened to
        self._resyncs: list[Resync] = []
        self._words: dict[str, None] = {}  # of hints, in order
        self._messages: list[str] = []
        self._sender: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._listening = False
        self._echo = asyncio.Event()
        self._changed = asyncio.Event()  # the connection is gone, or there is more to listen to
        self._missed = False  # a time has passed in which nothing was heard
        self._mute = False
        self._closed = False

    @property
    def listening(self) -> bool:
        """Whether messages arrive at present; while not, whoever waits for one polls."""
        return self._listening

    def listen(self, channel: str, heard: Heard, resync: Resync) -> None:
        """Hear what others say; `resync` is called when something may have been missed."""
        self._heard.setdefault(channel, []).append(heard)
        self._resyncs.append(resync)
        self._changed.set()

    async def start(self) -> None:
        """Connect, and stay connected; comes back after the first try, whatever became of it."""
        if self._url is None or self._listener is not None:
            return
        tried = asyncio.Event()
        self._listener = asyncio.create_task(self._stay_connected(self._url, tried), name="listen")
        await tried.wait()

    def notify(self, channel: str, payload: str) -> None:
        """Tell the others, at once after a quiet moment, else together with what else comes."""
        if self._closed:
            return
        if channel == HINTS:
            self._words.update(dict.fromkeys(payload.split()))
        elif len(self._messages) < _MOST_WAITING:
            self._messages.append(payload)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send(), name="notify")

    async def close(self) -> None:
        """Say what is left to say, for a moment, and hang up."""
        self._closed = True
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=_CLOSE_S)
        for task in (self._sender, self._listener):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _send(self) -> None:
        while self._words or self._messages:
            outgoing = [(EVENTS, message) for message in self._messages]
            if self._words:
                outgoing.insert(0, (HINTS, " ".join(self._words)))
            self._words, self._messages = {}, []
            for channel, payload in outgoing:
                await self._send_one(channel, f"{self._publisher} {payload}")
            if not self._closed:
                await asyncio.sleep(_MERGE_S)
        self._sender = None

    async def _send_one(self, channel: str, text: str) -> None:
        if len(text.encode()) > MAX_PAYLOAD_BYTES:
            _log.error("a message is too long to be sent", channel=channel, characters=len(text))
            return
        try:
            await self._execute(channel, text)
            self._mute = False
        except Exception as error:  # whatever the store's driver raises: the others poll
            if not self._mute:
                _log.warning("others cannot be told; they look by themselves", why=_words_of(error))
            self._mute = True

    async def _stay_connected(self, url: str, tried: asyncio.Event) -> None:
        failures = deaf = 0
        while True:
            pauses_s = _PAUSES_S
            try:
                async with _connected(url) as connection:
                    connection.add_termination_listener(lambda _: self._changed.set())
                    await self._begin(connection)
                    failures = deaf = 0
                    tried.set()
                    await self._keep(connection)
                why = "the connection was cut"
            except _Deaf as error:
                why, pauses_s = str(error), _DEAF_PAUSES_S
                failures, deaf = deaf, deaf + 1  # what went wrong before was something else
            except (
                OSError,
                TimeoutError,
                asyncpg.PostgresError,
                asyncpg.InterfaceError,
                Unavailable,
            ) as error:
                why = _words_of(error)
            except Exception as error:  # a fault of ours must not leave the process deaf for ever
                _log.exception("listening failed")
                why = _words_of(error)
            self._missed = True
            failures += 0 if self._listening else 1
            self._listening = False
            tried.set()
            pause_s = self._pause_s(failures, *pauses_s)
            _log.warning("not listening; polling", why=why, pause_s=round(pause_s, 2), failures=failures)
            await asyncio.sleep(pause_s)

    async def _begin(self, connection: Any) -> None:
        """Listen, and prove it by a message to oneself that goes the way of all."""
        for name in list(self._heard):
            await connection.add_listener(name, self._receive)
        self._echo.clear()
        await self._execute(HINTS, f"{self._publisher} ")
        try:
            async with asyncio.timeout(_ECHO_S):
                await self._echo.wait()
        except TimeoutError:
            await connection.execute("SELECT 1", timeout=_ANSWER_S)  # else it is silent, not deaf
            await asyncio.sleep(0)
            if not self._echo.is_set():
                raise _Deaf(
                    "LISTEN does not work at this address, as behind a pooler in transaction mode;"
                    " name the server itself in store.listen_url"
                ) from None
        self._listening = True
        self._tell_missed()

    async def _keep(self, connection: Any) -> None:
        """Until the connection's end. A silent one is asked, for one that is half open never ends by itself."""
        while True:
            self._changed.clear()
            if connection.is_closed():
                return
            for name in list(self._heard):  # what it listens to already costs nothing
                await connection.add_listener(name, self._receive)
            try:
                async with asyncio.timeout(_CHECK_S):
                    await self._changed.wait()
            except TimeoutError:
                await connection.execute("SELECT 1", timeout=_ANSWER_S)

    def _tell_missed(self) -> None:
        if not self._missed:
            return
        self._missed = False
        _log.info("listening again")
        for resync in self._resyncs:
            _call(resync)

    def _receive(self, _connection: Any, _pid: int, channel: str, text: object) -> None:
        publisher, _, payload = str(text).partition(" ")
        if publisher == self._publisher:
            self._echo.set()
            return  # this process was told directly
        if not payload:
            return  # somebody else's echo
        for heard in self._heard.get(channel, ()):
            _call(heard, payload)

    def _pause_s(self, failures: int, first_s: float, longest_s: float) -> float:
        """Grows with each failure; processes that were cut together come back apart."""
        pause_s = min(first_s * (1 << min(failures, 10)), longest_s)
        return pause_s * (0.5 + crc32(f"{self._publisher} {failures}".encode()) % 1_000 / 2_000)


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Any]:
    """A connection that is gone afterwards."""
    connection = await asyncpg.connect(
        url,
        timeout=_ANSWER_S,
        command_timeout=_ANSWER_S,
        statement_cache_size=0,
        server_settings={"application_name": _APPLICATION_NAME},
    )
    try:
        yield connection
    finally:
        connection.terminate()


def _call(callback: Callable[..., None], *arguments: str) -> None:
    try:
        callback(*arguments)
    except Exception:  # who hears must not make others deaf
        _log.exception("a message could not be handled")


def _words_of(error: BaseException) -> str:
    match error:
        case Unavailable():
            return error.message
        case asyncpg.PostgresError() | asyncpg.InterfaceError() | OSError():  # a timeout is an OSError
            return unavailable(error).message
        case _:
            return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
