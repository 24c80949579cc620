"""Which headers a job may set: the reserved ones, smuggling, sizes; no fault shows a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.headers import MAX_HEADER_BYTES, MAX_HEADERS, header_faults


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer x", "X-Trace": "a\tb", "Content-Type": "text/plain"},
        {"X-Colour": "grün"},
    ],
)
def test_ordinary_headers_pass(headers: dict[str, str]) -> None:
    assert header_faults(headers) == []


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "HOST",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Idempotency-Key",
        "webhook-id",
        "Webhook-Signature",
        "webhook-anything",
        "Hourhand-Job",
        "hourhand-future",
        "Expect",
        "Upgrade",
    ],
)
def test_ours_are_refused(name: str) -> None:
    (fault,) = header_faults({name: "x"})
    assert fault.pointer == f"/target/headers/{name}"
    assert fault.got == name


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "a\x00", "ü", "a" * 200, "(a)"])
def test_names_are_tokens(name: str) -> None:
    (fault,) = header_faults({name: "x"})
    assert "header name" in fault.expected


@pytest.mark.parametrize("character", ["\r", "\n", "\x00", "\x0b", "\x1f", "\x7f", "\ud800"])
@pytest.mark.parametrize("pattern", ["{}", "a{}b", "a{}"])
def test_values_carry_no_control_characters(character: str, pattern: str) -> None:
    secret = "canary"
    (fault,) = header_faults({"X-A": pattern.format(character) + secret})
    assert fault.pointer == "/target/headers/X-A"
    assert secret not in repr(fault)


def test_the_same_name_in_other_case_is_a_second_one() -> None:
    (fault,) = header_faults({"X-A": "1", "x-a": "2"})
    assert fault.got == "x-a"


def test_sizes_are_bounded() -> None:
    assert header_faults({f"X-{i}": "" for i in range(MAX_HEADERS)}) == []
    assert len(header_faults({f"X-{i}": "" for i in range(MAX_HEADERS + 1)})) == 1
    assert header_faults({"X-A": "v" * (MAX_HEADER_BYTES - 3)}) == []
    assert len(header_faults({"X-A": "v" * (MAX_HEADER_BYTES - 2)})) == 1


def test_a_pointer_is_escaped() -> None:
    (fault,) = header_faults({"a/b~c": "x"})
    assert fault.pointer == "/target/headers/a~1b~0c"


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=4))
def test_what_passes_cannot_break_out_of_its_line(headers: dict[str, str]) -> None:
    if header_faults(headers) == []:
        for name, value in headers.items():
            assert name.isascii()
            assert not set(name) & set("\r\n\0: \t")
            assert not set(value) & set("\r\n\0")
