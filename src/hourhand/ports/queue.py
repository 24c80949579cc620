"""The run queue: how a worker comes by runs.

Contract: `take` answers runs that are durably claimed for the worker, at most as many as it has room
for. Messages of a broker are disposable hints about due work; the store decides who gets what.
"""

from typing import Protocol

from hourhand.ports.store import Claim, ClaimRequest


class Queue(Protocol):
    """Hands claimed runs to a worker."""

    async def take(self, request: ClaimRequest) -> Claim:
        """Runs for a worker with a live lease."""
        ...
