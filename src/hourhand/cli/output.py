"""How answers are printed: for people, as JSON, as JSON lines, or as ids only.

Data to stdout, words about it to stderr. Off a terminal there is no colour and nothing is cut to its width.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TextIO

import msgspec

from hourhand.cli.text import clean, shortened

CELL_WIDTH = 48
FACT_WIDTH = 11
_OFF_TERMINAL_WIDTH = 1_000
_STYLES = {
    "SUCCEEDED": "green",
    "FAILED": "red",
    "RETRYING": "yellow",
    "RUNNING": "cyan",
    "SKIPPED": "dim",
    "CANCELLED": "dim",
    "active": "green",
    "paused": "yellow",
}


class Form(Enum):
    """In which form answers are printed."""

    PEOPLE = "people"
    JSON = "json"
    LINES = "lines"
    IDS = "ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: its head, and the cell of a document."""

    head: str
    cell: Callable[[Mapping[str, Any]], object]
    width: int = CELL_WIDTH


class Output:
    """Prints answers in one form."""

    def __init__(self, form: Form, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.form = form
        self._stdout = sys.stdout if stdout is None else stdout
        self._stderr = sys.stderr if stderr is None else stderr

    def document(self, document: Any, ident: str | None, show: Callable[[], None]) -> None:
        """One answer; `show` prints it for people."""
        match self.form:
            case Form.JSON:
                self.line(_pretty(document))
            case Form.LINES:
                self.line(_compact(document))
            case Form.IDS:
                if ident is not None:
                    self.line(ident)
            case Form.PEOPLE:
                show()

    def page(
        self,
        page: Mapping[str, Any],
        *,
        ident: str,
        empty: str,
        columns: Sequence[Column] = (),
        show: Callable[[], None] | None = None,
    ) -> None:
        """A page of a list, for people by `show` or as a table; `empty` says what to do when there is nothing."""
        rows: list[Mapping[str, Any]] = page["data"]
        match self.form:
            case Form.JSON:
                self.line(_pretty(page))
            case Form.LINES:
                for row in rows:
                    self.line(_compact(row))
            case Form.IDS:
                for row in rows:
                    self.line(str(row[ident]))
            case Form.PEOPLE:
                if not rows:
                    self.note(empty)
                elif show is not None:
                    show()
                else:
                    self.table(columns, rows)
        if page.get("partial") and self.form is not Form.JSON:  # there it stands in the document
            print(clean(f"partial: {', '.join(page['partial'])} did not answer"), file=self._stderr)
        if page.get("next_cursor") and self.form is not Form.JSON:
            print(f"there are more; go on with --cursor {page['next_cursor']}", file=self._stderr)

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows under their heads; nothing where there are none."""
        if not rows:
            return
        from rich.console import Console  # here, since it costs a tenth of a second
        from rich.table import Table
        from rich.text import Text

        colour = wants_colour(self._stdout)
        terminal = self._stdout.isatty()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column in columns:
            table.add_column(column.head, no_wrap=True, overflow="ellipsis", max_width=column.width)
        for row in rows:
            cells = [_cell(column.cell(row), column.width) for column in columns]
            table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
        console = Console(
            file=self._stdout,
            width=None if terminal else _OFF_TERMINAL_WIDTH,
            force_terminal=colour,
            no_color=not colour,
            color_system="standard" if colour else None,
            highlight=False,
        )
        with console.capture() as captured:
            console.print(table)
        self.line("\n".join(line.rstrip() for line in captured.get().splitlines()))

    def facts(self, facts: Iterable[tuple[str, object]]) -> None:
        """Names and values in two columns; those without a value are left out."""
        for name, value in facts:
            if value not in (None, "", [], {}):
                self.line(f"{name:<{FACT_WIDTH}}  {_cell(value, 10_000)}")

    def line(self, text: str = "") -> None:
        """A line of data."""
        print(text, file=self._stdout)

    def text(self, text: str) -> None:
        """Data that brings its own line ends, at once."""
        self._stdout.write(text)
        self._stdout.flush()

    def note(self, text: str) -> None:
        """A line about it, for people."""
        if self.form is Form.PEOPLE:
            print(text, file=self._stderr)

    def problem(self, problem: Mapping[str, Any]) -> None:
        """An error as a document."""
        print(_pretty(problem), file=self._stderr)


def wants_colour(stream: TextIO) -> bool:
    """Only on a terminal, and not where NO_COLOR says otherwise."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _cell(value: object, width: int) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict | list):
        value = _compact(value)
    return shortened(clean(str(value)), width)


def _pretty(document: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _compact(document: Any) -> str:
    return msgspec.json.encode(document).decode()
