"""A target executes one attempt of a run and says how it ended.

Contract: `execute` returns a `Result` for everything that can go wrong with the call itself and
raises only `asyncio.CancelledError`. When it is cancelled (deadline or a person) it lets go at once:
sockets are closed, a thread that cannot be stopped is left behind and never blocks others. Only what must be
ended outside, a command, may take up to `services.worker.ABANDON_US`; a second cancellation cuts that short.
It holds no state about runs, and never logs payloads or secrets.
"""

from typing import Any, Protocol

import msgspec

from hourhand.core.retry import Failure, Outcome
from hourhand.core.run import ClaimedRun


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended. `detail` is kept in history and must be small and JSON."""

    outcome: Outcome
    detail: dict[str, Any] | None = None  # {"response": {...}} | {"error": "…", …} | {"reason": "…"}
    failure: Failure = Failure()


OK = Result(outcome=Outcome.SUCCEEDED)


class Target(Protocol):
    """Executes attempts of one kind of target."""

    async def execute(self, run: ClaimedRun) -> Result:
        """Carry out one attempt; see the module's contract."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads."""
        ...
