"""The guide for two teams as a walk: one shell from its first line to its last, with real processes on a real PostgreSQL.

Unlike in the other sessions a line finds what those before it left: variables, files, and processes that run on. What
the guide calls by an address of everybody's, the database and two ports, has one of the test's own here.
"""

import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.test_sessions import file_named_by, guide_blocks, pattern, steps, with_own
from tests.servers.postgres import PostgresServer

GUIDE = "teams"
DATABASE = "postgres://hourhand:secret@db.example.com/hourhand"
API_PORT, RECEIVER_PORT = "7070", "9072"
END = "--- the end of step"
DEADLINE_S = 120  # of one step; some begin with three processes that start at once

Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Gives one shell a line and answers what is printed until it has been carried out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    with subprocess.Popen(
        ["/bin/sh"],
        cwd=tmp_path,
        env=environment | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        script, printed, count = shell.stdin, shell.stdout.fileno(), 0

        def carry_out(line: str) -> str:
            nonlocal count
            count += 1
            end = f"{END} {count}\n"
            script.write(f"{{ {line}\n}} < /dev/null\nprintf '%s\\n' '{end.strip()}'\n".encode())
            script.flush()
            return _read_to(printed, end.encode(), line)

        try:
            yield carry_out
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def test_a_newcomer_gets_to_a_cluster_for_two_teams(
    run: Run,
    own_postgres: Callable[..., PostgresServer],
    unused_tcp_port_factory: Callable[[], int],
    tmp_path: Path,
) -> None:
    server = own_postgres(durable=True)  # whoever uses another is warned, and no guide shows that
    own = {DATABASE: server.create_database()}
    own |= {port: str(unused_tcp_port_factory()) for port in (API_PORT, RECEIVER_PORT)}
    for block in guide_blocks(GUIDE):
        text = with_own(block.text, own)
        if block.language != "console":
            if named := file_named_by(text):
                (tmp_path / named).write_text(text)
            continue
        for line, expected in steps(text):
            printed = run(line)
            assert re.fullmatch(pattern(expected), printed), f"{line}\nprinted:\n{printed}\nsays:\n{expected}"


def _read_to(descriptor: int, end: bytes, line: str) -> str:
    """What is printed before this."""
    text = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not text.endswith(end):
            assert selector.select(DEADLINE_S), f"{line}\nprinted until now:\n{text.decode()}"
            chunk = os.read(descriptor, 65_536)
            assert chunk, f"{line}\nended the shell, and printed:\n{text.decode()}"
            text += chunk
    return text.removesuffix(end).decode()
