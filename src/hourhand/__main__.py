"""`hourhand`: joins the command line and the wiring, so that neither knows the other.

The wiring is imported only when something is started, since most commands need none of it.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hourhand.cli.app import run

if TYPE_CHECKING:
    from hourhand.cli.launch import Examined, ReplayedWindow, SchemaState, SimulationWish
    from hourhand.config import Settings, UpOptions
    from hourhand.services.tokens import TokenWish


def main() -> None:
    """Run a command and end with its exit code."""
    sys.exit(run(sys.argv[1:], Wired()))


class Wired:
    """What the command line starts."""

    def up(self, settings: "Settings", options: "UpOptions") -> int:
        from hourhand.wiring import run_up

        return run_up(settings, options)

    def api(self, settings: "Settings") -> int:
        from hourhand.wiring.cluster import run_api

        return run_api(settings)

    def scheduler(self, settings: "Settings") -> int:
        from hourhand.wiring.cluster import run_scheduler

        return run_scheduler(settings)

    def worker(self, settings: "Settings") -> int:
        from hourhand.wiring.cluster import run_worker

        return run_worker(settings)

    def migrations(self, settings: "Settings") -> "Sequence[SchemaState]":
        from hourhand.wiring.migrating import migrations

        return migrations(settings)

    def migrate(self, settings: "Settings", applied: Callable[[str, str], None]) -> None:
        from hourhand.wiring.migrating import migrate

        migrate(settings, applied)

    def examine(self, settings: "Settings") -> "Sequence[Examined]":
        from hourhand.wiring.doctor import examine

        return examine(settings)

    def replay(self, settings: "Settings", from_at: int, to_at: int, *, dry_run: bool) -> "ReplayedWindow":
        from hourhand.wiring.kafka import replay

        return replay(settings, from_at, to_at, dry_run=dry_run)

    def create_token(self, settings: "Settings", wish: "TokenWish", *, dry_run: bool) -> dict[str, Any]:
        from hourhand.wiring.tokens import create_token

        return create_token(settings, wish, dry_run=dry_run)

    def simulate(self, wish: "SimulationWish") -> dict[str, Any]:
        from hourhand.simulation.days import simulate

        return simulate(wish)


if __name__ == "__main__":
    main()
