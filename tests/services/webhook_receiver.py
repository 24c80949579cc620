"""An endpoint on 127.0.0.1 that takes webhooks, as it is told to, and remembers what it was told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

import msgspec
from aiohttp import web

from hourhand import verify
from hourhand.clock import Clock


class Told(NamedTuple):
    """One call that was genuine."""

    event_id: str
    document: dict[str, Any]
    headers: dict[str, str]


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def take(request: web.Request) -> web.StreamResponse:
    """As a receiver should."""
    return web.Response(status=204)


class Receiver:
    """Checks every call by the secret, then answers as a test wants."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.secret = ""
        self.answer: Answer = take
        self.told: list[Told] = []
        self.at_once = 0
        self.most_at_once = 0
        self.called = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._called)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def event_ids(self) -> list[str]:
        return [one.event_id for one in self.told]

    def status(self, status: int, **headers: str) -> None:
        """Answer so from now on."""

        async def answer(request: web.Request) -> web.StreamResponse:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, headers=named)

        self.answer = answer

    async def _called(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        event_id = verify(request.headers, body, self.secret, clock=self._clock)
        self.told.append(Told(event_id, msgspec.json.decode(body), dict(request.headers)))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.called.set()
        try:
            return await self.answer(request)
        finally:
            self.at_once -= 1
