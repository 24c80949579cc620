"""Pings a URL of the operator's by GET, through the guard, and says in the log when that fails.

One request at a time, on a connection of its own; an answer other than 2xx is a failure like any other.
"""

import aiohttp

from hourhand import __version__
from hourhand.targets.addresses import Allowed
from hourhand.targets.guard import GuardedConnector, Refused, require_hook
from hourhand.targets.lookups import Lookups
from hourhand.telemetry import logger

TIMEOUT_S = 10.0

_log = logger("hourhand.ping")


class Pinger:
    """Pings one URL, if there is one."""

    def __init__(self, url: str, allowed: tuple[Allowed, ...]) -> None:
        require_hook()
        self._url = url
        self._allowed = allowed

    async def ping(self) -> None:
        """Ask once; raises nothing."""
        if not self._url:
            return
        resolver = Lookups("hourhand-ping", size=1)
        try:
            connector = GuardedConnector(self._allowed, resolver=resolver, force_close=True)
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            async with (
                aiohttp.ClientSession(connector=connector, trust_env=False, timeout=timeout) as session,
                session.get(self._url, allow_redirects=False, headers=_HEADERS) as answer,
            ):
                if not 200 <= answer.status < 300:
                    _log.warning("the dead man's URL refused a ping", status=answer.status)
        except aiohttp.InvalidURL:
            _log.warning("the dead man's URL is none")  # which may be a secret
        except (aiohttp.ClientError, OSError, TimeoutError, Refused) as error:
            _log.warning("the dead man's URL could not be pinged", why=str(error) or type(error).__name__)
        finally:
            await resolver.close()


_HEADERS = {"User-Agent": f"hourhand/{__version__}"}
