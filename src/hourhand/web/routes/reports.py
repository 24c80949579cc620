"""The one route that targets call: what became of an attempt that they accepted with 202.

Whoever has the attempt's token may report; nothing else is asked, and nothing is said to anybody else.
"""

from typing import Annotated

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from hourhand.core.instant import format_instant
from hourhand.errors import WrongToken
from hourhand.web.access import open_to_all
from hourhand.web.answers import instant, json_answer
from hourhand.web.context import context_of
from hourhand.web.faults import refusal, validated
from hourhand.web.json_text import read_object
from hourhand.web.openapi import problems, takes
from hourhand.web.report_document import ReportDocument, report_faults, report_in
from hourhand.web.requests import DryRun, StrictRoute, json_body, run_key_in
from hourhand.web.routes.runs import RunIdText
from hourhand.web.shapes.runs import ReportAnswer

router = APIRouter(tags=["runs"], route_class=StrictRoute)

Token = Annotated[
    str | None,
    Header(
        alias="Authorization",
        description="Bearer and the attempt's token, which came to the target as Hourhand-Report-Token.",
    ),
]
_MISSING = "a report needs Authorization: Bearer with the Hourhand-Report-Token that came with the call"
_MAX_CHARACTERS = 200


@router.post(
    "/runs/{run_id}/report",
    summary="Report on an accepted attempt",
    response_model=ReportAnswer,
    responses=problems(401, 404, 409, 410, body=True),
    openapi_extra=takes(ReportDocument),
)
@open_to_all  # the token of its attempt says who may
async def report_run(
    request: Request, run_id: RunIdText, authorization: Token = None, dry_run: DryRun = False
) -> Response:
    """For targets that answered 202. The same report again is answered again; another one after it is a conflict."""
    token = _bearer(authorization)
    key = run_key_in(run_id)
    body = await json_body(request)
    document = validated(ReportDocument, read_object(body, "a report", any_text=True))
    if faults := report_faults(document):
        raise refusal(faults)
    receipt = await context_of(request).reports.take(key, token, report_in(document), dry_run=dry_run)
    answer = {
        "run_id": run_id,
        "attempt": document.attempt,
        "status": receipt.state,
        "deadline_at": instant(receipt.deadline_at),
        "due_at": None if receipt.due_at is None else format_instant(receipt.due_at),
        "repeated": receipt.repeated,
    }
    return json_answer({**answer, "dry_run": True} if dry_run else answer)


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > _MAX_CHARACTERS:
        raise WrongToken(_MISSING)
    return token
