"""The fields of a job document as options, in one table; `create` and `update` take all of them.

What a value may be is for the server to say, which names the field. Here is only where it belongs.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import typer

from hourhand.cli.failures import Usage
from hourhand.cli.options import Option


class Shape(Enum):
    """How an option's text becomes JSON."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    WHOLE_OR_WORD = "whole or word"
    SWITCH = "switch"
    LIST = "list"
    HEADERS = "headers"
    VARIABLES = "variables"
    WHOLES = "whole numbers"
    JSON = "json"


_KINDS: dict[Shape, Any] = {
    Shape.WHOLE: int | None,
    Shape.NUMBER: float | None,
    Shape.SWITCH: bool | None,
    Shape.LIST: list[str] | None,
    Shape.HEADERS: list[str] | None,
    Shape.VARIABLES: list[str] | None,
    Shape.WHOLES: list[int] | None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: its flag, and its place in the document."""

    flag: str
    place: tuple[str, ...]
    help: str
    metavar: str | None = None
    shape: Shape = Shape.TEXT

    @property
    def name(self) -> str:
        """Its name in Python; `tz` takes the place of the global option of that name."""
        return "_".join(self.place)

    def option(self) -> Option:
        """As an option."""
        flag = f"{self.flag}/--no{self.flag[1:]}" if self.shape is Shape.SWITCH else self.flag
        metavar = None if self.shape is Shape.SWITCH else self.metavar or "WORD"
        info = typer.Option(flag, help=self.help, metavar=metavar, show_default=False)
        return Option(name=self.name, kind=_KINDS.get(self.shape, str | None), info=info)


def _field(flag: str, place: str, help: str, metavar: str | None = None, shape: Shape = Shape.TEXT) -> Field:
    return Field(flag=flag, place=tuple(place.split(".")), help=help, metavar=metavar, shape=shape)


FIELDS = (
    _field("--cron", "cron", "When, as a cron expression.", "EXPR"),
    _field("--every", "every", "When, as the time between two runs.", "15m"),
    _field("--at", "at", "When, once.", "TIME"),
    _field("--after", "after", "When, as a job that it follows; may be repeated.", "JOB", Shape.LIST),
    _field("--wait", "wait", "How long a run waits for the last of those; 24h unless given.", "2h"),
    _field("--tz", "tz", "The zone of the cron expression.", "ZONE"),
    _field("--gap", "dst.gap", "A time that DST drops: after, skip, shift."),
    _field("--fold", "dst.fold", "A time that DST repeats: auto, first, second, both."),
    _field("--phase", "phase", "An instant that --every counts from.", "TIME"),
    _field("--starts-at", "starts_at", "No run before it.", "TIME"),
    _field("--ends-at", "ends_at", "No run after it.", "TIME"),
    _field("--max-runs", "max_runs", "How many runs there will be.", "N", Shape.WHOLE),
    _field("--url", "target.url", "What to call by HTTP.", "URL"),
    _field("--method", "target.method", "The HTTP method.", "POST"),
    _field(
        "--header", "target.headers", "A header of the call; may be repeated.", "'NAME: VALUE'", Shape.HEADERS
    ),
    _field("--target-timeout", "target.timeout", "Of one HTTP exchange.", "30s"),
    _field("--python", "target.function", "Or the function to call.", "MODULE:FUNCTION"),
    _field("--cwd", "target.cwd", "The command's working directory.", "DIR"),
    _field(
        "--env", "target.env", "A variable for the command; may be repeated.", "NAME=VALUE", Shape.VARIABLES
    ),
    _field(
        "--success-code",
        "target.success_codes",
        "An exit code that means success; may be repeated.",
        "N",
        Shape.WHOLES,
    ),
    _field(
        "--no-retry-code",
        "target.no_retry_codes",
        "An exit code after which it is not tried again; may be repeated.",
        "N",
        Shape.WHOLES,
    ),
    _field("--payload", "payload", "What the target gets: JSON, or @FILE.", "JSON", Shape.JSON),
    _field("--key", "key", "A name of your own, unique.", "KEY"),
    _field("--shard-key", "shard_key", "Jobs with the same one stay together.", "KEY"),
    _field("--tag", "tags", "A word to find it by; may be repeated.", "WORD", Shape.LIST),
    _field("--priority", "priority", "HIGH, MEDIUM or LOW."),
    _field("--durability", "durability", "critical or fire_and_forget."),
    _field("--pool", "pool", "The workers that run it.", "NAME"),
    _field("--timeout", "timeout", "Of one attempt.", "5m"),
    _field("--delivery", "delivery", "at_least_once or at_most_once."),
    _field("--retries", "retry.max", "Retries after the first attempt.", "N", Shape.WHOLE),
    _field("--retry-first", "retry.first", "The pause before the first retry.", "1s"),
    _field("--retry-factor", "retry.factor", "How much longer each pause is.", "2", Shape.NUMBER),
    _field("--retry-max-delay", "retry.max_delay", "The longest pause.", "10m"),
    _field("--concurrency", "concurrency", "Runs at once, or unlimited.", "N", Shape.WHOLE_OR_WORD),
    _field("--overlap", "overlap", "When all slots are taken: queue_one, queue, skip, cancel_running."),
    _field("--misfire", "misfire.policy", "Missed times: run_once, skip, catch_up."),
    _field("--misfire-grace", "misfire.grace", "How late counts as missed.", "60s"),
    _field("--misfire-limit", "misfire.limit", "How many catch_up makes up for.", "N", Shape.WHOLE),
    _field("--jitter", "jitter", "Spreads the start, up to 30s.", "10s"),
    _field("--paused", "paused", "Make no runs until resumed.", shape=Shape.SWITCH),
    _field("--note", "note", "Why it is paused.", "TEXT"),
)
OPTIONS = tuple(field.option() for field in FIELDS)


def document_of(
    values: Mapping[str, Any], *, shell: bool = False, argv: Sequence[str] | None = None
) -> dict[str, Any]:
    """The document that the given options make; with `shell`, the arguments behind the first are the command."""
    document: dict[str, Any] = {}
    if argv and not shell:
        raise Usage(f"unexpected argument {argv[0]!r}; a command goes after --shell --")
    if shell:
        if not argv:
            raise Usage("--shell: expected a command at the end, such as: --shell -- backup --all")
        document["target"] = {"type": "shell", "argv": list(argv)}
    for field in FIELDS:
        value = values.get(field.name)
        if value in (None, [], ()):
            continue
        place = document
        for part in field.place[:-1]:
            place = place.setdefault(part, {})
        place[field.place[-1]] = _as_json(field, value)
    target = document.get("target")
    if target is not None and "url" in target:
        target["type"] = "http"
    elif target is not None and "function" in target:
        target["type"] = "python"
    return document


def read_document(file: str) -> dict[str, Any]:
    """A JSON object from a file, or from stdin for `-`."""
    document = decoded(_text_of(file), f"--file {file}")
    if not isinstance(document, dict):
        raise Usage(f"--file {file}: expected a JSON object")
    return document


def _as_json(field: Field, value: Any) -> Any:
    match field.shape:
        case Shape.HEADERS:
            return dict(_header(text) for text in value)
        case Shape.VARIABLES:
            return dict(_variable(text) for text in value)
        case Shape.LIST | Shape.WHOLES:
            return list(value)
        case Shape.WHOLE_OR_WORD:
            return int(value) if value.isascii() and value.isdigit() else value
        case Shape.JSON:
            text = _text_of(value[1:]) if value.startswith("@") else value
            return msgspec.Raw(msgspec.json.encode(decoded(text, field.flag)))
        case _:
            return value


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise typer.BadParameter(f"expected 'NAME: VALUE', got {text!r}", param_hint="--header")
    return name.strip(), value.strip()


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter("expected NAME=VALUE", param_hint="--env")  # the value may be secret
    return name, value


def _text_of(file: str) -> str | bytes:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Usage(f"cannot read {file}: {error.strerror}") from None


def decoded(text: str | bytes, source: str) -> Any:
    """The JSON that an option or a file holds."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise typer.BadParameter(f"expected JSON: {error}", param_hint=source) from None
