"""The page: one document for every view's address, and its assets. What it shows, it reads from the API.

Whoever does not ask for HTML gets words instead: at `/` where the API is, elsewhere the usual problem. Who is not
known gets the form to log in, where anybody is asked, and nothing of the page but what that form needs.
"""

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hourhand import __version__
from hourhand.errors import WrongToken
from hourhand.web.answers import json_answer
from hourhand.web.context import context_of
from hourhand.web.page_files import ASSETS, Asset, page
from hourhand.web.routes.login import login_page

router = APIRouter(include_in_schema=False)

VIEWS = ("/", "/jobs", "/jobs/{rest:path}", "/runs/{run_id}", "/dead-letters", "/access")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LOGIN_NEEDS = frozenset({"styles.css", "icon.svg"})
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_FOR_EVER = "public, max-age=31536000, immutable"
_FOR_EVER_OURS = "private, max-age=31536000, immutable"  # where not everybody may have it
_ASK_AGAIN = "no-cache"
_ABOUT = {
    "name": "hourhand",
    "version": __version__,
    "page": "open this address in a browser",
    "api": "/api/v1",
    "description": "/openapi.json",
    "health": "/healthz",
    "try": "curl /api/v1/jobs, or hourhand jobs list",
}


async def _view(request: Request) -> Response:
    """The document that every view begins with; other methods were meant for the API."""
    wants_page = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
    if not await _is_known(request):
        if not wants_page:
            raise WrongToken("this needs a token: Authorization: Bearer …")
        query = request.scope["query_string"].decode("latin-1")
        return login_page(request, WrongToken.status, after=request.url.path + (f"?{query}" if query else ""))
    if wants_page:
        return _answer(request, page().index, _ASK_AGAIN)
    if request.method == "GET" and request.url.path == "/":
        return json_answer(_ABOUT, headers={"Vary": "Accept"})
    raise HTTPException(404)


for _path in VIEWS:
    router.add_api_route(_path, _view, methods=_METHODS)


@router.get(ASSETS + "/{version}/{name:path}")
async def asset(request: Request, version: str, name: str) -> Response:
    """A script, style or picture; one of another version is answered with the present one, and not kept."""
    if name not in LOGIN_NEEDS and not await _is_known(request):
        raise WrongToken("this needs a token: log in at /login")
    found = page().assets.get(name)
    if found is None:
        raise HTTPException(404)
    keep = _FOR_EVER_OURS if context_of(request).identity.asks and name not in LOGIN_NEEDS else _FOR_EVER
    return _answer(request, found, keep if version == page().tag else _ASK_AGAIN)


async def _is_known(request: Request) -> bool:
    """Whether the caller may have the page; everybody may where nobody is asked."""
    identity = context_of(request).identity
    if not identity.asks:
        return True
    try:
        return await identity.of(request) is not None
    except WrongToken:
        return False


def _answer(request: Request, found: Asset, keep: str) -> Response:
    headers = {**_HEADERS, "Cache-Control": keep, "ETag": found.tag, "Vary": "Accept, Accept-Encoding"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    packs = "gzip" in request.headers.get("accept-encoding", "")
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(found.packed if packs else found.body, media_type=found.media_type, headers=headers)
