"""A courier between hourhand and a receiver who delivers everything twice at the same moment, and loses the first answer."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEADLINE_S = 30


@dataclass
class Courier:
    """Where hourhand delivers to; what was carried, and what was answered to it."""

    receiver: str
    url: str = ""
    attempts: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    calls: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def deliver(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """One call to the receiver."""
        request = urllib.request.Request(self.receiver + path, data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


@contextmanager
def courier(receiver: str) -> Iterator[Courier]:
    """At work until the block ends."""
    found = Courier(receiver)
    twice = ThreadPoolExecutor(8)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = dict(self.headers)
            found.calls.append((self.path, headers, body))
            found.attempts.append(int(headers["Hourhand-Attempt"]))
            both = [twice.submit(found.deliver, self.path, headers, body) for _ in range(2)]
            answers = [one.result(DEADLINE_S) for one in both]
            found.answers += [status for status, _ in answers]
            if len(found.attempts) == 1:
                self.close_connection = True  # the answer is lost on its way
                return
            status, text = answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        twice.shutdown()
