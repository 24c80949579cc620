"""Calls the endpoints of webhooks: one signed POST each, through the guard, within the time that one call has.

Owns sockets. Of an answer nothing but its status and `Retry-After` is looked at: no body is read, so an endless one
costs nothing. Redirects, proxies, cookies and hidden resends are off. When to call is `services.webhook_sender`'s.
"""

import aiohttp

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.model import HttpTarget
from hourhand.core.signature import parse_secret, sign
from hourhand.core.webhooks import TIMEOUT_US, Answered, Delivery, Webhook, format_webhook_id
from hourhand.targets.addresses import Allowed
from hourhand.targets.guard import GuardedConnector, require_hook
from hourhand.targets.http_answer import connect_timeout_us, failed_call, retry_after_us, status_words
from hourhand.targets.http_request import prepare
from hourhand.targets.lookups import Lookups

_LOOKUPS = 8
_KEEP_ALIVE_S = 4.0  # below the 5 s after which many servers hang up
_MAX_HEADER = 8 * 1024
_MAX_ERROR = 500  # characters that are kept


class WebhookCaller:
    """See `ports.webhooks.Caller`. Made outside of a loop, it opens its sockets at the first call."""

    def __init__(self, clock: Clock, allowed: tuple[Allowed, ...]) -> None:
        require_hook()
        self._clock = clock
        self._allowed = allowed
        self._resolver = Lookups("hourhand-webhooks", size=_LOOKUPS)
        self._session: aiohttp.ClientSession | None = None

    async def call(self, webhook: Webhook, delivery: Delivery) -> Answered:
        """One POST and what came of it."""
        began_at = self._clock.now()
        place, status, error, wait_us = "the endpoint", None, None, None
        try:
            prepared = prepare(HttpTarget(url=webhook.url, method="POST"))
            place = prepared.place
            body = delivery.body.encode()
            response = await self._opened().post(
                prepared.url,
                data=body,
                headers={**prepared.headers, **_headers(webhook, delivery.event_id, body, began_at)},
                allow_redirects=False,
            )
            status = response.status
            response.release()  # hangs up, unless the answer has come as a whole already
            if not 200 <= status < 300:
                redirect = "; redirects are not followed" if 300 <= status < 400 else ""
                error = f"it answered {status_words(status)}{redirect}"
                wait_us = retry_after_us(response.headers.get("Retry-After", ""), self._clock.now())
        except Exception as failure:
            error = str((failed_call(failure, place, TIMEOUT_US).detail or {})["error"])
        ended_at = self._clock.now()
        return Answered(
            at=ended_at,
            status=status,
            error=None if error is None else error[:_MAX_ERROR],
            took_ms=max(0, ended_at - began_at) // 1000,
            retry_after_us=wait_us,
        )

    async def close(self) -> None:
        """Closes every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        await self._resolver.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = GuardedConnector(
                self._allowed,
                resolver=self._resolver,
                limit=0,  # who calls counts
                keepalive_timeout=_KEEP_ALIVE_S,
            )
            timeout = aiohttp.ClientTimeout(
                total=TIMEOUT_US / SECOND_US, connect=connect_timeout_us(TIMEOUT_US) / SECOND_US
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                timeout=timeout,
                read_bufsize=_MAX_HEADER,
            )
        return self._session


def _headers(webhook: Webhook, event_id: str, body: bytes, now_at: int) -> dict[str, str]:
    timestamp_s = now_at // SECOND_US
    keys = [parse_secret(secret) for secret in webhook.signing_secrets(now_at)]
    return {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign(keys, event_id, timestamp_s, body),
        "Hourhand-Webhook": format_webhook_id(webhook.id),
    }
