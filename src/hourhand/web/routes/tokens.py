"""API tokens: make, list, revoke; and who the caller is."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.api_token import ApiToken, format_token_id, parse_token_id
from hourhand.core.fault import Fault
from hourhand.core.instant import format_instant
from hourhand.errors import NotAllowed, NotFound
from hourhand.ports.tokens import TokenQuery
from hourhand.services.tokens import TokenWish
from hourhand.web.access import CALLER, TENANT_HEADER, Caller, needs
from hourhand.web.answers import instant, json_answer
from hourhand.web.context import context_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import refusal, validated
from hourhand.web.json_text import read_object
from hourhand.web.openapi import problems, takes
from hourhand.web.requests import CursorText, DryRun, Limit, StrictRoute, empty_body, json_body
from hourhand.web.schema import TokenDocument
from hourhand.web.shapes.tokens import NewTokenAnswer, TokenAnswer, TokenList, WhoAmI

router = APIRouter(tags=["access"], route_class=StrictRoute)

TokenIdText = Annotated[str, Path(description="The token's id.", examples=["T-0d3x8m2k7q1vt"])]
_UNKEPT = {"Cache-Control": "no-store"}  # the only time that a secret is told


@router.post(
    "/tokens",
    status_code=201,
    summary="Make an API token",
    response_model=NewTokenAnswer,
    responses=problems(409, body=True),
    openapi_extra=takes(TokenDocument),
)
@needs(Role.ADMIN)
async def create_token(request: Request, dry_run: DryRun = False) -> Response:
    """Its text is in this answer and nowhere else: only a hash is kept. Nobody gives more than they have."""
    web, caller = context_of(request), _caller(request)
    asked = validated(TokenDocument, read_object(await json_body(request), "a token"))
    now_at = web.clock.now()
    if asked.expires_in is not None and asked.expires_at is not None:
        raise refusal([Fault(pointer="/expires_at", expected="expires_in or expires_at", got="both")])
    wish = TokenWish(
        name=asked.name,
        role=asked.role or Role.VIEWER,
        tenant=asked.tenant or caller.tenant,
        expires_at=asked.expires_at if asked.expires_in is None else now_at + asked.expires_in,
    )
    made = await web.tokens.create(caller.principal, wish, dry_run=dry_run)
    answer = {**token_answer(made.token, now_at), "token": made.text}
    if dry_run:
        return json_answer({**answer, "dry_run": True})
    return json_answer(answer, 201, _UNKEPT)


@router.get(
    "/tokens", summary="List API tokens, newest first", response_model=TokenList, responses=problems()
)
@needs(Role.ADMIN)
async def list_tokens(
    request: Request,
    tenant: Annotated[
        str | None,
        Query(description='Only of this tenant; "*": of those who run the system.', examples=["acme"]),
    ] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Those of the caller's tenant; who runs the system sees all. Revoked and expired ones too, for a while."""
    web = context_of(request)
    place = read_cursor(cursor, "tokens")
    query = TokenQuery(tenant=_whose(request, tenant), before_id=place[0] if place else None, limit=limit)
    found = await web.tokens.page(query)
    onward = None if found.next_before_id is None else write_cursor("tokens", found.next_before_id)
    now_at = web.clock.now()
    answers = [token_answer(one, now_at) for one in found.tokens]
    body, headers = page(request, answers, onward, found.missing)
    return json_answer(body, headers=headers)


@router.delete(
    "/tokens/{token_id}",
    summary="Revoke an API token",
    response_model=TokenAnswer,
    responses=problems(404, body=True),
)
@needs(Role.ADMIN)
async def revoke_token(request: Request, token_id: TokenIdText, dry_run: DryRun = False) -> Response:
    """It proves nothing from now on; other processes notice within three seconds. Twice is the same as once."""
    await empty_body(request)
    web = context_of(request)
    revoked = await web.tokens.revoke(_whose(request, None), _id_in(token_id), dry_run=dry_run)
    answer = token_answer(revoked, web.clock.now())
    return json_answer({**answer, "dry_run": True} if dry_run else answer)


@router.get("/whoami", summary="Who this is", response_model=WhoAmI, responses=problems())
async def whoami(request: Request) -> Response:
    """Whom the token of this request proves, and what they may do."""
    caller = _caller(request)
    principal = caller.principal
    return json_answer(
        {
            "subject": principal.subject,
            "tenant": principal.tenant,
            "acts_for": caller.tenant,
            "role": principal.role,
            "via": principal.via,
            "expires_at": instant(principal.expires_at),
        }
    )


def token_answer(token: ApiToken, now_at: int) -> dict[str, Any]:
    """A token without anything of its secret."""
    state = "revoked" if token.revoked_at is not None else "live" if token.is_live(now_at) else "expired"
    return {
        "token_id": format_token_id(token.id) if token.id else None,
        "name": token.name,
        "tenant": token.tenant,
        "role": token.role,
        "state": state,
        "created_at": format_instant(token.created_at),
        "created_by": token.created_by,
        "expires_at": instant(token.expires_at),
        "revoked_at": instant(token.revoked_at),
        "last_used_at": instant(token.last_used_at),
    }


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def _whose(request: Request, asked: str | None) -> str | None:
    """Whose tokens a request is about; None: everybody's, for those who run the system and name no tenant."""
    caller = _caller(request)
    if not caller.principal.runs_the_system:
        if asked not in (None, caller.tenant):
            raise NotAllowed("only those who run the system see tokens of another tenant than their own")
        return caller.tenant
    if asked is None and TENANT_HEADER in request.headers:
        return caller.tenant
    return asked


def _id_in(text: str) -> int:
    """The token id in a path; what is none does not exist."""
    try:
        return parse_token_id(text)
    except ValueError as error:
        raise NotFound(str(error)) from None
