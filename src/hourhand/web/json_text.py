"""JSON as it comes in: read once, with the place of what is wrong; payloads kept as the bytes that came.

Owns the limits of JSON itself: depth, no NaN, finite numbers, texts that can be kept, size of a payload. What the
fields of a document mean is `documents`'.
"""

import re
from typing import Any

import msgspec

from hourhand.core.fault import Fault
from hourhand.errors import Invalid, TooLarge
from hourhand.web.plain_texts import check_texts
from hourhand.web.refusals import MalformedJson

MAX_DEPTH = 64

NULL = msgspec.Raw(b"null")
_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")
_NUL = b"\\u0000"  # as JSON has it: no other form of it is a part of a text
_PLACE = re.compile(r" \(byte (\d+)\)$")
_NOT_FINITE = re.compile(rb"-?(NaN|Infinity)")
# The first escape of half a character: everything before it, pairs included, is passed over in one go.
_HALF_A_CHARACTER = re.compile(
    rb"(?:[^\\]++|\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F]|(?!u[dD][89a-fA-F]).))*+(\\u[dD][\da-fA-F]{3})",
    re.DOTALL,
)
# A text that does not end is one text too: to look for its end from each quote in it would take for ever.
_ALL_BUT_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[^\[\]{}"]+', re.DOTALL)
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


class _Carrier(msgspec.Struct):
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_PAYLOAD_DECODER = msgspec.json.Decoder(_Carrier)


def read_json(text: bytes) -> Any:
    """The value that a JSON text means; MalformedJson with line and column, Invalid for what is no number."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise _too_deep("") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _explained(text, error) from None


def read_object(text: bytes, expected: str, *, any_text: bool = False) -> dict[str, Any]:
    """A JSON object; Invalid where the text means something else, or has texts that cannot be kept.

    A payload is kept as bytes and may have any; `any_text`: so may everything else, since who keeps it sees to it.
    """
    value = read_json(text) if text.strip() else None
    if not isinstance(value, dict):
        got = json_kind(value) if text.strip() else "an empty body"
        raise Invalid(
            f"expected {expected}, got {got}",
            [Fault(pointer="", expected=f"{expected}, a JSON object", got=got)],
        )
    if _NUL in text and not any_text:
        check_texts(value, but=("payload",))
    return value


def read_document(text: bytes, expected: str) -> dict[str, Any]:
    """A JSON object whose `payload`, if it has one, stays the bytes that came."""
    value = read_object(text, expected)
    if "payload" in value:
        raw = _PAYLOAD_DECODER.decode(text).payload
        value["payload"] = msgspec.Raw(bytes(raw)) if isinstance(raw, msgspec.Raw) else NULL
    return value


def payload_of(value: object, longest_bytes: int) -> msgspec.Raw:
    """The payload as JSON bytes. A string that is itself a JSON object or array is taken as that."""
    try:
        raw = bytes(value) if isinstance(value, msgspec.Raw) else _ENCODER.encode(value)
    except RecursionError:
        raise _too_deep("/payload") from None
    if raw.startswith(b'"'):
        raw = _unwrapped(raw)
    if len(raw) > longest_bytes:
        got = f"{len(raw):,} bytes"
        raise TooLarge(
            f"the payload has {got}, at most {longest_bytes:,} are allowed",
            [Fault(pointer="/payload", expected=f"at most {longest_bytes:,} bytes of JSON", got=got)],
        )
    if not within_depth(raw):
        raise _too_deep("/payload")
    return msgspec.Raw(raw)


def same_json(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    """Whether two payloads mean the same: 1 and 1.0 do not."""
    if bytes(one) == bytes(other):
        return True
    return _SORTED.encode(_DECODER.decode(one)) == _SORTED.encode(_DECODER.decode(other))


def within_depth(text: bytes, deepest: int = MAX_DEPTH) -> bool:
    """Whether objects and arrays of a JSON text are nested no deeper than this."""
    if text.count(b"[") + text.count(b"{") <= deepest:
        return True
    brackets = _ALL_BUT_BRACKETS.sub(b"", text).translate(_ONE_KIND)
    for _ in range(deepest):  # each round takes the innermost level away
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def json_kind(value: object) -> str:
    """What kind of JSON value this is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "something else"


def _unwrapped(raw: bytes) -> bytes:
    text = _DECODER.decode(raw).strip().encode()
    if not text.startswith((b"{", b"[")):
        return raw
    try:
        _DECODER.decode(text)
    except RecursionError:
        raise _too_deep("/payload") from None
    except msgspec.DecodeError:
        return raw
    return bytes(text)


def _explained(text: bytes, error: msgspec.DecodeError | UnicodeDecodeError) -> Invalid:
    words = str(error)
    if isinstance(error, UnicodeDecodeError):
        return MalformedJson("the body is not UTF-8", [Fault(pointer="", expected="JSON in UTF-8")])
    if isinstance(error, msgspec.ValidationError):
        expected = "numbers that can be represented"
        return Invalid(f"expected {expected}", [Fault(pointer="", expected=expected, got="one out of range")])
    found = _PLACE.search(words)
    place = int(found[1]) if found else len(text)
    start = place - 1 if text[place - 1 : place] == b"-" else place
    if not_finite := _NOT_FINITE.match(text, max(start, 0)):
        got = f"{not_finite[0].decode()} at {_line_and_column(text, place)}"
        return Invalid(
            f"expected finite numbers, got {got}", [Fault(pointer="", expected="finite numbers", got=got)]
        )
    reason = _PLACE.sub("", words).removeprefix("JSON is malformed: ")
    if not found or "surrogate" in reason:
        half = _HALF_A_CHARACTER.match(text)
        reason = (
            f"{half[1].decode()} is half of a character (a surrogate without its pair)"
            if half
            else "the text ends too early"
        )
        place = half.start(1) if half else place
    got = f"{reason} at {_line_and_column(text, place)}"
    return MalformedJson(f"the body is not JSON: {got}", [Fault(pointer="", expected="JSON", got=got)])


def _line_and_column(text: bytes, place: int) -> str:
    before = text[:place]
    line, column = before.count(b"\n") + 1, place - before.rfind(b"\n")
    return f"line {line}, column {column}"


def _too_deep(pointer: str) -> Invalid:
    expected = f"at most {MAX_DEPTH} levels of objects and arrays"
    return Invalid(f"expected {expected}", [Fault(pointer=pointer, expected=expected, got="more")])
