"""A graph as lines of text: boxes with lines between them where they fit, else level by level in words. Pure.

Parents with the same children share one line between them and those; a line that crosses another runs over it.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hourhand.cli.graphs.layout import Box, Layout, lay_out
from hourhand.cli.text import clean

LABEL_WIDTHS = (40, 24, 16, 10)  # tried in turn, until the drawing fits
MOST_DRAWN = 300  # above it, boxes tell nobody anything

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
_ASCII_LINES = " |||-+++-+++-+++"
_SIGNS = {
    "SUCCEEDED": "✓+",
    "FAILED": "✗x",
    "RETRYING": "↻~",
    "RUNNING": "▶>",
    "PENDING": "○o",
    "SKIPPED": "–-",
    "CANCELLED": "⊘/",
}

Cell = tuple[str, str | None]  # a character, and the status that colours it


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A job to be drawn."""

    ident: int
    label: str
    parents: tuple[int, ...]
    level: int
    status: str | None = None


def draw(jobs: Sequence[Drawn], *, width: int, ascii_only: bool = False) -> list[list[Cell]]:
    """Rows of cells, at most so wide where there are boxes."""
    if len(jobs) <= MOST_DRAWN:
        for longest in LABEL_WIDTHS:
            labels = {job.ident: _label(job, longest, ascii_only) for job in jobs}
            widths = {ident: _columns(label) + 4 for ident, label in labels.items()}
            if not _may_fit(jobs, widths, width):
                continue
            layout = lay_out(
                widths,
                {job.ident: job.parents for job in jobs},
                {job.ident: job.level for job in jobs},
            )
            if layout.width <= width:
                statuses = {job.ident: job.status for job in jobs}
                return _Canvas(layout, labels, statuses, ascii_only).rows()
    return _listed(jobs, ascii_only)


def _may_fit(jobs: Sequence[Drawn], widths: Mapping[int, int], width: int) -> bool:
    """Whether the jobs of each level fit beside each other, whatever is between them."""
    taken: dict[int, int] = {}
    for job in jobs:
        taken[job.level] = taken.get(job.level, 0) + widths[job.ident]
    return max(taken.values(), default=0) <= width


def sign_of(status: str | None, ascii_only: bool) -> str:
    """The sign of a run's status."""
    return _SIGNS.get(status or "", "  ")[1 if ascii_only else 0].strip()


def _label(job: Drawn, longest: int, ascii_only: bool) -> str:
    text = _fitting(clean(job.label), longest, "~" if ascii_only else "…")
    if ascii_only:
        text = text.encode("ascii", "replace").decode()
    sign = sign_of(job.status, ascii_only)
    return f"{sign} {text}" if sign else text


def _fitting(text: str, longest: int, end: str) -> str:
    if _columns(text) <= longest:
        return text
    while _columns(text) >= longest:
        text = text[:-1]
    return text + end


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(_columns_of(one) for one in text)


def _columns_of(one: str) -> int:
    if unicodedata.combining(one) or unicodedata.category(one) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def _listed(jobs: Sequence[Drawn], ascii_only: bool) -> list[list[Cell]]:
    """Too much for a picture: each level with its jobs, and whom they follow."""
    names = {job.ident: _label(_without_status(job), LABEL_WIDTHS[0], ascii_only) for job in jobs}
    rows: list[list[Cell]] = []
    level = -1
    for job in sorted(jobs, key=lambda job: job.level):
        if job.level != level:
            level = job.level
            rows.append([(one, None) for one in f"level {level}"])
        after = f"  after {', '.join(names[one] for one in job.parents)}" if job.parents else ""
        sign = sign_of(job.status, ascii_only) or " "
        rows.append(
            [
                *((one, job.status) for one in f"  {sign} {names[job.ident]}"),
                *((one, None) for one in after),
            ]
        )
    return rows


def _without_status(job: Drawn) -> Drawn:
    return Drawn(ident=job.ident, label=job.label, parents=job.parents, level=job.level)


@dataclass(slots=True)
class _Net:
    """A line between parents and the children that all of them have in common."""

    tops: list[int]
    bottoms: list[int]
    track: int = 0

    @property
    def span(self) -> tuple[int, int]:
        ends = self.tops + self.bottoms
        return min(ends), max(ends)


class _Canvas:
    """Puts boxes and lines on a grid."""

    def __init__(
        self,
        layout: Layout,
        labels: Mapping[int, str],
        statuses: Mapping[int, str | None],
        ascii_only: bool,
    ) -> None:
        self._layout = layout
        self._labels = labels
        self._statuses = statuses
        self._ascii = ascii_only
        self._rows: list[list[Cell]] = []

    def rows(self) -> list[list[Cell]]:
        """All of it, without the space around it."""
        arriving: dict[int, list[int]] = {}
        for level, row in enumerate(self._layout.rows):
            self._draw_boxes([self._layout.boxes[ident] for ident in row], arriving)
            if level + 1 < len(self._layout.rows):
                nets, arriving = self._nets(level)
                self._draw_nets(nets)
        margin = min(next(x for x, cell in enumerate(cells) if cell[0] != " ") for cells in self._rows)
        for cells in self._rows:
            del cells[:margin]
            while cells[-1][0] == " ":
                cells.pop()
        return self._rows

    def _blank(self, count: int) -> list[list[Cell]]:
        added: list[list[Cell]] = [[(" ", None)] * self._layout.width for _ in range(count)]
        self._rows += added
        return added

    def _draw_boxes(self, boxes: Sequence[Box], arriving: Mapping[int, Sequence[int]]) -> None:
        rows = self._blank(3)
        for box in boxes:
            ports = arriving.get(box.ident, ())
            if box.is_line:
                self._draw_line_through(rows, ports[0], box.centre)
            else:
                self._draw_box(rows, box, ports)

    def _draw_box(self, rows: list[list[Cell]], box: Box, ports: Sequence[int]) -> None:
        left, right = box.x, box.x + box.width - 1
        for row, (first, last) in (
            (rows[0], (_DOWN | _RIGHT, _DOWN | _LEFT)),
            (rows[2], (_UP | _RIGHT, _UP | _LEFT)),
        ):
            for x in range(left + 1, right):
                row[x] = (self._line(_LEFT | _RIGHT), None)
            row[left], row[right] = (self._line(first), None), (self._line(last), None)
        for x in ports:
            rows[0][x] = ("v" if self._ascii else "▼", None)
        if box.children:
            rows[2][box.centre] = (self._line(_LEFT | _RIGHT | _DOWN), None)
        rows[1][left] = rows[1][right] = (self._line(_UP | _DOWN), None)
        label = self._labels[box.ident]
        x = left + (box.width - _columns(label)) // 2
        for one in label:
            columns = _columns_of(one)
            if columns == 0:
                rows[1][x - 1] = (rows[1][x - 1][0] + one, rows[1][x - 1][1])
                continue
            rows[1][x] = (one, self._statuses[box.ident])
            if columns == 2:
                rows[1][x + 1] = ("", None)
            x += columns

    def _draw_line_through(self, rows: list[list[Cell]], top: int, bottom: int) -> None:
        rows[0][top] = rows[2][bottom] = (self._line(_UP | _DOWN), None)
        low, high = min(top, bottom), max(top, bottom)
        for x in range(low, high + 1):
            ways = (_UP if x == top else 0) | (_DOWN if x == bottom else 0)
            ways |= (_LEFT if x > low else 0) | (_RIGHT if x < high else 0)
            rows[1][x] = (self._line(ways), None)

    def _nets(self, level: int) -> tuple[list[_Net], dict[int, list[int]]]:
        """The lines below a level, and the columns in which each box of the next is reached."""
        boxes = self._layout.boxes
        groups: dict[tuple[int, ...], list[int]] = {}
        for ident in self._layout.rows[level]:
            if boxes[ident].children:
                groups.setdefault(tuple(sorted(boxes[ident].children)), []).append(ident)
        nets = {
            children: _Net([boxes[one].centre for one in group], []) for children, group in groups.items()
        }
        arriving: dict[int, list[int]] = {}
        for ident in self._layout.rows[level + 1]:
            own = [net for children, net in nets.items() if ident in children]
            own.sort(key=lambda net: sum(net.tops) / len(net.tops))
            arriving[ident] = _ports(boxes[ident], own)
            for net, column in zip(own, arriving[ident], strict=True):
                net.bottoms.append(column)
        return list(nets.values()), arriving

    def _draw_nets(self, nets: Sequence[_Net]) -> None:
        """Each on the first track where it meets no other; those that go straight down need none."""
        bent = sorted((net for net in nets if net.span[0] < net.span[1]), key=lambda net: net.span)
        ends: list[int] = []
        for net in bent:
            net.track = next((track for track, end in enumerate(ends) if end < net.span[0]), len(ends))
            ends[net.track : net.track + 1] = [net.span[1]]
        rows = self._blank(max(len(ends), 1))
        for net in bent:
            for x in range(net.span[0], net.span[1] + 1):
                ways = (_LEFT if x > net.span[0] else 0) | (_RIGHT if x < net.span[1] else 0)
                ways |= (_UP if x in net.tops else 0) | (_DOWN if x in net.bottoms else 0)
                rows[net.track][x] = (self._line(ways), None)
        straight = (self._line(_UP | _DOWN), None)
        for net in nets:
            is_bent = net.span[0] < net.span[1]
            for x in net.tops:
                for row in rows[: net.track if is_bent else len(rows)]:
                    row[x] = straight
            for x in net.bottoms if is_bent else ():
                for row in rows[net.track + 1 :]:
                    row[x] = straight

    def _line(self, ways: int) -> str:
        return (_ASCII_LINES if self._ascii else _LINES)[ways]


def _ports(box: Box, nets: Sequence[_Net]) -> list[int]:
    """Where lines reach a box, from left to right: right below their beginning where that is free, else odd columns."""
    if len(nets) == 1:
        tops = nets[0].tops
        if box.centre in tops:
            return [box.centre]
        if len(tops) == 1 and box.x < tops[0] < box.x + box.width - 1:
            return tops[:]
    first = box.x + box.width // 2 - len(nets) + 1
    first += 1 - first % 2
    while first + 2 * (len(nets) - 1) >= box.x + box.width - (0 if box.is_line else 1):
        first -= 2
    return [first + 2 * place for place in range(len(nets))]
