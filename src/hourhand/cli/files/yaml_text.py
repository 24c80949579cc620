"""YAML as events for `values`, and values as YAML.

Plain words are read as YAML 1.2 has them: `yes` and `on` are texts, so are times and dates, and 010 is ten. Tags
are refused. What is written quotes whatever either version of YAML could take for something else.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from hourhand.cli.files.values import MERGE, Builder, LinedDict, LinedList

_READER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WRITER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = (None, "!", f"{_CORE}str")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTH = {
    word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 400
_BLOCK = re.compile(
    r"[!-~](?:[ -~]*[!-~])?(?:\n+[!-~](?:[ -~]*[!-~])?)+\n?"
)  # lines that are plainest as such


def read_yaml(text: str, builder: Builder) -> None:
    """Give all events of a text to a builder; FileFaults where it is not YAML."""
    try:
        for event in yaml.parse(text, Loader=_READER):
            _take(event, builder)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        hint = "; quote a text that begins with *" if error.context == "while scanning an alias" else ""
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        raise builder.wrong(line, f"not YAML: {error.problem}{hint}") from None
    except yaml.YAMLError as error:
        raise builder.wrong(1, f"not YAML: {str(error).splitlines()[0]}") from None


def yaml_block(value: Any) -> Iterator[str]:
    """The lines of a value, names in the order they have."""
    text: str = yaml.dump(
        value, Dumper=Writer, sort_keys=False, allow_unicode=True, default_flow_style=False, width=110
    )
    return iter(text.splitlines(keepends=True))


class Writer(_WRITER):  # type: ignore[misc]
    """Writes texts so that both YAML 1.1 and 1.2 read them as texts; never anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Whether a value that comes twice is written twice."""
        return True


def _text(writer: Any, text: str) -> Any:
    style = "|" if _BLOCK.fullmatch(text) else None
    return writer.represent_scalar(f"{_CORE}str", text, style=style)


Writer.add_representer(str, _text)
# Beside what the library resolves by YAML 1.1: numbers that only 1.2 has.
Writer.add_implicit_resolver(f"{_CORE}float", re.compile(f"^(?:{_NUMBER.pattern})$"), list("-+.0123456789"))
Writer.add_implicit_resolver(f"{_CORE}int", re.compile(f"^(?:{_BASED.pattern})$"), ["0"])


def _take(event: Any, builder: Builder) -> None:
    line = event.start_mark.line + 1
    match event:
        case yaml.ScalarEvent():
            builder.scalar(_value(event, line, builder), line, event.anchor)
        case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
            kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
            if event.tag not in (None, f"{_CORE}{kind}"):
                raise builder.wrong(line, f"tags are not taken: {event.tag[:60]}")
            builder.begin(LinedDict(line) if kind == "map" else LinedList(line), event.anchor)
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            builder.end()
        case yaml.AliasEvent():
            builder.alias(str(event.anchor), line)
        case yaml.DocumentEndEvent():
            builder.end_document()
        case _:
            pass


def _value(event: Any, line: int, builder: Builder) -> Any:
    text: str = event.value
    if event.tag not in _TEXT_TAGS:
        raise builder.wrong(line, f"tags are not taken: {event.tag[:60]}")
    if event.style or event.tag is not None:
        return text
    if text == "<<":
        return MERGE
    if text in _NULL:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if _NO_NUMBER.fullmatch(text):
        raise builder.wrong(line, f"{text} is no number that JSON has")
    if len(text) <= _LONGEST_NUMBER:
        if _WHOLE.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _NUMBER.fullmatch(text):
            return _finite(float(text), line, builder)
    return text


def _finite(number: float, line: int, builder: Builder) -> float:
    if number in (float("inf"), float("-inf")):
        raise builder.wrong(line, "a number is out of range")
    return number
