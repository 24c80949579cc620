"""Executes attempts by calling a URL: one exchange, within the target's timeout, through the guard.

Owns sessions and sockets. What is sent is in `http_request`, what an answer means in `http_answer`,
where a connection may go in `guard`. No more of an answer is read than is kept; what is longer, slow or
endless has its connection closed. Redirects, proxies, cookies and hidden resends are off.
"""

from collections.abc import Callable

import aiohttp
import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.model import Delivery, HttpTarget
from hourhand.core.run import ClaimedRun
from hourhand.ports.target import Result
from hourhand.targets.addresses import Allowed
from hourhand.targets.gate import Gate
from hourhand.targets.guard import GuardedConnector, require_hook
from hourhand.targets.http_answer import KEPT_BYTES, Answer, connect_timeout_us, failed_call, judge
from hourhand.targets.http_request import Prepared, Uncallable, body_of, headers_for, prepare
from hourhand.targets.lookups import Lookups

_KEEP_ALIVE_S = 4.0  # below the 5 s after which many servers hang up, so that a kept connection is alive
_LOOKUPS = 16
_PREPARED_MAX = 20_000

TokenFor = Callable[[ClaimedRun], str | None]  # what lets a target report on an attempt


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides about HTTP targets."""

    allowed: tuple[Allowed, ...] = ()
    signing_keys: tuple[bytes, ...] = ()  # the newest first
    report_base: str | None = None  # the API's public address with its prefix; None: targets cannot report
    connections: int = 512
    connections_per_origin: int = 128


class HttpExecutor:
    """The HTTP target. Made outside of a loop, it opens its sockets at the first call."""

    def __init__(self, clock: Clock, settings: HttpSettings, token_for: TokenFor = lambda run: None) -> None:
        require_hook()
        self._token_for = token_for
        self._clock = clock
        self._settings = settings
        self._gate = Gate(total=settings.connections, per_origin=settings.connections_per_origin)
        self._resolver = Lookups("hourhand-lookup", size=_LOOKUPS)
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None
        self._prepared: dict[tuple[object, ...], Prepared | Uncallable] = {}
        self._timeouts: dict[int, aiohttp.ClientTimeout] = {}

    async def execute(self, run: ClaimedRun) -> Result:
        """One request and what came of it; see `ports.target`."""
        target = run.spec.target
        assert isinstance(target, HttpTarget)
        prepared = self._prepare(target)
        if isinstance(prepared, Uncallable):
            return failed_call(prepared, "", target.timeout_us)
        place = prepared.place
        await self._gate.enter(place)
        try:
            return await self._exchange(run, target, prepared)
        except Exception as error:
            return failed_call(error, place, target.timeout_us)
        finally:
            self._gate.leave(place)

    async def close(self) -> None:
        """Closes every connection."""
        sessions = [session for session in (self._kept, self._fresh) if session is not None]
        self._kept = self._fresh = None
        for session in sessions:
            await session.close()
        await self._resolver.close()

    async def _exchange(self, run: ClaimedRun, target: HttpTarget, prepared: Prepared) -> Result:
        settings = self._settings
        body = body_of(run, prepared.method)
        token = None if settings.report_base is None else self._token_for(run)
        headers = headers_for(
            run,
            prepared,
            body,
            now_at=self._clock.now(),
            keys=settings.signing_keys,
            report_base=settings.report_base,
            report_token=token,
        )
        response = await self._session(run.spec.delivery).request(
            prepared.method,
            prepared.url,
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=self._timeout(target.timeout_us),
        )
        try:
            answer = await _read_answer(response)
        finally:
            response.close()  # gives nothing back to the pool unless the answer was read to its end
        return judge(answer, self._clock.now(), may_report=token is not None)

    def _prepare(self, target: HttpTarget) -> Prepared | Uncallable:
        key = (target.method, target.url, *target.headers.items())
        prepared = self._prepared.get(key)
        if prepared is None:
            try:
                prepared = prepare(target)
            except Uncallable as error:
                prepared = error
            if len(self._prepared) >= _PREPARED_MAX:
                self._prepared.clear()
            self._prepared[key] = prepared
        return prepared

    def _timeout(self, timeout_us: int) -> aiohttp.ClientTimeout:
        timeout = self._timeouts.get(timeout_us)
        if timeout is None:
            timeout = aiohttp.ClientTimeout(
                total=timeout_us / SECOND_US, connect=connect_timeout_us(timeout_us) / SECOND_US
            )
            if len(self._timeouts) >= _PREPARED_MAX:
                self._timeouts.clear()
            self._timeouts[timeout_us] = timeout
        return timeout

    def _session(self, delivery: Delivery) -> aiohttp.ClientSession:
        """Kept-alive connections, but a new one each time where a call must not be sent twice.

        A server may hang up just as a kept connection is used again, and then nobody knows what it read.
        """
        if delivery is Delivery.AT_MOST_ONCE:
            if self._fresh is None:
                self._fresh = self._open(keep_alive=False)
            return self._fresh
        if self._kept is None:
            self._kept = self._open(keep_alive=True)
        return self._kept

    def _open(self, *, keep_alive: bool) -> aiohttp.ClientSession:
        connector = GuardedConnector(
            self._settings.allowed,
            resolver=self._resolver,
            limit=0,  # the gate counts
            force_close=not keep_alive,
            **({"keepalive_timeout": _KEEP_ALIVE_S} if keep_alive else {}),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=2 * KEPT_BYTES,
        )
        session._retry_connection = False  # aiohttp sends GET, PUT and DELETE again unseen; we count attempts
        return session


async def _read_answer(response: aiohttp.ClientResponse) -> Answer:
    """Status and the beginning of the body. Once there is a status, a body that breaks off changes nothing."""
    parts: list[bytes] = []
    size, whole = 0, True
    try:
        while size <= KEPT_BYTES:
            part = await response.content.read(KEPT_BYTES + 1 - size)
            if not part:
                break
            parts.append(part)
            size += len(part)
    except (aiohttp.ClientError, OSError):
        whole = False
    headers = response.headers
    return Answer(
        status=response.status,
        content_type=headers.get("Content-Type"),
        encoding=headers.get("Content-Encoding"),
        retry_after=headers.get("Retry-After"),
        body=b"".join(parts),
        whole=whole,
    )
