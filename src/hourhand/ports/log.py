"""Where targets write down what an attempt says.

Contract: `write` never waits, never raises and may be called on any thread; what does not fit is left out, and the
log says so. `close` makes everything durable that was written, or gives up after a moment: a slow store must
not hold up a run. The log of an attempt that is not closed is written down a little later.
"""

from typing import Protocol

from hourhand.core.log import Stream
from hourhand.core.run import ClaimedRun


class AttemptLog(Protocol):
    """What one attempt says."""

    @property
    def is_full(self) -> bool:
        """Whether only the end of what comes now is kept."""
        ...

    def write(self, stream: Stream, text: str) -> None:
        """Add a text; see the module's contract."""
        ...

    async def close(self, patience_s: float) -> None:
        """Nothing more comes."""
        ...


class RunLog(Protocol):
    """Opens the logs of attempts."""

    def open(self, run: ClaimedRun) -> AttemptLog:
        """The log of this attempt."""
        ...
