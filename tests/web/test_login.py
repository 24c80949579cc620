"""Logging in to the page: what the anonymous get, what the cookie is and when it counts, and where it may lead."""

import re

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from hourhand.clock import ManualClock
from hourhand.core.access import LOCAL, Role
from hourhand.ids import IdSource
from hourhand.services.tokens import MAX_GUESSES, REVOKED_WITHIN_US, TokenAuthenticator, Tokens, TokenWish
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.context import WebSettings
from hourhand.web.page_files import page
from hourhand.web.routes import PAGE
from hourhand.web.routes.login import LOGIN_POLICY, MAX_FORM_BYTES
from hourhand.web.routes.page import LOGIN_NEEDS
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_page import HTML, VIEWS, assets

FORM = "application/x-www-form-urlencoded"
OWN = {"Origin": ADDRESS}


@pytest.fixture
def app(make_app: MakeApp, store: SqliteStore, clock: ManualClock) -> FastAPI:
    return make_app(authenticators=[TokenAuthenticator(store=store, clock=clock)])


@pytest.fixture
def tokens(store: SqliteStore, clock: ManualClock) -> Tokens:
    return Tokens(store=store, ids=IdSource(clock), clock=clock)


@pytest.fixture
async def token(tokens: Tokens) -> str:
    made = await tokens.create(LOCAL, TokenWish(name="ann", tenant="acme", role=Role.ADMIN))
    assert made.text is not None
    return made.text


@pytest.fixture
async def logged_in(client: httpx2.AsyncClient, token: str) -> httpx2.AsyncClient:
    assert (await log_in(client, token)).status_code == 303
    return client


async def log_in(
    client: httpx2.AsyncClient, token: str, after: str | None = None, headers: dict[str, str] | None = None
) -> httpx2.Response:
    fields = {"token": token} | ({} if after is None else {"next": after})
    return await client.post("/login", data=fields, headers=OWN if headers is None else headers)


# --- the anonymous


@pytest.mark.parametrize("path", [*VIEWS, "/access"])
async def test_every_view_is_the_form_to_the_anonymous(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(f"{path}?a=1&b=%22", headers=HTML)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<form method="post" action="/login"' in answer.text
    assert f'name="next" value="{path}?a=1&amp;b=%22"' in answer.text
    assert page().index.body.decode() not in answer.text
    plain = await client.get(path)
    assert (plain.status_code, plain.json()["code"]) == (401, "wrong_token")


async def test_no_route_of_the_page_is_open_but_the_form_and_what_it_needs(
    client: httpx2.AsyncClient,
) -> None:
    seen = set()
    for route in PAGE.routes:
        assert isinstance(route, APIRoute)
        if route.path in ("/login", "/logout"):
            continue
        path = re.sub(r"\{\w+(:path)?\}", "app.js", route.path)
        for method in route.methods or ():
            seen.add(path)
            assert (await client.request(method, path, headers=HTML)).status_code == 401, f"{method} {path}"
    assert len(seen) > 5


async def test_no_asset_is_open_but_what_the_form_needs(client: httpx2.AsyncClient, token: str) -> None:
    needed = {address.rpartition("/")[2] for address in assets((await client.get("/login")).text)}
    assert needed == LOGIN_NEEDS
    base = f"/page/{page().tag}"
    for name in page().assets:
        answer = await client.get(f"{base}/{name}")
        assert answer.status_code == (200 if name in LOGIN_NEEDS else 401), name
    assert (await client.get(f"{base}/login.html")).status_code == 401
    await log_in(client, token)
    for name in page().assets:
        answer = await client.get(f"{base}/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["cache-control"].startswith("public" if name in LOGIN_NEEDS else "private")
    assert (await client.get(f"{base}/login.html")).status_code == 404


async def test_the_form_is_plain_and_its_policy_strict(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/login")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == LOGIN_POLICY
    assert "script-src" not in LOGIN_POLICY  # so none at all
    assert "unsafe" not in LOGIN_POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert "<script" not in answer.text
    assert "<style" not in answer.text
    assert re.findall(r"\s(?:style|on\w+)=", answer.text) == []
    assert 'type="password"' in answer.text


# --- logging in and out


async def test_logging_in_sets_a_cookie_that_scripts_cannot_read(
    client: httpx2.AsyncClient, token: str
) -> None:
    answer = await log_in(client, token)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"hourhand_token={token};")
    words = {part.strip().lower() for part in cookie.split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= words
    assert "secure" not in words
    assert not any(word.startswith(("domain", "max-age", "expires")) for word in words)
    shown = await client.get("/", headers=HTML)
    assert (shown.status_code, shown.text) == (200, page().index.body.decode())
    me = (await client.get("/v1/whoami")).json()
    assert (me["tenant"], me["via"]) == ("acme", "token")


async def test_under_https_the_cookie_is_for_https_and_this_host_alone(
    make_app: MakeApp, store: SqliteStore, clock: ManualClock, token: str
) -> None:
    authenticators = [TokenAuthenticator(store=store, clock=clock)]
    app = make_app(WebSettings(url="https://hh.example.com"), authenticators=authenticators)
    transport = httpx2.ASGITransport(app=app)
    for base in ("https://hh.example.com", "http://hh.example.com"):  # the latter: behind who speaks https
        async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
            answer = await log_in(client, token, headers={"Origin": "https://hh.example.com"})
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith(f"__Host-hourhand_token={token};")
            assert "secure" in cookie.lower()
            plain = {"Cookie": f"hourhand_token={token}"}  # which any neighbour could have set
            async with httpx2.AsyncClient(transport=transport, base_url=base) as other:
                assert (await other.get("/v1/whoami", headers=plain)).status_code == 401
                good = {"Cookie": f"__Host-hourhand_token={token}"}
                assert (await other.get("/v1/whoami", headers=good)).status_code == 200


@pytest.mark.parametrize(
    ("after", "location"),
    [
        ("/jobs?name=x&tag=%2F", "/jobs?name=x&tag=%2F"),
        ("/", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("evil", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("/\t/evil.example", "/"),
        ("/" + "a" * 3_000, "/"),
    ],
)
async def test_it_leads_to_this_site_only(
    client: httpx2.AsyncClient, token: str, after: str, location: str
) -> None:
    answer = await log_in(client, token, after)
    assert (answer.status_code, answer.headers["location"]) == (303, location)


async def test_what_was_asked_for_is_text_in_the_form(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/login", params={"next": '/"><script>alert(1)</script>'})
    assert "<script" not in answer.text


@pytest.mark.parametrize("wrong", ["", "qqqq", "hh_0000000000000_" + "0" * 64, "y" * 5_000])
async def test_a_wrong_token_is_said_so_and_not_repeated(client: httpx2.AsyncClient, wrong: str) -> None:
    answer = await log_in(client, wrong, "/jobs")
    assert answer.status_code == 401
    assert 'role="alert"' in answer.text
    assert 'value="/jobs"' in answer.text
    assert not wrong or wrong not in answer.text
    assert "hourhand_token" not in client.cookies
    assert (await client.get("/v1/whoami")).status_code == 401


async def test_logging_out_forgets_the_cookie(logged_in: httpx2.AsyncClient, token: str) -> None:
    answer = await logged_in.post("/logout", headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "hourhand_token" not in logged_in.cookies
    assert (await logged_in.get("/", headers=HTML)).status_code == 401
    bearer = {"Authorization": f"Bearer {token}"}
    assert (await logged_in.get("/v1/whoami", headers=bearer)).status_code == 200


async def test_a_revoked_token_logs_the_browser_out(
    logged_in: httpx2.AsyncClient, tokens: Tokens, clock: ManualClock
) -> None:
    token_id = (await logged_in.get("/v1/tokens")).json()["data"][0]["token_id"]
    assert (await logged_in.delete(f"/v1/tokens/{token_id}", headers=OWN)).status_code == 200
    clock.advance(REVOKED_WITHIN_US)
    answer = await logged_in.get("/jobs", headers=HTML)
    assert answer.status_code == 401
    assert "hourhand_token" not in logged_in.cookies


async def test_guessing_at_the_form_is_bounded(client: httpx2.AsyncClient) -> None:
    told = [(await log_in(client, f"hh_{n:013}_" + "0" * 64)).status_code for n in range(1, MAX_GUESSES + 20)]
    assert told.count(401) == MAX_GUESSES
    assert told.count(429) == 19


# --- forged requests


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "null"}, {"Origin": "https://evil.example"}, {"Origin": "http://localhost:7070"}],
    ids=["nothing", "null", "another", "another name of this machine"],
)
async def test_a_cookie_changes_nothing_from_elsewhere(
    logged_in: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    for method, path in (("POST", "/v1/jobs"), ("DELETE", "/v1/jobs/J-0000000000000"), ("POST", "/logout")):
        answer = await logged_in.request(method, path, headers=headers)
        assert answer.status_code == 403, path
    answer = await log_in(logged_in, "x", headers=headers)
    assert answer.status_code == 403  # nor is anybody logged in as somebody else
    assert (await logged_in.get("/v1/whoami")).status_code == 200


async def test_a_header_counts_before_the_cookie(logged_in: httpx2.AsyncClient, token: str) -> None:
    wrong = {"Authorization": "Bearer nobody"}
    assert (await logged_in.get("/v1/whoami", headers=wrong)).status_code == 401
    right = {"Authorization": f"Bearer {token}"}  # needs no origin
    assert (await logged_in.post("/v1/jobs", headers=right, json={})).status_code == 422


async def test_no_token_in_an_address_counts(client: httpx2.AsyncClient, token: str) -> None:
    for name in ("token", "access_token", "hourhand_token", "authorization"):
        assert (await client.get(f"/v1/events?{name}={token}")).status_code == 401
        assert (await client.get(f"/?{name}={token}", headers=HTML)).status_code == 401
    assert (await client.get(f"/login?token={token}")).headers.get("set-cookie") is None


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"token": "x"}', "application/json", 415),
        (b"token=x", "text/plain", 415),
        (b"token=" + b"x" * MAX_FORM_BYTES, FORM, 413),
        (b"&".join(b"a=b" for _ in range(20)), FORM, 401),
        (b"\xff\x00%ff%zz", FORM, 401),
    ],
)
async def test_what_is_no_such_form_is_refused(
    client: httpx2.AsyncClient, body: bytes, kind: str, status: int
) -> None:
    answer = await client.post("/login", content=body, headers={**OWN, "Content-Type": kind})
    assert answer.status_code == status, answer.text


# --- where nobody is asked


async def test_without_authentication_there_is_nothing_to_log_in_to(make_app: MakeApp) -> None:
    transport = httpx2.ASGITransport(app=make_app())
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        for method in ("GET", "POST"):
            answer = await client.request(method, "/login", headers=OWN)
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await client.get("/", headers=HTML)).status_code == 200
        asset = await client.get(f"/page/{page().tag}/app.js")
        assert asset.headers["cache-control"].startswith("public")
