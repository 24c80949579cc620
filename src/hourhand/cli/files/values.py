"""Values that know the line that they were written in, built from the events of a text, with limits.

Owns nesting, names that are given twice, anchors and how much aliases may blow up. Which events a text has is
`yaml_text`'s and `json_text`'s; what the values mean is `documents`'.
"""

from typing import Any

from hourhand.cli.files.faults import FileFault, FileFaults

MAX_DEPTH = 80
MAX_ALIASED = 1_000_000  # values that aliases may stand for in one file


class Merge:
    """What YAML's << is: as a name, the mapping after it is merged into the one around it."""


MERGE = Merge()


class LinedDict(dict[str, Any]):
    """A mapping, the line it begins in, and that of each name."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class LinedList(list[Any]):
    """A list, the line it begins in, and that of each item."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


def line_at(value: Any, pointer: str) -> int | None:
    """The line of what a JSON pointer names, or of the nearest thing around it."""
    line: int | None = getattr(value, "line", None)
    for part in pointer.removeprefix("/").split("/") if pointer else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, LinedDict) and name in value.lines:
            line, value = value.lines[name], value.get(name)
        elif isinstance(value, LinedList) and name.isdigit() and int(name) < len(value):
            line, value = value.lines[int(name)], value[int(name)]
        else:
            break
    return line


class _Open:
    """A mapping or list whose end has not come yet."""

    __slots__ = ("anchor", "began", "key", "merges", "value")

    def __init__(self, value: LinedDict | LinedList, anchor: str | None, began: int) -> None:
        self.value = value
        self.anchor = anchor
        self.began = began  # how many values there were before
        self.key: str | Merge | None = None
        self.merges: list[LinedDict] = []


class Builder:
    """Takes events in order; `documents` are the values that came to their end."""

    def __init__(self, file: str) -> None:
        self.documents: list[tuple[Any, int]] = []
        self.faults: list[FileFault] = []
        self._file = file
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self._aliased = 0

    def begin(self, value: LinedDict | LinedList, anchor: str | None = None) -> None:
        """A mapping or list begins."""
        if len(self._open) >= MAX_DEPTH:
            raise self.wrong(value.line, f"nested deeper than {MAX_DEPTH} levels")
        if self._awaits_name():
            raise self.wrong(value.line, "the name of a field must be a text")
        self._count += 1
        self._open.append(_Open(value, anchor, self._count))

    def end(self) -> None:
        """The innermost one is complete."""
        done = self._open.pop()
        for merged in done.merges:
            assert isinstance(done.value, LinedDict)
            for name, value in merged.items():
                if name not in done.value:
                    done.value[name] = value
                    done.value.lines[name] = merged.lines[name]
        self._keep(done.value, done.value.line, done.anchor, self._count - done.began + 1)

    def scalar(self, value: Any, line: int, anchor: str | None = None) -> None:
        """A text, number, truth value or null; a name where a mapping awaits one."""
        self._count += 1
        if self._awaits_name():
            self._name(value, line)
        else:
            self._keep("<<" if value is MERGE else value, line, anchor, 1)

    def alias(self, name: str, line: int) -> None:
        """What an anchor stands for, once more."""
        if name not in self._anchors:
            raise self.wrong(
                line, f"the alias *{name} stands for nothing above it; quote a text that begins with *"
            )
        value, size = self._anchors[name]
        self._aliased += size
        self._count += size
        if self._aliased > MAX_ALIASED:
            raise self.wrong(line, f"aliases stand for more than {MAX_ALIASED:,} values")
        if self._awaits_name():
            self._name(value, line)
        else:
            self._keep(value, line, None, size)

    def end_document(self) -> None:
        """Anchors hold for one document."""
        self._anchors.clear()

    def wrong(self, line: int, words: str) -> FileFaults:
        """The error that ends the reading of this file."""
        return FileFaults([*self.faults, FileFault(file=self._file, line=line, field="", words=words)])

    def _awaits_name(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, LinedDict) and self._open[-1].key is None

    def _name(self, name: Any, line: int) -> None:
        inner = self._open[-1]
        assert isinstance(inner.value, LinedDict)
        if name is MERGE:
            inner.key = MERGE
            return
        if not isinstance(name, str):
            raise self.wrong(line, f"the name of a field must be a text; quote it: {str(name)[:40]!r}")
        if name in inner.value.lines:
            words = f"is given twice; first in line {inner.value.lines[name]}"
            self.faults.append(FileFault(file=self._file, line=line, field=name, words=words))
        inner.key = name
        inner.value.lines[name] = line

    def _keep(self, value: Any, line: int, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self.documents.append((value, line))
            return
        inner = self._open[-1]
        if isinstance(inner.value, LinedList):
            inner.value.append(value)
            inner.value.lines.append(line)
            return
        if isinstance(inner.key, Merge):
            inner.merges += self._merged(value, line)
        else:
            assert inner.key is not None
            inner.value[inner.key] = value
        inner.key = None

    def _merged(self, value: Any, line: int) -> list[LinedDict]:
        found = value if isinstance(value, LinedList) else [value]
        if not all(isinstance(one, LinedDict) for one in found):
            raise self.wrong(line, "<< takes a mapping or a list of mappings")
        return list(found)
