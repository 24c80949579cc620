"""The page as it is served: its policy, its caching, its weight, and that nothing in it comes from or leads elsewhere.

What it looks like and how it behaves is tested in a browser.
"""

import gzip
import hashlib
import re
from pathlib import Path

import httpx2
import pytest

import hourhand.web
from hourhand.web.page_files import page
from hourhand.web.routes.page import POLICY

PAGE = Path(hourhand.web.__file__).parent / "page"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
VIEWS = ["/", "/jobs", "/jobs/new", "/jobs/J-0000000000000", "/jobs/J-0000000000000/edit",
         "/runs/J-0000000000000@20270115T080000Z", "/dead-letters"]  # fmt: skip
SOURCES = sorted(path for path in PAGE.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"})
OURS = [path for path in SOURCES if path.parent.name != "vendor"]
WEIGHT_MAX_BYTES = 200_000


def name(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


# --- addresses


@pytest.mark.parametrize("path", VIEWS)
async def test_every_view_is_an_address_with_the_same_document(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=HTML)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text == (await client.get("/", headers=HTML)).text


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/v1/nothing", "/nothing", "/page/x/nothing.js", "/page"]
)
async def test_what_is_no_view_is_still_a_problem(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=HTML)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


async def test_without_a_browser_there_are_words(client: httpx2.AsyncClient) -> None:
    about = (await client.get("/")).json()
    assert about["api"] == "/api/v1"
    assert about["description"] == "/openapi.json"
    for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("DELETE", "/jobs/J-0000000000000")):
        answer = await client.request(method, path)
        assert answer.status_code == 404, path
        assert "the API is under /api/v1" in answer.json()["detail"]


async def test_foreign_hosts_and_origins_get_nothing(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/", headers={**HTML, "Host": "evil.example"})).status_code == 403
    assert (await client.get("/", headers={**HTML, "Origin": "https://evil.example"})).status_code == 403


# --- what browsers are told


async def test_the_policy_lets_nothing_in(client: httpx2.AsyncClient) -> None:
    index = await client.get("/jobs", headers=HTML)
    script = await client.get(assets(index.text)[0])
    for answer in (index, script):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    rules = dict(rule.strip().partition(" ")[::2] for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    for kind in ("script-src", "style-src", "connect-src", "img-src"):
        assert rules[kind] == "'self'"
    assert "unsafe" not in POLICY


async def test_assets_are_kept_for_ever_and_the_document_is_asked_for_again(
    client: httpx2.AsyncClient,
) -> None:
    index = await client.get("/", headers=HTML)
    assert index.headers["cache-control"] == "no-cache"
    again = await client.get("/", headers={**HTML, "If-None-Match": index.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for address in assets(index.text):
        answer = await client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable", address
    old = await client.get(re.sub(r"/page/\w+/", "/page/0123456789abcdef/", assets(index.text)[0]))
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")


async def test_answers_are_packed_for_those_who_can_unpack(client: httpx2.AsyncClient) -> None:
    address = next(
        one for one in assets((await client.get("/", headers=HTML)).text) if one.endswith("app.js")
    )
    packed = await client.get(address, headers={"Accept-Encoding": "gzip"})
    plain = await client.get(address, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content == (PAGE / "app.js").read_bytes()
    assert "Accept-Encoding" in packed.headers["vary"]


def assets(index: str) -> list[str]:
    """Every address that the document loads."""
    return re.findall(r'(?:src|href)="(/page/[^"]+)"', index)


# --- what it is made of


def test_it_weighs_little() -> None:
    found = page()
    bytes_ = {name: len(asset.packed) for name, asset in found.assets.items()} | {"": len(found.index.packed)}
    assert sum(bytes_.values()) < WEIGHT_MAX_BYTES, dict(sorted(bytes_.items(), key=lambda one: -one[1])[:8])
    assert all(gzip.decompress(asset.packed) == asset.body for asset in found.assets.values())


def test_every_module_is_announced_and_every_import_leads_to_one() -> None:
    announced = set(re.findall(r'modulepreload" href="/page/\w+/([^"]+)"', page().index.body.decode()))
    modules = {name(path) for path in SOURCES if path.suffix == ".js"} - {"theme.js"}
    assert announced == modules
    for path in SOURCES:
        if path.suffix != ".js":
            continue
        for specifier in re.findall(r'(?:\bfrom|\bimport)\s*"([^"\s]+)"', path.read_text("utf-8")):
            assert specifier.startswith("."), f"{name(path)}: {specifier}"
            assert (path.parent / specifier).resolve().is_file(), f"{name(path)}: {specifier}"


def test_nothing_is_inline_and_nothing_is_html() -> None:
    index = (PAGE / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", index) == []
    assert "<style" not in index
    assert re.findall(r"\s(?:style|on\w+)=", index) == []
    forbidden = re.compile(
        r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    for path in OURS:
        assert not forbidden.findall(path.read_text("utf-8")), name(path)


def test_nothing_comes_from_another_host() -> None:
    allowed = {
        "http://www.w3.org/2000/svg",
        "https://example.com/hook",
    }  # a namespace, and an example to copy
    for path in OURS:
        found = set(re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`)}]*", path.read_text("utf-8")))
        assert found <= allowed, f"{name(path)}: {found - allowed}"


def test_what_others_wrote_is_as_it_was_brought_in() -> None:
    listed = re.findall(
        r"^\| ([\w.-]+) \|.*`(\w{64})` \|$", (PAGE / "vendor" / "README.md").read_text("utf-8"), re.M
    )
    assert {file for file, _ in listed} == {path.name for path in SOURCES if path.parent.name == "vendor"}
    for file, expected in listed:
        assert hashlib.sha256((PAGE / "vendor" / file).read_bytes()).hexdigest() == expected, file
    assert "MIT" in (PAGE / "vendor" / "LICENSES.txt").read_text("utf-8")
