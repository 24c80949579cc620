"""Where jobs are read from: files, folders, stdin, and modules with decorated functions. Bounded in size."""

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hourhand.cli.failures import Usage
from hourhand.cli.files.faults import FileFault, FileFaults
from hourhand.cli.files.json_text import read_json
from hourhand.cli.files.values import Builder
from hourhand.cli.files.yaml_text import read_yaml

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_FILES = 10_000
ENDINGS = (".yaml", ".yml", ".json")
STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One text: a file, stdin, or the document of a function, with the line it stands in."""

    name: str
    path: Path | None = None
    text: str | None = None
    line: int | None = None
    set_name: str | None = None


def files(named: Sequence[str]) -> list[Source]:
    """Files as they are named; a folder is all files in it that end in .yaml, .yml or .json, by name."""
    found: list[Source] = []
    for name in named:
        path = Path(name)
        if name == STDIN:
            found.append(Source(name="stdin"))
        elif path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.suffix in ENDINGS and one.is_file())
            if not inside:
                raise Usage(f"{name}: no file in this folder ends in {', '.join(ENDINGS)}")
            found += [Source(name=str(one), path=one) for one in inside]
        else:
            found.append(Source(name=name, path=path))
        if len(found) > MAX_FILES:
            raise Usage(f"more than {MAX_FILES:,} files; apply them in parts")
    return found


def modules(named: Sequence[str]) -> list[Source]:
    """The declared jobs of modules; each module, with what lies below it, is a set of its own."""
    if not named:
        return []
    from hourhand.functions.modules import load_modules

    registry = load_modules(named, given_by="")
    found = []
    for module in named:
        for name, registered in sorted(registry.items()):
            document = registered.document()
            owner = name.partition(":")[0]
            if document is None or not f"{owner}.".startswith(f"{module}."):
                continue
            function = inspect.unwrap(registered.function)
            text = msgspec.json.encode([document]).decode()
            file = inspect.getsourcefile(function) or owner
            line = function.__code__.co_firstlineno
            found.append(Source(name=_short(file), text=text, line=line, set_name=module))
        if not any(source.set_name == module for source in found):
            raise Usage(f"{module} declares no job: decorate a function with a schedule, @hh.job(cron=…)")
    return found


def split(named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Arguments that are files, and those that are modules."""
    is_module = [
        name != STDIN and not Path(name).exists() and all(part.isidentifier() for part in name.split("."))
        and not name.endswith(ENDINGS)
        for name in named
    ]  # fmt: skip
    files_named = [name for name, module in zip(named, is_module, strict=True) if not module]
    return files_named, [name for name, module in zip(named, is_module, strict=True) if module]


def texts(source: Source, faults: list[FileFault]) -> Iterator[tuple[Any, int]]:
    """The documents of a source with the line each begins in; faults that do not end its reading are added."""
    builder = Builder(source.name)
    text = source.text if source.text is not None else _read(source)
    if source.text is not None or source.name.endswith(".json") or text.lstrip()[:1] in ("{", "["):
        _read_braced(text, builder, strict=source.name.endswith(".json"))
    else:
        read_yaml(text, builder)
    faults += builder.faults
    yield from builder.documents


def _read_braced(text: str, builder: Builder, *, strict: bool) -> None:
    """JSON; or YAML that merely begins as JSON does."""
    if not strict:
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            read_yaml(text, builder)
            return
    read_json(text, builder)


def _read(source: Source) -> str:
    try:
        if source.path is None:
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with source.path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(source, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise _unreadable(source, f"is larger than {MAX_FILE_BYTES:,} bytes; split it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileFaults([FileFault(file=source.name, line=line, field="", words="is not UTF-8")]) from None


def _unreadable(source: Source, words: str) -> FileFaults:
    return FileFaults([FileFault(file=source.name, line=None, field="", words=words)])


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
