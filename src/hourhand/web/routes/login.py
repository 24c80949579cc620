"""Logging in to the page: a form for a token, and the cookie that then carries it. No token stands in an address.

Works without JavaScript. The cookie cannot be read by scripts and is sent to this site only; what changes something
is held against the page's origin too, see `web.identity`. The token is verified as in any request, each time.
"""

import re
from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from hourhand.errors import HourhandError, TooLarge, WrongToken
from hourhand.web.context import context_of
from hourhand.web.page_files import page
from hourhand.web.refusals import UnsupportedContent
from hourhand.web.requests import content_type

router = APIRouter(include_in_schema=False)

LOGIN = "/login"
LOGIN_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
MAX_FORM_BYTES = 16 * 1024
MAX_COOKIE = 3_800  # characters of a token that browsers keep in a cookie
_FORM = "application/x-www-form-urlencoded"
_OWN_PATH = re.compile(
    r"/(?!/)[!-\[\]-~]{0,2000}"
)  # printable, and no backslash, which browsers take for a slash
_HEADERS = {
    "Content-Security-Policy": LOGIN_POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # with less, browsers would not say where the form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Accept, Cookie",
}
_WRONG = "This token is not known here, was revoked, or has expired."


@router.get(LOGIN)
async def show_login(request: Request) -> Response:
    """The form; where nobody is asked who they are, there is nothing to log in to."""
    if not context_of(request).identity.asks:
        return RedirectResponse("/", 303)
    return login_page(request, 200, after=request.query_params.get("next"))


@router.post(LOGIN)
async def log_in(request: Request) -> Response:
    """Verify the token, keep it in the cookie, and go where it was wanted to go."""
    identity = context_of(request).identity
    if not identity.asks:
        return RedirectResponse("/", 303)
    identity.check_origin(request)
    token, after = await _form(request)
    try:
        if len(token) > MAX_COOKIE:
            raise WrongToken(
                f"This token is longer than {MAX_COOKIE:,} characters, which browsers do not keep."
            )
        await identity.recognise(token)
    except WrongToken as error:
        words = error.message if len(token) > MAX_COOKIE else _WRONG
        return login_page(request, error.status, words, after)
    except HourhandError as error:
        return login_page(request, error.status, f"It cannot be verified right now: {error.message}.", after)
    answer = RedirectResponse(own_path(after), 303, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        identity.cookie(request),
        token,
        httponly=True,
        samesite="strict",
        secure=identity.is_https(request),
        path="/",
    )
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Forget the cookie. The token itself goes on; whoever wants it gone revokes it."""
    context_of(request).identity.check_origin(request)
    answer = RedirectResponse(LOGIN, 303, headers={"Cache-Control": "no-store"})
    _forget(request, answer)
    return answer


def login_page(request: Request, status: int, words: str = "", after: str | None = None) -> Response:
    """The form, and perhaps what was wrong; a cookie that proved nothing goes."""
    text = page().login.replace("{next}", escape(own_path(after)))
    message = f'<p class="error" role="alert" id="wrong">{escape(words)}</p>' if words else ""
    answer = Response(
        text.replace("<!-- message -->", message), status, dict(_HEADERS), "text/html; charset=utf-8"
    )
    if status == WrongToken.status:
        answer.headers["WWW-Authenticate"] = "Bearer"
        _forget(request, answer)
    return answer


def own_path(text: str | None) -> str:
    """An address of this site to go to; the first page for anything else."""
    return text if text and _OWN_PATH.fullmatch(text) else "/"


async def _form(request: Request) -> tuple[str, str | None]:
    """The token and where to go on."""
    if content_type(request) != _FORM:
        raise UnsupportedContent(f"expected Content-Type: {_FORM}")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise TooLarge(f"the form is larger than {MAX_FORM_BYTES:,} bytes")
    fields = parse_qs(body.decode("latin-1"))
    after = fields.get("next")
    return fields.get("token", [""])[0].strip(), after[0] if after else None


def _forget(request: Request, answer: Response) -> None:
    identity = context_of(request).identity
    answer.delete_cookie(
        identity.cookie(request),
        path="/",
        httponly=True,
        samesite="strict",
        secure=identity.is_https(request),
    )
