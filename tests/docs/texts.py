"""Takes documents apart: their fenced blocks, commands, links and headings."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.docs import ROOT, documents

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_IMAGE = re.compile(r'<img[^>]+src="([^"]+)"')
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_INSIDE = re.compile(r"\$\([^)]*\)")  # a command whose answer is an argument of another
_ENDS_A_COMMAND = ("|", "&&", "&", ";", ">", "2>", "#")


class Block(NamedTuple):
    """A fenced block of a document."""

    document: Path
    language: str
    text: str


class Command(NamedTuple):
    """A call of `hourhand` in a document."""

    document: Path
    arguments: tuple[str, ...]
    whole: bool  # else only named, perhaps without what it needs


def name_of(path: Path) -> str:
    """A document's name in messages."""
    return path.relative_to(ROOT).as_posix()


def blocks(*languages: str) -> list[Block]:
    """The fenced blocks of all documents in these languages."""
    return [
        Block(document, language, text)
        for document in documents()
        for language, text in _FENCE.findall(document.read_text("utf-8"))
        if language in languages
    ]


def commands() -> list[Command]:
    """Every `hourhand …` in a shell block, and every one that running text names."""
    found = [
        Command(block.document, arguments, whole=True)
        for block in blocks("sh", "console")
        for line in _lines(block)
        if (arguments := _arguments(line)) is not None
    ]
    for document in documents():
        prose = _FENCE.sub("", document.read_text("utf-8"))
        found += [
            Command(document, arguments, whole=False)
            for text in _INLINE.findall(prose)
            if text.startswith("hourhand ") and (arguments := _arguments(text)) is not None
        ]
    return found


def links(document: Path) -> list[str]:
    """Where a document points to."""
    prose = _FENCE.sub("", document.read_text("utf-8"))
    return [*_LINK.findall(prose), *_IMAGE.findall(prose)]


def inline_code(document: Path) -> list[str]:
    """What stands between backticks in running text."""
    return _INLINE.findall(_FENCE.sub("", document.read_text("utf-8")))


def anchors(document: Path) -> set[str]:
    """The places in a document that a link may name."""
    headings = _HEADING.findall(_FENCE.sub("", document.read_text("utf-8")))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _lines(block: Block) -> Iterator[str]:
    """What is typed: all lines of a script, those after the prompt in a session."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "sh":
            yield line
        elif line.startswith("$ "):
            yield line[2:]


def _arguments(line: str) -> tuple[str, ...] | None:
    """The arguments of the call of `hourhand` in a line; None where there is none."""
    words = shlex.split(_INSIDE.sub("ANSWER", line))
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    if not words or words[0] != "hourhand":
        return None
    end = next((place for place, word in enumerate(words) if _ends_a_command(word)), len(words))
    return tuple(words[1:end])


def _ends_a_command(word: str) -> bool:
    return word in _ENDS_A_COMMAND or word.startswith((">", "2>"))
