"""Where the jobs of a graph stand on a grid of characters: levels from top to bottom, few crossings. Pure.

An edge over several levels passes through places of its own in between. Lines leave a box at one even column; they
arrive at odd ones, or right below where they come from, so that lines of different jobs never share a column.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

GAP = 2  # columns between two boxes
_SWEEPS = 6


@dataclass(slots=True)
class Box:
    """A job's place in its level, or that of a line on its way through it."""

    ident: int
    level: int
    width: int
    is_line: bool = False
    x: int = 0
    parents: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)

    @property
    def centre(self) -> int:
        """The even column in its middle, where lines leave."""
        return self.x + self.width // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Boxes by id, and the order of each level."""

    boxes: Mapping[int, Box]
    rows: Sequence[Sequence[int]]
    width: int


def lay_out(
    widths: Mapping[int, int], parents: Mapping[int, Sequence[int]], levels: Mapping[int, int]
) -> Layout:
    """Places for boxes of these widths; parents must be on levels above."""
    boxes = {ident: Box(ident, levels[ident], width) for ident, width in widths.items()}
    _connect(boxes, parents)
    rows: list[list[int]] = [[] for _ in range(max((box.level for box in boxes.values()), default=-1) + 1)]
    for box in boxes.values():
        rows[box.level].append(box.ident)
        if not box.is_line:
            box.width = max(box.width, 2 * len(box.parents) + 3) | 1  # odd, so that there is a middle
    for _ in range(_SWEEPS):
        _order(rows, boxes)
    for row in rows:
        _place(row, boxes, dict.fromkeys(row, 0.0))
    for _ in range(_SWEEPS):
        _align(rows, boxes)
    left = min((box.x for box in boxes.values()), default=0)
    for box in boxes.values():
        box.x -= left - left % 2
    width = max((box.x + box.width for box in boxes.values()), default=0)
    return Layout(boxes=boxes, rows=rows, width=width)


def _connect(boxes: dict[int, Box], parents: Mapping[int, Sequence[int]]) -> None:
    """Let each box know its neighbours, with places for lines on the levels in between."""
    lines = -1
    passing: dict[tuple[int, int], int] = {}  # the line of a parent on a level, shared by all it goes to
    for ident in list(boxes):
        for parent in parents[ident]:
            above = parent
            for level in range(boxes[parent].level + 1, boxes[ident].level):
                line = passing.get((parent, level))
                if line is None:
                    line = passing[parent, level] = lines
                    boxes[line] = Box(line, level, 3, is_line=True)
                    lines -= 1
                    _join(boxes, above, line)
                above = line
            _join(boxes, above, ident)


def _join(boxes: Mapping[int, Box], parent: int, child: int) -> None:
    boxes[parent].children.append(child)
    boxes[child].parents.append(parent)


def _order(rows: Sequence[list[int]], boxes: Mapping[int, Box]) -> None:
    """Sort each level by where its neighbours stand, down and up again."""
    for row, before, side in _passes(rows):
        places = {ident: (place + 0.5) / len(before) for place, ident in enumerate(before)}
        keys = {
            ident: _mean([places[one] for one in getattr(boxes[ident], side)], (place + 0.5) / len(row))
            for place, ident in enumerate(row)
        }
        row.sort(key=lambda ident: keys[ident])


def _align(rows: Sequence[list[int]], boxes: Mapping[int, Box]) -> None:
    """Move boxes towards the middle of their neighbours, as far as there is room."""
    for row, _, side in _passes(rows):
        wanted = {}
        for ident in row:
            box = boxes[ident]
            near = [boxes[one] for one in getattr(box, side)]
            jobs = [one for one in near if not one.is_line]  # lines give way, or all would drift with them
            beside = [float(one.centre) for one in jobs or near]
            wanted[ident] = _mean(beside, float(box.centre)) - box.width // 2
        _place(row, boxes, wanted)


def _place(row: Sequence[int], boxes: Mapping[int, Box], wanted: Mapping[int, float]) -> None:
    """Put boxes where they are wanted; those that are in each other's way share the way that is between them."""
    to_right: list[float] = []
    for ident in row:
        least = to_right[-1] + _step(boxes[row[len(to_right) - 1]]) if to_right else wanted[ident]
        to_right.append(max(wanted[ident], least))
    to_left: list[float] = []
    for ident in reversed(row):
        most = to_left[-1] - _step(boxes[ident]) if to_left else wanted[ident]
        to_left.append(min(wanted[ident], most))
    for ident, right, left in zip(row, to_right, reversed(to_left), strict=True):
        x = int((right + left) // 2)
        boxes[ident].x = x - (x + boxes[ident].width // 2) % 2  # the gap has room for it


def _passes(rows: Sequence[list[int]]) -> Iterator[tuple[list[int], list[int], str]]:
    """Each level with the one that it is held against: down from the top, then up from the bottom."""
    for index in range(1, len(rows)):
        yield rows[index], rows[index - 1], "parents"
    for index in range(len(rows) - 2, -1, -1):
        yield rows[index], rows[index + 1], "children"


def _step(box: Box) -> int:
    return box.width + GAP


def _mean(values: Iterable[float], otherwise: float) -> float:
    found = list(values)
    return sum(found) / len(found) if found else otherwise
