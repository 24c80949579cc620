"""What the command line can start, as it sees it; `wiring` knows how, and `__main__` joins the two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hourhand.errors import HourhandError, Invalid

if TYPE_CHECKING:
    from hourhand.config import Settings, UpOptions
    from hourhand.services.tokens import TokenWish


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """How far the schema of one database is."""

    database: str  # its URL, without a password
    version: int  # 0: nothing there yet
    newest: int  # the one this program brings
    pending: tuple[str, ...]

    @property
    def state(self) -> str:
        """One word for it."""
        if self.version > self.newest:
            return "newer"
        return "pending" if self.pending else "up to date"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """How a server is that the settings name, or something else: what was seen, or what is wrong and what would help."""

    what: str  # store, queue, leases, functions
    where: str  # its URL, without a password, or the setting; empty where it has no place
    seen: str = ""
    finding: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """A job of a simulation: its document, how long its attempts take, and how many of them fail."""

    document: Mapping[str, Any]
    p50_us: int
    p99_us: int
    fails: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationWish:
    """What is to be simulated."""

    jobs: Sequence[SimulatedJob]
    start_at: int
    end_at: int
    workers: int
    concurrency: int
    outages: Sequence[tuple[int, int]]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedWindow:
    """What was offered once more."""

    by_priority: Mapping[str, int]
    unreadable: int


class RefusedJobs(Invalid):
    """Documents that cannot be simulated: the place of each among the jobs, with what is wrong."""

    def __init__(self, refused: Sequence[tuple[int, HourhandError]]) -> None:
        super().__init__("some jobs are not right; nothing was simulated")
        self.refused = refused


class Launch(Protocol):
    """Starts processes, each until it is told to stop, and migrates; answers are exit codes."""

    def up(self, settings: "Settings", options: "UpOptions") -> int:
        """Everything in this process."""
        ...

    def api(self, settings: "Settings") -> int:
        """The API of a cluster."""
        ...

    def scheduler(self, settings: "Settings") -> int:
        """A scheduler of a cluster."""
        ...

    def worker(self, settings: "Settings") -> int:
        """A worker of a cluster, or several processes of it."""
        ...

    def migrations(self, settings: "Settings") -> Sequence[SchemaState]:
        """How far each database is."""
        ...

    def migrate(self, settings: "Settings", applied: Callable[[str, str], None]) -> None:
        """Bring each database up to date; tells each step as (database, name) once it is durable."""
        ...

    def examine(self, settings: "Settings") -> Sequence[Examined]:
        """Connect to each server that the settings name, and tell how it is."""
        ...

    def replay(self, settings: "Settings", from_at: int, to_at: int, *, dry_run: bool) -> ReplayedWindow:
        """Offer once more what was offered in a window of time; with `dry_run` only count it."""
        ...

    def create_token(self, settings: "Settings", wish: "TokenWish", *, dry_run: bool) -> dict[str, Any]:
        """An API token written to the store that the settings name; the document that the API would answer."""
        ...

    def simulate(self, wish: SimulationWish) -> dict[str, Any]:
        """Days of jobs on a virtual clock, and what came of them; RefusedJobs where documents are not right."""
        ...
