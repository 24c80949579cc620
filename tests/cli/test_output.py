"""Tables and text for terminals."""

import io

import pytest

from hourhand.cli.output import Column, Form, Output
from hourhand.cli.text import clean, shortened

COLUMNS = (
    Column(head="NAME", cell=lambda row: row["name"], width=10),
    Column(head="STATE", cell=lambda row: row["state"]),
)
ROWS = [{"name": "short", "state": "active"}, {"name": "x" * 50, "state": None}]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(stream: io.StringIO) -> str:
    Output(Form.PEOPLE, stream, io.StringIO()).table(COLUMNS, ROWS)
    return stream.getvalue()


def test_off_a_terminal_a_table_is_plain_and_long_names_are_cut() -> None:
    assert drawn(io.StringIO()).splitlines() == [
        "NAME        STATE",
        "short       active",
        "xxxxxxxxx…  –",
    ]


@pytest.mark.parametrize("form", list(Form))
def test_a_page_without_some_databases_says_so_beside_the_data(form: Form) -> None:
    said = []
    for page in ({"data": ROWS}, {"data": ROWS, "partial": ["shard 1", "shard 3"]}):
        out, err = io.StringIO(), io.StringIO()
        Output(form, out, err).page(page, ident="name", empty="none", columns=COLUMNS)
        said.append((out.getvalue(), err.getvalue()))
    (whole, nothing), (partial, warning) = said
    assert nothing == ""
    if form is Form.JSON:
        assert '"partial"' in partial
        assert warning == ""
    else:
        assert partial == whole
        assert warning == "partial: shard 1, shard 3 did not answer\n"


def test_colour_needs_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in drawn(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in drawn(Terminal())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain – ü 漢", "plain – ü 漢"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[2J\x07\x9b", "\\x1b[2J\\x07\\x9b"),
        ("abc\u202edef\u200b", "abc\\u202edef\\u200b"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_would_act_on_is_shown_instead(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_cut_text_keeps_to_its_width() -> None:
    assert [shortened("abcdef", width) for width in (6, 5)] == ["abcdef", "abcd…"]
