"""Texts as values with their lines: what YAML and JSON mean here, and what is refused where."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.cli.files import values
from hourhand.cli.files.faults import FileFaults
from hourhand.cli.files.json_text import read_json
from hourhand.cli.files.values import Builder, line_at
from hourhand.cli.files.yaml_text import read_yaml, yaml_block

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=4)
    ),
    max_leaves=12,
)


def of_yaml(text: str) -> list[Any]:
    builder = Builder("f")
    read_yaml(text, builder)
    if builder.faults:
        raise FileFaults(builder.faults)
    return [value for value, _ in builder.documents]


def of_json(text: str) -> Any:
    builder = Builder("f")
    read_json(text, builder)
    if builder.faults:
        raise FileFaults(builder.faults)
    return builder.documents[0][0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("''", ""),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30:00", "12:30:00"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("2026-11-16", "2026-11-16"),
        ("2026-11-16T08:00:00Z", "2026-11-16T08:00:00Z"),
        ("0 9 * * *", "0 9 * * *"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("5m", "5m"),
        ("9" * 500, "9" * 500),
        ("{a: [1, {b: c}]}", {"a": [1, {"b": "c"}]}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("- &x {b: 1, d: 4}\n- {<<: *x, b: 2}", [{"b": 1, "d": 4}, {"b": 2, "d": 4}]),
        ("- &x {b: 1}\n- &y {b: 3, c: 5}\n- {<<: [*x, *y]}", [{"b": 1}, {"b": 3, "c": 5}, {"b": 1, "c": 5}]),
        ('"<<": 1', {"<<": 1}),
        ("- <<", ["<<"]),
    ],
)
def test_plain_words(text: str, value: Any) -> None:
    found = of_yaml(text)[0]
    assert (found, type(found) is type(value) or isinstance(found, type(value))) == (value, True)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "a: is given twice; first in line 1"),
        ("a:\n  b: 1\n  b: 2", 3, "b: is given twice"),
        ("a: *x", 1, "stands for nothing"),
        ("cron: * * * * *", 1, "quote a text that begins with *"),
        ("a: 1\nb: !!python/object/apply:os.system [x]", 2, "tags are not taken"),
        ("a: !thing 1", 1, "tags are not taken"),
        ("a: .inf", 1, "no number that JSON has"),
        ("a: 1e999", 1, "out of range"),
        ("x: 1\n1: a", 2, "must be a text"),
        ("? [a]\n: 1", 1, "must be a text"),
        ("a: [1, 2", 1, "not YAML"),
        ("a: b: c", 1, "not YAML"),
        ("a:\n\t- 1", 2, "not YAML"),
        ("&a [*a]", 1, "stands for nothing"),
        ("a: &x 1\n---\nb: *x", 3, "stands for nothing"),
        ("[" * 100 + "]" * 100, 1, "nested deeper"),
        ("a: &x 1\n<<: *x", 2, "takes a mapping"),
    ],
)
def test_what_is_refused(text: str, line: int, words: str) -> None:
    with pytest.raises(FileFaults) as caught:
        of_yaml(text)
    assert [fault.line for fault in caught.value.found] == [line]
    assert words in str(caught.value.found[0])


def test_aliases_cannot_blow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(FileFaults, match="aliases stand for more than"):
        of_yaml("\n".join(lines))
    monkeypatch.setattr(values, "MAX_ALIASED", 4)
    assert of_yaml("a: &x [1]\nb: [*x, *x]")[0]["b"] == [[1], [1]]
    with pytest.raises(FileFaults):
        of_yaml("a: &x [1]\nb: [*x, *x, *x]")


def test_several_documents() -> None:
    assert of_yaml("a: 1\n---\n- 2\n---\n") == [{"a": 1}, [2], None]


TEXT = """
set: x
jobs:
  - key: a
    retry:
      max: 1
    tags: [p,
           q]
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("", 2),
        ("/set", 2),
        ("/jobs", 3),
        ("/jobs/0", 4),
        ("/jobs/0/retry/max", 6),
        ("/jobs/0/tags/1", 8),
        ("/jobs/0/retry/zzz", 5),
        ("/jobs/0/zzz/y", 4),
        ("/jobs/9", 3),
    ],
)
def test_lines(pointer: str, line: int) -> None:
    assert line_at(of_yaml(TEXT)[0], pointer) == line


def test_lines_of_json() -> None:
    value = of_json('{"jobs": [\n {"key": "a, [{",\n "retry": {\n "max": 1}}]}')
    assert value == {"jobs": [{"key": "a, [{", "retry": {"max": 1}}]}
    assert [line_at(value, p) for p in ("", "/jobs/0", "/jobs/0/retry", "/jobs/0/retry/max")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"a": 1,\n"a": 2}', 2, "a: is given twice"),
        ('{"a":\n}', 2, "not JSON"),
        ("[1,\n2", 2, "not JSON"),
        ("", 1, "not JSON"),
        ("[NaN]", 1, "not JSON"),
        ("[" * 100 + "]" * 100, 1, "nested deeper"),
    ],
)
def test_what_is_refused_of_json(text: str, line: int, words: str) -> None:
    with pytest.raises(FileFaults) as caught:
        of_json(text)
    assert (caught.value.found[0].line, words in str(caught.value.found[0])) == (line, True)


@given(PLAIN)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    found = of_yaml("".join(yaml_block([value])))[0][0]
    assert repr(found) == repr(value)  # 1 is not 1.0, and the order of names stays


@given(PLAIN)
def test_json_reads_as_itself(value: Any) -> None:
    import json

    assert repr(of_json(json.dumps([value], indent=1))) == repr([value])
    assert repr(of_json(json.dumps([value], ensure_ascii=False))) == repr([value])
