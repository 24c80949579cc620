"""How a payload becomes a function's arguments.

The signature is read once. The payload is an object whose members are keyword arguments, or null for
none; annotated types that JSON can carry are checked, and converted where JSON has no such type (dates,
enums, dataclasses). What does not fit is named: that payload will not fit at the next attempt either.
"""

import inspect
import typing
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

from hourhand.functions.context import Run

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_RUN_SPELLINGS = ("Run", "hourhand.Run")
_JSON_KINDS = {str: "a string", int: "a number", float: "a number", bool: "a boolean", list: "an array"}

_decode = msgspec.json.Decoder().decode


class WrongArguments(Exception):
    """The payload does not fit the function."""


class Arguments:
    """What a function takes."""

    __slots__ = ("_names", "_open", "_required", "_shape", "takes_context")

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(function).parameters.values())
        hints = _hints(function)
        self.takes_context = bool(parameters) and _is_context(parameters[0], hints)
        own = parameters[1:] if self.takes_context else parameters
        named = [parameter for parameter in own if parameter.kind in _NAMED]
        self._names = frozenset(parameter.name for parameter in named)
        self._required = frozenset(
            parameter.name for parameter in named if parameter.default is inspect.Parameter.empty
        )
        self._open = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in own)
        self._shape = _shape(self._names, hints)

    def bind(self, payload: msgspec.Raw) -> dict[str, Any]:
        """The keyword arguments in a payload; WrongArguments says what does not fit."""
        given = _decode(payload)
        if given is None:
            given = {}
        elif type(given) is not dict:
            kind = _JSON_KINDS.get(type(given), "no object")
            raise WrongArguments(f"the payload is {kind}, expected an object of arguments{self._listed()}")
        names = given.keys()
        if not self._required <= names or not (self._open or names <= self._names):
            raise WrongArguments(self._misfit(set(names)))
        if self._shape is None or not given:
            return given
        try:
            converted: dict[str, Any] = msgspec.convert(given, self._shape)
        except msgspec.ValidationError as error:
            raise WrongArguments(_plainly(str(error))) from None
        return {**given, **converted} if self._open else converted

    def _misfit(self, names: set[str]) -> str:
        missing = sorted(self._required - names)
        unexpected = [] if self._open else sorted(names - self._names)
        parts = []
        if missing:
            parts.append("missing " + _quoted(missing))
        if unexpected:
            parts.append("unexpected " + _quoted(unexpected))
        return f"the payload does not fit: {', '.join(parts)}{self._listed()}"

    def _listed(self) -> str:
        listed = [name if name in self._required else f"{name} (optional)" for name in sorted(self._names)]
        return f"; it takes {', '.join(listed) or 'no arguments'}"


def check_signature(function: Callable[..., Any]) -> None:
    """Refuses, when it is declared, a function that no payload could be given to."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator; a job is a function that returns")
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        required = parameter.default is inspect.Parameter.empty
        if index and required and parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{function.__qualname__}: {parameter.name!r} is positional-only, "
                "but a payload's members are passed by name"
            )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # a name known to type checkers only: what cannot be resolved is not checked
        return {
            name: hint
            for name, hint in getattr(function, "__annotations__", {}).items()
            if not isinstance(hint, str) or hint in _RUN_SPELLINGS
        }


def _is_context(first: inspect.Parameter, hints: dict[str, Any]) -> bool:
    if first.kind not in _POSITIONAL:
        return False
    hint = hints.get(first.name)
    return first.name == "ctx" or hint is Run or hint in _RUN_SPELLINGS


def _shape(names: frozenset[str], hints: dict[str, Any]) -> Any:
    """A type that `msgspec.convert` checks the arguments against; what JSON cannot carry is let through."""
    checked = {name: hints[name] for name in names if name in hints and _checkable(hints[name])}
    if not checked:
        return None
    return TypedDict("Payload", {name: checked.get(name, Any) for name in names}, total=False)  # type: ignore[operator]


def _checkable(hint: Any) -> bool:
    try:
        msgspec.json.schema(hint)
    except Exception:  # classes of the user's own, ambiguous unions and the like
        return False
    return True


def _plainly(message: str) -> str:
    """msgspec's "Expected `int`, got `str` - at `$.count`" with the argument first."""
    problem, _, path = message.partition(" - at ")
    argument = path.strip("`").removeprefix("$.")
    problem = problem.replace("`", "")
    return f"argument {argument!r}: {problem[:1].lower()}{problem[1:]}" if argument else problem


def _quoted(names: list[str]) -> str:
    return ", ".join(repr(name[:60]) for name in names[:10])
