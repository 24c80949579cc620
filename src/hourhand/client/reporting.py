"""For receivers that answered 202: `report` on the attempt that a call was about, by what its headers say.

The headers name the place, the attempt and the token; keep those three wherever the work goes on. Check the
call's signature first: whoever could forge it would choose where the report goes.
"""

from typing import Any
from urllib.parse import unquote

from hourhand.client.clients import PREFIX, AsyncClient, Client
from hourhand.client.flow import Document
from hourhand.core.calls import Headers, by_lower_name
from hourhand.errors import Invalid

REPORT_HEADERS = ("Hourhand-Report-Url", "Hourhand-Report-Token", "Hourhand-Attempt")
_RETRIES = 6  # some seconds, so that a restart of the API is sat out


def report(
    headers: Headers,
    outcome: str = "succeeded",
    *,
    timeout_s: float = 30.0,
    retries: int = _RETRIES,
    **fields: Any,
) -> Document:
    """Report on an attempt, again where that may help; the fields are those of `Client.runs.report`.

    Conflict says that the attempt is over, its subclass TooLate that its deadline has passed: either way,
    stop working on it.
    """
    url, arguments = _addressed(headers)
    with Client(url, timeout_s=timeout_s, retries=retries) as client:
        return client.runs.report(**arguments, outcome=outcome, **fields)


async def report_async(
    headers: Headers,
    outcome: str = "succeeded",
    *,
    timeout_s: float = 30.0,
    retries: int = _RETRIES,
    **fields: Any,
) -> Document:
    """The same on the running event loop."""
    url, arguments = _addressed(headers)
    async with AsyncClient(url, timeout_s=timeout_s, retries=retries) as client:
        return await client.runs.report(**arguments, outcome=outcome, **fields)


def _addressed(headers: Headers) -> tuple[str, dict[str, Any]]:
    """The server, and which attempt of which run is meant; Invalid where the headers do not say."""
    given = by_lower_name(headers)
    missing = [name for name in REPORT_HEADERS if not given.get(name.lower())]
    if missing:
        raise Invalid(f"the call has no {missing[0]}, so it cannot be reported on")
    place, token, attempt = (given[name.lower()] for name in REPORT_HEADERS)
    url, found, rest = place.rpartition(f"{PREFIX}/runs/")
    if not found or not rest.endswith("/report") or not attempt.isdigit():
        raise Invalid("Hourhand-Report-Url or Hourhand-Attempt is not what hourhand sends")
    run_id = unquote(rest.removesuffix("/report"))
    return url, {"run": run_id, "attempt": int(attempt), "token": token}
