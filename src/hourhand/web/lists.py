"""A JSON list of documents as a request's body: held in memory, so bounded in bytes and in number."""

import msgspec
from fastapi import Request

from hourhand.core.fault import Fault
from hourhand.errors import TooLarge
from hourhand.web.faults import refusal
from hourhand.web.guards import LIST_BYTES, announces_more
from hourhand.web.json_text import json_kind, read_json
from hourhand.web.requests import check_json

_LIST_DECODER = msgspec.json.Decoder(list[msgspec.Raw])


async def listed_documents(request: Request, longest: int, *, else_: str = "in parts") -> list[bytes]:
    """The documents of a list, each as it came; Invalid where there are none or too many; then `else_` says how."""
    body = await _body(request, else_)
    try:
        documents = _LIST_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = read_json(body) if body.strip() else None  # raises what is wrong with the JSON itself
        raise refusal([Fault(pointer="", expected="a list of job documents", got=json_kind(value))]) from None
    if not 1 <= len(documents) <= longest:
        expected = f"1 to {longest:,} documents; send more {else_}"
        raise refusal([Fault(pointer="", expected=expected, got=f"{len(documents):,}")])
    return [bytes(document) for document in documents]


async def _body(request: Request, else_: str) -> bytes:
    announced = request.headers.get("content-length", "").encode("latin-1")
    if announces_more(announced, LIST_BYTES):
        raise _too_large(else_)
    parts, size_bytes = [], 0
    check_json(request)
    async for chunk in request.stream():
        parts.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > LIST_BYTES:
            raise _too_large(else_)
    return b"".join(parts)


def _too_large(else_: str) -> TooLarge:
    return TooLarge(f"the list is larger than {LIST_BYTES:,} bytes; send it {else_}")
