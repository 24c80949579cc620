"""What the command line can start, as it sees it; `wiring` knows how, and `__main__` joins the two."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hourhand.config import Settings, UpOptions


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
