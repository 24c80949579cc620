"""Errors that only HTTP knows: headers without end, bodies that cannot be read, or come as something else than JSON.

They stand in the same tree as all others, so that one place turns them into problem+json.
"""

from hourhand.errors import HourhandError, Invalid


class MalformedJson(Invalid):
    """The body is not JSON; says where."""

    code = "malformed_json"
    status = 400


class UnsupportedContent(HourhandError):
    """The body's content type is none that this route takes."""

    code = "unsupported_content_type"
    status = 415
    exit_code = 2


class Unforeseen(HourhandError):
    """Something that should not have happened; the log has the rest."""

    code = "internal"
    retryable = True


class LongHead(HourhandError):
    """The request's line and headers are longer than anybody needs."""

    code = "headers_too_large"
    status = 431
    exit_code = 2


class SlowHead(HourhandError):
    """The request's line and headers did not come to an end."""

    code = "slow_headers"
    status = 408
    retryable = True


class NotHttp(HourhandError):
    """What came is no request that HTTP allows, or leaves open where it ends."""

    code = "not_http"
    status = 400
    exit_code = 2


class SlowBody(HourhandError):
    """The body stopped coming."""

    code = "slow_body"
    status = 408
    retryable = True


class WrongHost(HourhandError):
    """Host or Origin is not ours: a page of another site, or a name that was bent to this address."""

    code = "wrong_host"
    status = 403
    exit_code = 4
