"""JSON as it comes in: places of errors, depth, payloads."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.errors import Invalid, TooLarge
from hourhand.web.json_text import MAX_DEPTH, payload_of, read_document, read_json, within_depth
from hourhand.web.refusals import MalformedJson

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b'{"a": 1,\n "b": x}', "line 2, column 7"),
        (b"[1, 2", "line 1, column 6"),
        (b'{"a": 1,}', "line 1, column 9"),
        (b'{"a" 1}', "line 1, column 6"),
        (b"\xef\xbb\xbf{}", "line 1, column 1"),
    ],
)
def test_malformed_json_says_where(text: bytes, place: str) -> None:
    with pytest.raises(MalformedJson) as caught:
        read_json(text)
    assert caught.value.status == 400
    assert place in caught.value.message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused_by_name(number: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_json(b'{"payload": {"x": %s}}' % number.encode())
    assert caught.value.status == 422
    assert f"got {number} at line 1" in caught.value.message


@pytest.mark.parametrize(
    "text", [b'{"a": 1e999}', b'{"a":"\xff"}', b"[" * 5_000 + b"]" * 5_000, b'"\\ud800"']
)
def test_other_hopeless_json_is_an_error_of_the_request(text: bytes) -> None:
    with pytest.raises(Invalid) as caught:
        read_json(text)
    assert caught.value.status in (400, 422)


@pytest.mark.parametrize(
    ("depth", "fits"), [(1, True), (MAX_DEPTH, True), (MAX_DEPTH + 1, False), (500, False)]
)
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"]":', b"}]")])
def test_depth_counts_objects_and_lists_alike(opening: bytes, closing: bytes, depth: int, fits: bool) -> None:
    per_level = len([byte for byte in opening if byte in b"[{"])
    levels = depth if per_level == 1 else depth // 2
    text = opening * levels + b"1" + closing * levels
    assert within_depth(text) is (levels * per_level <= MAX_DEPTH)
    if per_level == 1:
        assert within_depth(text) is fits


@given(JSON_VALUES)
def test_depth_agrees_with_a_walk(value: object) -> None:
    deepest = 2
    assert within_depth(msgspec.json.encode(value), deepest) is (_depth(value) <= deepest)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def test_a_text_without_an_end_is_looked_at_once() -> None:
    assert not within_depth(b"[" * (MAX_DEPTH + 1) + b'"' + b'\\"' * 100_000)


def test_brackets_inside_texts_are_not_depth() -> None:
    assert within_depth(msgspec.json.encode(["[" * 1_000, '\\"{', "]" * 3]))


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (b'{"a" : 1}', b'{"a" : 1}'),
        (b'"{}"', b"{}"),
        (b'" [1, 2] "', b"[1, 2]"),
        (b'"{\\"a\\": \\"\xc3\xa4\\"}"', '{"a": "ä"}'.encode()),
        (b'"hello"', b'"hello"'),
        (b'"{not json"', b'"{not json"'),
        (b'"5"', b'"5"'),
        (b'""', b'""'),
        (b"7", b"7"),
        (b"false", b"false"),
    ],
)
def test_payloads_keep_their_bytes_and_texts_of_json_become_json(written: bytes, kept: bytes) -> None:
    document = read_document(b'{"payload": %s, "name": "x"}' % written, "a document")
    assert bytes(payload_of(document["payload"], 1_000)) == kept


def test_of_two_payloads_the_last_counts() -> None:
    document = read_document(b'{"payload": 1, "payload": {"b": 2, "b": 3}}', "a document")
    assert bytes(payload_of(document["payload"], 1_000)) == b'{"b": 2, "b": 3}'


def test_a_payload_over_the_limit_is_too_large() -> None:
    assert bytes(payload_of("x" * 98, 100)) == b'"%s"' % (b"x" * 98)
    with pytest.raises(TooLarge) as caught:
        payload_of("x" * 99, 100)
    assert caught.value.status == 413
    assert caught.value.faults[0].pointer == "/payload"


def test_a_payload_that_is_too_deep_is_refused() -> None:
    with pytest.raises(Invalid, match="64 levels"):
        payload_of(msgspec.Raw(b"[" * 65 + b"]" * 65), 1_000)


@given(JSON_VALUES)
def test_payloads_mean_what_they_meant(value: object) -> None:
    kept = msgspec.json.decode(bytes(payload_of(value, 1_000_000)))
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        return
    assert kept == value


@pytest.mark.parametrize(
    ("text", "half"),
    [
        (rb'{"a": "\ud800"}', r"\ud800"),
        (rb'{"a": "x\uDBFFy"}', r"\uDBFF"),
        (rb'{"a": "\udc00"}', r"\udc00"),
        (rb'{"a": "\ud800\u0041"}', r"\ud800"),
        (rb'{"a": "\ud83d\ude00\\ud800\n\ud83d"}', r"\ud83d"),
    ],
)
def test_half_a_character_is_named(text: bytes, half: str) -> None:
    with pytest.raises(MalformedJson, match=re.escape(f"{half} is half of a character")) as refused:
        read_json(text)
    column = text.rindex(half.encode()) + 1
    assert f"column {column}" in refused.value.message


@pytest.mark.parametrize("text", [b'{"a": "x', rb'{"a": "\\ud800', rb'{"a": "\ud83d\ude00'])
def test_a_text_that_ends_too_early_says_so(text: bytes) -> None:
    with pytest.raises(MalformedJson, match="ends too early"):
        read_json(text)
