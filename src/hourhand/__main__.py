"""`hourhand`: joins the command line and the wiring, so that neither knows the other."""

import sys
from typing import TYPE_CHECKING

from hourhand.cli.app import run

if TYPE_CHECKING:
    from hourhand.config import Settings, UpOptions


def main() -> None:
    """Run a command and end with its exit code."""
    sys.exit(run(sys.argv[1:], start))


def start(settings: "Settings", options: "UpOptions") -> int:
    """Start everything in this process; imported only now, since most commands need none of it."""
    from hourhand.wiring import run_up

    return run_up(settings, options)


if __name__ == "__main__":
    main()
