"""Speaks to etcd through the JSON gateway that every etcd has beside gRPC, so that no further package is needed.

Knows endpoints, logging in, patience and what failures mean; what is asked is the caller's matter. Bytes go as
base64 and 64-bit numbers as text, as the gateway wants them.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import unquote

import aiohttp
import msgspec

from hourhand.core.url import masked_store_url
from hourhand.leases.board import Away

_UNAUTHENTICATED = (401, 16)  # as a status of HTTP, and as gRPC's code
_LINE_BYTES = 4 << 20  # one message of a watch, at most
_DEFAULT_PORT = 2379


class NotFound(Away):
    """What was named is not there; for a lease: not any more."""


class EtcdGateway:
    """A connection to a cluster. URLs: etcd://user:password@host:2379,host2:2379, or etcds:// for TLS."""

    def __init__(self, url: str, patience_s: float) -> None:
        self.where = masked_store_url(url)
        scheme, _, rest = url.partition("://")
        account, _, hosts = rest.rstrip("/").rpartition("@")
        self._login = tuple(map(unquote, account.split(":", 1))) if ":" in account else None
        self._tls = scheme == "etcds"
        self._bases = [_base(host, self._tls) for host in hosts.split(",")]
        self._patience_s = patience_s
        self._token: str | None = None
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, path: str, **body: Any) -> dict[str, Any]:
        """One answer, from whichever endpoint gives it; Away where none does in time."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._ask_any(path, body)
        except TimeoutError:
            raise Away(f"no answer within {self._patience_s:g} s") from None

    async def follow(self, path: str, **body: Any) -> AsyncIterator[dict[str, Any]]:
        """Answers as they come, for as long as they do; Away when the stream breaks."""
        try:
            async with self._post(self._bases[0], path, body, total_s=None) as answer:
                if answer.status != 200:
                    raise Away(f"{path}: status {answer.status}")
                async for line in answer.content:
                    yield msgspec.json.decode(line).get("result", {})
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Away(f"{type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask_any(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        said = ""
        for _ in range(len(self._bases)):
            try:
                return await self._ask_first(path, body)
            except (aiohttp.ClientError, OSError) as error:
                said = f"{type(error).__name__}: {error}"
                self._bases.append(self._bases.pop(0))  # the next one is asked first from now on
        raise Away(said)

    async def _ask_first(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._login is not None and self._token is None:
            await self._log_in()
        status, answer = await self._exchange(path, body)
        if self._login is not None and (status in _UNAUTHENTICATED or answer.get("code") in _UNAUTHENTICATED):
            await self._log_in()  # a token lives for minutes
            status, answer = await self._exchange(path, body)
        if status == 404:
            raise NotFound(str(answer.get("error")))
        if status != 200:
            raise Away(f"{path}: {answer.get('error') or f'status {status}'}")
        return answer

    async def _log_in(self) -> None:
        assert self._login is not None
        self._token = None
        name, password = self._login
        status, answer = await self._exchange("auth/authenticate", {"name": name, "password": password})
        if status != 200:
            raise Away(f"cannot log in as {name}: {answer.get('error') or f'status {status}'}")
        self._token = str(answer["token"])

    async def _exchange(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        share_s = self._patience_s / len(self._bases)
        async with self._post(self._bases[0], path, body, total_s=share_s) as answer:
            content = await answer.read()
        try:
            return answer.status, msgspec.json.decode(content, type=dict[str, Any])
        except msgspec.DecodeError:
            return max(answer.status, 400), {"error": f"status {answer.status} and no JSON; is this etcd?"}

    def _post(
        self, base: str, path: str, body: dict[str, Any], *, total_s: float | None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            # Certificates are checked against what the machine trusts.
            connector = aiohttp.TCPConnector(limit=8, ssl=ssl.create_default_context() if self._tls else True)
            self._session = aiohttp.ClientSession(connector=connector, read_bufsize=_LINE_BYTES)
        return self._session.post(
            f"{base}/v3/{path}",
            data=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": self._token} if self._token else {}),
            timeout=aiohttp.ClientTimeout(total=total_s, sock_connect=self._patience_s),
            allow_redirects=False,
        )


def encoded(text: str) -> str:
    """A key or value as the gateway wants it."""
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    """A key or value as it was put."""
    return base64.b64decode(text).decode()


def below(prefix: str) -> dict[str, str]:
    """The range of all keys that begin so."""
    return {"key": encoded(prefix), "range_end": encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


def _base(host: str, tls: bool) -> str:
    port = "" if host.rpartition("]")[2].count(":") else f":{_DEFAULT_PORT}"
    return f"{'https' if tls else 'http'}://{host}{port}"
