"""Guides as sessions: their commands are run one after another against a real server, and print what the guide says.

A block that begins with the name of a file in a comment is that file. In what is printed, … stands for what differs
from day to day. The receivers that guides show have a port of the test's own. A guide takes part by being named below.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import read_until
from tests.docs.texts import Block, blocks
from tools.docs import ROOT

GUIDES: dict[str, tuple[str, ...]] = {
    "backfill": ("--allow-shell",),
    "audit": (),
    "cli": ("--allow-shell",),
    "files": (),
    "graphs": ("--allow-shell",),
    "importing": (),
    "long-runs": (),
    "receivers": (),
    "shell": ("--allow-shell",),
    "simulate": (),
    "webhooks": (),
    "why": ("--allow-shell",),
}  # and how their server is started
RECEIVER_PORTS = ("9071", "9072")  # of everybody's; other tests may be showing the same
DEADLINE_S = 60
SECRET = {
    "HOURHAND_TARGETS_SIGNING_SECRET": "whsec_"
    + base64.b64encode(hashlib.sha256(b"sessions").digest()).decode()
}  # of the server, and of receivers that a guide shows
_FILE = re.compile(r"# (\S+\.\w+)\n")
_TOGETHER = ("console", "yaml", "toml", "python", "text")


@pytest.fixture
def server(tmp_path: Path, guide: str) -> Iterator[str]:
    (tmp_path / "server").mkdir()
    options = ("--port", "0", "--data", "jobs.db", "--no-demo", *GUIDES[guide])
    command = [sys.executable, "-m", "hourhand", "up", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    with subprocess.Popen(
        command,
        cwd=tmp_path / "server",
        env=environment
        | SECRET
        | {"HOURHAND_WORKER_DRAIN": "0s", "HOURHAND_TARGETS_ALLOW_HOSTS": "127.0.0.1"},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            yield read_until(process.stdout.fileno(), rb"http://[\d.:]+").decode()
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


@pytest.mark.parametrize("guide", GUIDES)
def test_what_a_guide_shows_is_what_happens(
    guide: str, server: str, unused_tcp_port_factory: Callable[[], int], tmp_path: Path
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    own = {port: str(unused_tcp_port_factory()) for port in RECEIVER_PORTS}
    for block in guide_blocks(guide):
        text = with_own(block.text, own)
        if block.language != "console":
            if named := file_named_by(text):
                (folder / named).write_text(text)
            continue
        for line, expected in steps(text):
            printed = run(line, folder, server)
            assert re.fullmatch(pattern(expected), printed), f"{line}\nprinted:\n{printed}\nsays:\n{expected}"


def guide_blocks(guide: str) -> list[Block]:
    path = ROOT / "docs" / "guides" / f"{guide}.md"
    found = [block for block in blocks(*_TOGETHER) if block.document == path]
    assert any(block.language == "console" for block in found)
    return found


def with_own(text: str, own: Mapping[str, str]) -> str:
    """A guide's text with what the test has of its own in place of what is everybody's."""
    return re.sub("|".join(map(re.escape, own)), lambda found: own[found[0]], text)


def file_named_by(text: str) -> str | None:
    """The file that a block is; None where it is none."""
    found = _FILE.match(text)
    return found[1] if found else None


def steps(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        yield line, expected


def pattern(expected: str) -> str:
    """What differs stays within its line, but for … at the beginning of one: that may be several lines."""
    first, *rest = expected.split("…")
    found = re.escape(first)
    before = first
    for part in rest:
        begins = not before or before.endswith("\n")
        found += ("(?s:.*?)" if begins else ".*?") + re.escape(part)
        before = part
    return found


def run(line: str, folder: Path, server: str) -> str:
    """All that a command prints."""
    binaries = Path(sys.executable).parent
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    environment |= SECRET | {"HOURHAND_URL": server, "PATH": f"{binaries}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.stdout
