"""The real command: what it refuses to start with, and whom it lets in once it runs."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hourhand.clock import wall_us
from tests.cli.conftest import DEADLINE_S, read_until
from tests.identity.issuer import ALL_KEYS, AUDIENCE, ISSUER, SECRET, by_hand, claims, document, jwk, signed

HOURHAND = [sys.executable, "-m", "hourhand"]
UP = ("up", "--data", "jobs.db", "--no-demo")
JWT = {
    "HOURHAND_AUTH_MODE": "jwt",
    "HOURHAND_AUTH_SECRET": SECRET,
    "HOURHAND_AUTH_ISSUER": ISSUER,
    "HOURHAND_AUTH_AUDIENCE": AUDIENCE,
}
JOB = {"name": "daily", "cron": "0 9 * * *", "target": {"type": "http", "url": "https://example.com/"}}


def now_s() -> int:
    return wall_us() // 1_000_000


def said(**changed: Any) -> dict[str, Any]:
    return claims(**{"exp": now_s() + 600, "iat": now_s(), **changed})


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def environment(**more: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    return bare | {"HOURHAND_WORKER_DRAIN": "0s"} | more


@contextmanager
def running(folder: Path, *options: str, command: Sequence[str] = UP, **settings: str) -> Iterator[str]:
    """`hourhand up`, or another command, in a process of its own; its port on every address that it listens on."""
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen(
            [*HOURHAND, *command, *options],
            cwd=folder,
            env=environment(**settings),
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            address = read_until(process.stdout.fileno(), rb"http://[\d.:]+", folder / "stderr").decode()
            yield address.rpartition(":")[2]
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


@contextmanager
def publishing() -> Iterator[str]:
    """Keys at a URL."""

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ALL_KEYS)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Keys) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/keys"
        server.shutdown()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A process that listens everywhere and knows people by a secret and by published keys."""
    folder = tmp_path_factory.mktemp("up")
    with publishing() as url, running(folder, "--listen", "0.0.0.0:0", HOURHAND_AUTH_JWKS=url, **JWT) as port:
        yield f"http://127.0.0.1:{port}"
    assert "Traceback" not in (folder / "stderr").read_text()


@pytest.fixture
def client(address: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=address, trust_env=False, timeout=DEADLINE_S) as opened:
        yield opened


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256", "EdDSA"])
def test_a_real_token_gets_what_its_role_and_tenant_allow(client: httpx2.Client, algorithm: str) -> None:
    tenant = algorithm.lower()
    viewer = bearer(signed(algorithm, said(role="viewer", tenant=tenant)))
    editor = bearer(signed(algorithm, said(role="editor", tenant=tenant)))
    admin = bearer(signed(algorithm, said(role="admin", tenant="*")))
    other = bearer(signed(algorithm, said(role="admin", tenant="globex")))
    assert client.get("/v1/jobs", headers=viewer).json()["data"] == []
    assert client.post("/v1/jobs", json=JOB, headers=viewer).status_code == 403
    made = client.post("/v1/jobs", json=JOB, headers=editor)
    assert made.status_code == 201, made.text
    place = f"/v1/jobs/{made.json()['job_id']}"
    assert client.get(place, headers=viewer).status_code == 200
    assert client.get(place, headers=other).status_code == 404
    assert client.get("/metrics", headers=other).status_code == 403
    assert client.get("/metrics", headers=admin).status_code == 200
    of_tenant = client.get("/v1/jobs", headers={**admin, "Hourhand-Tenant": tenant})
    assert [one["name"] for one in of_tenant.json()["data"]] == ["daily"]


def test_the_anonymous_and_the_forged_are_not_let_in(client: httpx2.Client) -> None:
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    late, foreign = said(exp=now_s() - 60), said(iss="https://evil.example")
    for headers in (
        {},
        bearer("x"),
        bearer("a.b.c"),
        bearer(signed("HS256", late)),
        bearer(signed("RS256", foreign)),
        bearer(by_hand({"alg": "HS256"}, said(), b"not the secret at all, but as long")),
        bearer(by_hand({"alg": "none"}, said(role="admin", tenant="*"))),
    ):
        for path in ("/v1/jobs", "/metrics", "/openapi.json", "/v1/events"):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path


def test_the_command_line_and_the_client_bring_their_token(address: str, tmp_path: Path) -> None:
    token = signed("ES256", said(role="viewer"))
    told = subprocess.run(
        [*HOURHAND, "jobs", "list", "--json"],
        env=environment(HOURHAND_URL=address, HOURHAND_TOKEN=token),
        cwd=tmp_path,
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert json.loads(told.stdout)["data"] == []
    refused = subprocess.run(
        [*HOURHAND, "jobs", "list"],
        env=environment(HOURHAND_URL=address),
        cwd=tmp_path,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert refused.returncode == 4
    assert b"needs a token" in refused.stderr


def test_beyond_loopback_any_host_may_be_named_but_pages_of_others_may_not_ask(client: httpx2.Client) -> None:
    token = bearer(signed("HS256", said()))
    for host in ("hourhand.internal:7070", "10.1.2.3:7070"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200
        assert client.get("/v1/jobs", headers={"Host": host}).status_code == 401
        for origin, status in ((f"http://{host}", 200), ("http://evil.example", 403), ("null", 403)):
            assert (
                client.get("/v1/jobs", headers={**token, "Host": host, "Origin": origin}).status_code
                == status
            )


def test_keys_that_cannot_be_had_are_503_and_no_reason_not_to_start(tmp_path: Path) -> None:
    settings = {**JWT, "HOURHAND_AUTH_JWKS": "http://127.0.0.1:1/keys"}
    with running(tmp_path, "--port", "0", **settings) as port:
        base = f"http://127.0.0.1:{port}"
        with httpx2.Client(base_url=base, trust_env=False, timeout=DEADLINE_S) as client:
            assert client.get("/v1/jobs", headers=bearer(signed("HS256", said()))).status_code == 200
            answer = client.get("/v1/jobs", headers=bearer(signed("RS256", said())))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    log = (tmp_path / "stderr").read_text()
    assert "the keys of JWTs cannot be had" in log
    assert "Traceback" not in log


def test_no_part_of_a_token_or_secret_is_in_the_log(tmp_path: Path) -> None:
    token, forged = signed("HS256", said()), by_hand({"alg": "HS256"}, said(), b"x" * 32)
    settings = {**JWT, "HOURHAND_TELEMETRY_LOG": "debug"}
    with running(tmp_path, "--port", "0", **settings) as port:
        for one in (token, forged, f"{token}.x"):
            httpx2.get(f"http://127.0.0.1:{port}/v1/jobs", headers=bearer(one), trust_env=False)
    log = (tmp_path / "stderr").read_text()
    assert SECRET not in log
    assert not any(piece in log for one in (token, forged) for piece in one.split("."))


# --- what it refuses to start with


def refused(folder: Path, *arguments: str, **settings: str) -> str:
    done = subprocess.run(
        [*HOURHAND, *arguments],
        cwd=folder,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "hourhand.db").exists(), "nothing was begun"
    return done.stderr


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "hourhand.example.com:80"])
def test_it_does_not_listen_beyond_loopback_without_authentication(tmp_path: Path, listen: str) -> None:
    words = refused(tmp_path, "up", "--listen", listen)
    assert "no authentication (auth.mode is none)" in words
    assert "set auth.mode to tokens or jwt" in words


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("SECRET", "nothing to check JWTs with; set auth.secret (HS256) or auth.jwks"),
        ("ISSUER", "auth.issuer is empty; set it to what the claim iss of your JWTs is"),
        ("AUDIENCE", "auth.audience is empty; set it to what the claim aud of your JWTs is"),
    ],
)
def test_jwt_needs_all_of_it(tmp_path: Path, missing: str, words: str) -> None:
    settings = {**JWT, f"HOURHAND_AUTH_{missing}": ""}
    assert words in refused(tmp_path, "up", "--port", "0", **settings)


@pytest.mark.parametrize(
    "secret",
    ["secret", "changeme", "x" * 64, "short-but-random-4fA9", "secretsecretsecretsecretsecretsecret"],
)
def test_weak_secrets_are_refused_and_not_shown(tmp_path: Path, secret: str) -> None:
    words = refused(tmp_path, "up", "--port", "0", **{**JWT, "HOURHAND_AUTH_SECRET": secret})
    assert "auth.secret: expected at most two secrets of at least 32 random bytes" in words
    assert "one is weak" in words
    if secret != "secret":
        assert secret not in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no such file"),
        (document(jwk("RS256", use="enc")), "not for signatures"),
    ],
)
def test_a_file_of_keys_must_have_some(tmp_path: Path, text: bytes | None, words: str) -> None:
    if text is not None:
        (tmp_path / "keys.json").write_bytes(text)
    settings = {**JWT, "HOURHAND_AUTH_JWKS": "keys.json"}
    told = refused(tmp_path, "up", "--port", "0", **settings)
    assert "auth.jwks: keys.json: " in told
    assert words in told


def test_a_missing_package_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "jwt.py").write_text("raise ImportError('No module named jwt')")
    told = refused(tmp_path, "up", "--port", "0", **JWT, PYTHONPATH=str(tmp_path))
    assert "pip install 'hourhand[jwt]'" in told


def test_settings_of_jwts_without_the_mode_are_refused(tmp_path: Path) -> None:
    settings = {name: value for name, value in JWT.items() if not name.endswith("MODE")}
    words = refused(tmp_path, "up", "--port", "0", **settings)
    for name in ("secret", "issuer", "audience"):
        assert f"auth.{name} is about JWTs, but auth.mode is none" in words
    assert SECRET not in words


def test_a_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    settings = {name: value for name, value in JWT.items() if not name.endswith("SECRET")}
    settings["HOURHAND_AUTH_SECRET_FILE"] = str(tmp_path / "secret")
    with running(tmp_path, "--port", "0", **settings) as port:
        got = httpx2.get(
            f"http://127.0.0.1:{port}/v1/jobs", headers=bearer(signed("HS256", said())), trust_env=False
        )
        assert got.status_code == 200


# --- parts of a cluster


@pytest.mark.parametrize("part", ["api", "scheduler"])
def test_each_part_of_a_cluster_asks_who_is_there(tmp_path: Path, migrated_url: str, part: str) -> None:
    listening = {"api": "HOURHAND_SERVER_LISTEN", "scheduler": "HOURHAND_TELEMETRY_LISTEN"}[part]
    settings = {**JWT, "HOURHAND_STORE_URL": migrated_url, listening: "0.0.0.0:0"}
    with (
        running(tmp_path, command=(part,), **settings) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE_S) as client,
    ):
        assert client.get("/healthz").status_code == 200
        assert client.get("/metrics").status_code == 401
        tenant, operator = said(role="admin"), said(role="viewer", tenant="*")
        assert client.get("/metrics", headers=bearer(signed("HS256", tenant))).status_code == 403
        assert client.get("/metrics", headers=bearer(signed("HS256", operator))).status_code == 200


def test_metrics_of_a_worker_are_not_told_beyond_loopback_without_authentication(tmp_path: Path) -> None:
    settings = {"HOURHAND_STORE_URL": "postgres://127.0.0.1/x", "HOURHAND_TELEMETRY_LISTEN": "0.0.0.0:0"}
    assert "no authentication (auth.mode is none)" in refused(tmp_path, "worker", **settings)
