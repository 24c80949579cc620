"""Who may come in: nobody from beyond loopback, and no page of another site."""

import socket

import pytest

from tests.chaos.process import Up


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", ":7070", "192.0.2.1:7070"])
def test_listening_beyond_loopback_is_refused(up: Up, listen: str) -> None:
    up.arguments = ["--listen", listen, "--data", str(up.data), "--no-demo"]
    up.spawn()
    assert up.wait() in (1, 2), up.output()
    assert "127.0.0.1" in up.output()
    assert "listen" in up.output()
    assert "Traceback" not in up.output()
    assert not up.data.exists()


def test_a_taken_port_is_refused_in_words(up: Up, tmp_path_factory: pytest.TempPathFactory) -> None:
    up.start()
    other = Up(tmp_path_factory.mktemp("other"))
    other.arguments[1] = str(up.port)
    other.spawn()
    assert other.wait() == 1
    assert f"cannot listen on 127.0.0.1:{up.port}" in other.output()
    assert "--port" in other.output()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "[::1]:{port}"}, 200),
        ({"Host": "rebound.example.com:{port}"}, 403),
        ({"Host": "127.0.0.1.example.com"}, 403),
        ({"Host": "localhost:1"}, 403),
        ({"Origin": "http://localhost:{port}"}, 200),
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_host_and_origin_are_checked(shared_up: Up, headers: dict[str, str], status: int) -> None:
    filled = {name: value.format(port=shared_up.port) for name, value in headers.items()}
    for method, path, body in (
        ("GET", "/jobs", None),
        ("POST", "/jobs?dry_run=true", {"every": "1h", "target": "https://example.com/"}),
    ):
        answer = shared_up.api.call(method, path, body, filled)
        assert answer.status == status, answer.body
        if status == 403:
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"every": "1s", "target": "https://example.com/", "payload": "x" * 300_000}, 413),
        ({"every": "1s", "target": 7}, 422),
        (["not", "an", "object"], 422),
        ({"every": "1s", "target": "https://example.com/", "surprise": 1}, 422),
    ],
)
def test_payloads_of_the_wrong_shape_or_size_are_told(shared_up: Up, document: object, status: int) -> None:
    answer = shared_up.api.call("POST", "/jobs", document)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert shared_up.api.expect(200, "GET", "/jobs")["data"] == []


def test_a_body_that_is_far_too_large_is_refused_before_it_is_sent(shared_up: Up) -> None:
    head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost:{shared_up.port}\r\nContent-Length: 10000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", shared_up.port), timeout=10) as connection:
        connection.sendall(head.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
