"""Canaries and what was told where, somebody who is called, and the real process, for the search for leaks."""

import contextlib
import os
import queue
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.cli.conftest import read_until

HOURHAND = [sys.executable, "-m", "hourhand"]
DEADLINE_S = 120
_SHORTEST = 20
_BEFORE = 160  # characters that are shown before a canary that was found


class Aviary:
    """The canaries by name, and everything that was told, by place. The first word of a place is its kind."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._told: list[tuple[str, str]] = []

    def secret(self, name: str, value: str = "", *, may_be_in: tuple[str, ...] = ()) -> str:
        """Keep a secret, a new one unless it is given; `may_be_in`: kinds of places where it belongs."""
        value = value or secrets.token_hex(20)
        assert len(value) >= _SHORTEST, f"{name} would be found by accident"
        self._names[value] = (name, may_be_in)
        return value

    def hear(self, place: str, text: str | bytes) -> None:
        """Keep what was told."""
        self._told.append((place, text if isinstance(text, str) else text.decode("utf-8", "replace")))

    def sung(self) -> list[str]:
        """Which canary sings where, and what stands before it."""
        return [
            f"{name} in {place}: …{text[max(0, at - _BEFORE) : at]}[it]"
            for place, text in self._told
            for value, (name, kinds) in self._names.items()
            if (at := text.find(value)) >= 0 and place.split()[0] not in kinds
        ]

    def places(self) -> set[str]:
        """Where anything was told."""
        return {place for place, text in self._told if text}


class Receiver:
    """Targets and endpoints of webhooks: answers with the status that is the path, and keeps the headers."""

    def __init__(self) -> None:
        calls: queue.Queue[tuple[str, dict[str, str]]] = queue.Queue()

        class Hook(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                calls.put((self.path, dict(self.headers)))
                self.send_response(int(self.path.strip("/")))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._calls = calls
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def call(self, path: str) -> dict[str, str]:
        """The headers of the next call to a path; those to others are left out."""
        while True:
            called, headers = self._calls.get(timeout=DEADLINE_S)
            if called == path:
                return headers


def command(aviary: Aviary, folder: Path, settings: Mapping[str, str], *arguments: str) -> str:
    """A command of ours to its end. What it prints is heard, but for a token that it makes."""
    done = subprocess.run(
        [*HOURHAND, *arguments],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    if "create" not in arguments:
        aviary.hear(f"output of {' '.join(arguments)}", done.stdout)
    aviary.hear(f"errors of {' '.join(arguments)}", done.stderr)
    return done.stdout


@contextlib.contextmanager
def process(aviary: Aviary, folder: Path, settings: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """`hourhand up` until the block ends: its pid and address. All that it printed is heard then."""
    said, log = folder / "stdout", folder / "stderr"
    with said.open("wb") as stdout, log.open("wb") as stderr:
        reader, writer = os.pipe()
        with subprocess.Popen(
            [*HOURHAND, "up", "--port", "0", "--no-demo"],
            cwd=folder,
            env=settings,
            stdout=writer,
            stderr=stderr,
        ) as running:
            os.close(writer)
            try:
                address = read_until(reader, rb"http://[\d.:]+", log).decode()
                thread = threading.Thread(target=_copy, args=(reader, stdout.fileno()))
                thread.start()
                yield running.pid, address
            finally:
                running.terminate()
                running.wait(DEADLINE_S)
        thread.join()
    os.close(reader)
    aviary.hear("log on stdout", said.read_bytes())
    aviary.hear("log on stderr", log.read_bytes())


def _copy(reader: int, writer: int) -> None:
    while chunk := os.read(reader, 65_536):
        os.write(writer, chunk)
