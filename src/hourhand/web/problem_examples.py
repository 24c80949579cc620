"""An example of each problem for the description of the API, built by what builds the answers: so they are alike.

Each is a component, said once and referred to wherever its status is. What a status means is `openapi`'s.
"""

from typing import Any

import msgspec

from hourhand.core.fault import Fault
from hourhand.errors import (
    Conflict,
    HourhandError,
    Invalid,
    NotAllowed,
    NotFound,
    Outdated,
    Overloaded,
    TooLarge,
    TooLate,
    Unavailable,
    WrongToken,
)
from hourhand.web.faults import told
from hourhand.web.problems import problem_of, wrong_method
from hourhand.web.refusals import LongHead, MalformedJson, SlowBody, Unforeseen, UnsupportedContent

_REQUEST_ID = "r-63a1b2c3d4e5f-17"
_COMMA = "trailing comma in object at line 1, column 22"
_HOUR = Fault(pointer="/cron", expected="as hour 0 to 23, ranges a-b, lists a,b, steps */n, or *", got="'25'")
_ERRORS: tuple[HourhandError, ...] = (
    MalformedJson(f"the body is not JSON: {_COMMA}", [Fault(pointer="", expected="JSON", got=_COMMA)]),
    WrongToken("this needs a token: Authorization: Bearer …"),
    NotAllowed("this needs the role editor; the token has viewer"),
    NotFound("there is no such job"),
    SlowBody("no more of the body came for 20 s, or less than 4,096 bytes a second"),
    Conflict("the key 'billing/daily' belongs to another job"),
    TooLate("attempt 1 was given up: no report came within its timeout"),
    Outdated("the job is at version 4 now, not 3; read it again"),
    TooLarge("the body is larger than 327,680 bytes"),
    UnsupportedContent("expected Content-Type: application/json, got text/plain"),
    Invalid(told(_HOUR), [_HOUR]),
    Overloaded("a user may make 1,000 requests in 10 s; try again in 1 s"),
    LongHead(
        "the request's line and headers have at most 65,536 bytes and 100 headers; send long texts in the body"
    ),
    Unforeseen(f"an unexpected error; the log names it by the request id {_REQUEST_ID}"),
    Unavailable("the connection to the database was lost"),
)  # of each status one, its commonest; in the order of the statuses


def examples() -> dict[str, dict[str, Any]]:
    """The components, by their codes."""
    bodies = [problem_of(error, _REQUEST_ID) for error in _ERRORS]
    bodies.append(wrong_method("/api/v1/jobs", "DELETE", ["GET", "POST"], _REQUEST_ID))
    return {
        body["code"]: {"summary": body["title"], "value": msgspec.json.decode(msgspec.json.encode(body))}
        for body in bodies
    }


def example_of(status: int) -> dict[str, Any]:
    """What refers to the example of a status, for the content of an answer."""
    code = _CODES[status]
    return {code: {"$ref": f"#/components/examples/{code}"}}


_CODES = {one["value"]["status"]: code for code, one in examples().items()}
