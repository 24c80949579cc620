"""Servers on 127.0.0.1 that do what real ones should not, and runs to call them with."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.targets.runs import LocalServer

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[[Handler], Awaitable[LocalServer]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers that end with the test."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler) -> LocalServer:
            server = LocalServer(handler)
            await server.start()
            stack.push_async_callback(server.stop)
            return server

        yield start
