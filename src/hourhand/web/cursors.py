"""Pages of lists: opaque cursors, and the Link to the next page.

A cursor holds where to go on, and for which list; one of another list, or a made-up one, is refused.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from hourhand.core.fault import Fault
from hourhand.core.instant import may_be_given
from hourhand.errors import Invalid
from hourhand.web.plain_texts import NUL

_LONGEST = 4_096  # a list over many databases has a place in each
_PLACES = 1 << 63  # what a store counts with


def write_cursor(kind: str, *place: int | str) -> str:
    """A cursor for one kind of list."""
    return urlsafe_b64encode(msgspec.msgpack.encode([kind, *place])).rstrip(b"=").decode()


def read_cursor(
    cursor: str | None, kind: str, numbers: int = 1, *, or_more: bool = False, instants: int = 0
) -> tuple[int, ...] | None:
    """Where a list goes on; Invalid for a cursor of something else. The first `instants` are times that one may give."""
    if cursor is None:
        return None
    found, place = _unpacked(cursor)
    fits = len(place) >= numbers if or_more else len(place) == numbers
    if found != kind or not fits or not all(_is_place(one) for one in place):
        raise _of_another_list()
    read = tuple(int(one) for one in place)
    if not all(may_be_given(at) for at in read[:instants]):
        raise _of_another_list()
    return read


def read_name_cursor(cursor: str | None, kind: str) -> str | None:
    """Where a list goes on that is in the order of names."""
    if cursor is None:
        return None
    found, place = _unpacked(cursor)
    if found != kind or len(place) != 1 or not isinstance(place[0], str) or NUL in place[0]:
        raise _of_another_list()
    return place[0]


def page(
    request: Request, data: list[Any], next_cursor: str | None, missing: Sequence[int] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """The body of a page and its headers; says so when some databases did not answer."""
    body: dict[str, Any] = {"data": data, "next_cursor": next_cursor}
    if missing:
        body["partial"] = [f"shard {shard}" for shard in missing]
    if next_cursor is None:
        return body, {}
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    address = f"{request.url.path}?{urlencode([*query, ('cursor', next_cursor)])}"
    return body, {"Link": f'<{address}>; rel="next"'}


def _is_place(one: str | int) -> bool:
    return isinstance(one, int) and -_PLACES <= one < _PLACES


def _unpacked(cursor: str) -> tuple[str | int, list[str | int]]:
    try:
        packed = urlsafe_b64decode(cursor[:_LONGEST] + "=" * (-len(cursor) % 4))
        found, *place = msgspec.msgpack.decode(packed, type=list[str | int])
    except (ValueError, msgspec.DecodeError):
        return "", []
    return found, place


def _of_another_list() -> Invalid:
    fault = Fault(pointer="?cursor", expected="the next_cursor of this list", got="something else")
    return Invalid("cursor: expected the next_cursor of this list", [fault])
