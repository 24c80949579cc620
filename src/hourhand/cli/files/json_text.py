"""JSON as events for `values`: the text is checked as a whole first, then walked for its lines."""

import re

import msgspec

from hourhand.cli.files.values import Builder, LinedDict, LinedList

_TOKEN = re.compile(r'\s+|[,:]|([{\[])|([}\]])|("(?:[^"\\]|\\.)*"|[^\s,:{}\[\]"]+)')
_BYTE = re.compile(r" \(byte (\d+)\)$")


def read_json(text: str, builder: Builder) -> None:
    """Give all events of a text to a builder; FileFaults where it is not JSON."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        found = _BYTE.search(str(error))
        before = (
            text.encode("utf-8", "replace")[: int(found[1])] if found else text.encode("utf-8", "replace")
        )
        words = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
        raise builder.wrong(before.count(b"\n") + 1, f"not JSON: {words}") from None
    line = 1
    for token in _TOKEN.finditer(text):
        opening, closing, scalar = token.groups()
        if scalar is not None:
            builder.scalar(msgspec.json.decode(scalar), line)
        elif opening is not None:
            builder.begin(LinedDict(line) if opening == "{" else LinedList(line))
        elif closing is not None:
            builder.end()
        else:
            line += token[0].count("\n")
    builder.end_document()
