"""What a command line that is being written may go on with, read off the tree of commands. Pure.

Values that only the server knows are left to whoever asks: `Place` says what kind of thing is wanted.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hourhand.core.deeds import names_of_acts
from hourhand.core.lifecycle import State
from hourhand.core.model import JobState
from hourhand.core.operation import Action
from hourhand.ports.events import EventType

JOB, RUN, BACKFILL, FILE, ZONE = "job", "run", "backfill", "file", "zone"
TOKEN, WEBHOOK, OPERATION = "token", "webhook", "operation"
SET, TAG, TENANT = "set", "tag", "tenant"
_KINDS = (  # the first word that stands in what the help calls a value
    (re.compile(r"\bJOB\b"), JOB),
    (re.compile(r"\bRUN\b"), RUN),
    (re.compile(r"\bBACKFILL\b"), BACKFILL),
    (re.compile(r"\bTOKEN_ID\b"), TOKEN),
    (re.compile(r"\bWEBHOOK\b"), WEBHOOK),
    (re.compile(r"\bOPERATION\b"), OPERATION),
    (re.compile(r"\b(FILE|DIR|SOURCE|DATABASE)\b"), FILE),
    (re.compile(r"\bZONE\b"), ZONE),
    (re.compile(r"\bTENANT\b"), TENANT),
)
_KINDS_OF_FLAGS = {"--set": SET, "--tag": TAG, "--tenant": TENANT}
_CHOICES = re.compile(r"\[?([a-z_]+(?:\|[a-z_]+)+)\]?")
_WORDS = {
    "--priority": ("HIGH", "MEDIUM", "LOW"),
    "--durability": ("critical", "fire_and_forget"),
    "--delivery": ("at_least_once", "at_most_once"),
    "--overlap": ("queue_one", "queue", "skip", "cancel_running"),
    "--misfire": ("run_once", "skip", "catch_up"),
    "--gap": ("after", "skip", "shift"),
    "--fold": ("auto", "first", "second", "both"),
    "--method": ("POST", "GET", "PUT", "PATCH", "DELETE"),
}
_WORDS_OF = {  # where a name means something else at another command
    ("jobs", "list", "--state"): tuple(JobState),
    ("runs", "list", "--state"): tuple(State),
    ("operations", "create", "action"): tuple(Action),
    ("deeds", "--action"): tuple(names_of_acts()),
    ("tail", "--type"): ("run.*", "job.*", *EventType),
}


@dataclass(slots=True)
class Place:
    """Where a line stands: what may follow as it is known here, and what kind of value is wanted from elsewhere."""

    word: str  # what is written of it already
    found: list[tuple[str, str]] = field(default_factory=list)  # what may follow, and what that means
    kind: str | None = None
    options: dict[str, str] = field(default_factory=dict)  # what was given before, such as --server
    path: tuple[str, ...] = ()  # of the command
    before: str = ""  # what stands before the word in the same one, as --option=

    def answers(self) -> list[tuple[str, str]]:
        """Those that begin as the word does."""
        return [(self.before + text, help) for text, help in self.found if text.startswith(self.word)]


def place_of(main: Any, words: Sequence[str]) -> Place:
    """Where a line stands whose last word is being written; the first is the program."""
    *done, word = words[1:] or [""]
    place = Place(word=word)
    command, awaits, count, only_arguments = main, None, 0, False
    path: list[str] = []
    for one in done:
        if awaits is not None:
            place.options[awaits.opts[0]] = one
            awaits = None
        elif one == "--" and not only_arguments:
            only_arguments = True
        elif one.startswith("-") and len(one) > 1 and not only_arguments:
            name, equals, value = one.partition("=")
            option = _option(command, name)
            if equals:
                place.options[name] = value
            elif option is not None and not option.is_flag:
                awaits = option
        elif hasattr(command, "commands"):
            if one not in command.commands:
                return place
            command = command.commands[one]
            path.append(one)
        else:
            count += 1
    place.path = tuple(path)
    _fill(place, command, awaits, count, only_arguments=only_arguments)
    return place


def words_of(line: str) -> tuple[list[str], bool]:
    """The words of a line, the last one perhaps empty or within quotes that are still open, and whether it is."""
    words, word, quote, begun = [], "", "", False
    letters = iter(line)
    for letter in letters:
        if quote:
            if letter == quote:
                quote = ""
            elif letter == "\\" and quote == '"':
                word += next(letters, "")
            else:
                word += letter
        elif letter in "'\"":
            quote, begun = letter, True
        elif letter == "\\":
            word, begun = word + next(letters, ""), True
        elif letter.isspace():
            if begun or word:
                words.append(word)
            word, begun = "", False
        else:
            word += letter
    return [*words, word], bool(quote)


def _fill(place: Place, command: Any, awaits: Any, count: int, *, only_arguments: bool) -> None:
    name, equals, value = place.word.partition("=")
    if awaits is not None:
        _values(place, awaits)
    elif place.word.startswith("--") and equals and not only_arguments:
        place.before, place.word = f"{name}=", value
        option = _option(command, name)
        if option is not None:
            _values(place, option)
    elif place.word.startswith("-") and not only_arguments:
        place.found = sorted(_options(command))
    elif hasattr(command, "commands"):
        shown = [(one, each) for one, each in command.commands.items() if not each.hidden]
        place.found = [(one, each.get_short_help_str(80)) for one, each in shown]
    else:
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        here = arguments[min(count, len(arguments) - 1)] if arguments else None
        if here is not None and (count < len(arguments) or here.nargs == -1):
            _values(place, here)


def _options(command: Any) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            for name in (*parameter.opts, *parameter.secondary_opts):
                yield name, parameter.help or ""
    yield "--help", "Show what there is, and exit."


def _option(command: Any, name: str) -> Any:
    for parameter in command.params:
        if parameter.param_type_name == "option" and name in (*parameter.opts, *parameter.secondary_opts):
            return parameter
    return None


def _values(place: Place, parameter: Any) -> None:
    named = parameter.metavar or ""
    for flag in parameter.opts:
        words = _WORDS_OF.get((*place.path, flag), _WORDS.get(flag))
        if words is not None:
            place.found = [(str(word), "") for word in words]
            return
        if flag in _KINDS_OF_FLAGS:
            place.kind = _KINDS_OF_FLAGS[flag]
            return
    if choices := _CHOICES.fullmatch(named):
        place.found = [(word, "") for word in choices[1].split("|")]
        return
    place.kind = next((kind for pattern, kind in _KINDS if pattern.search(named)), None)
