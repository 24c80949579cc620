"""`ctx.log`: a structlog logger that names the run, whose lines are also kept with the attempt."""

import traceback
from collections.abc import Callable
from typing import Any

from hourhand.core.log import storable

_VALUE_MAX = 2_000


class RunLogger:
    """Says everything twice: to the worker's own log, and to the attempt's."""

    __slots__ = ("_bound", "_inner", "_keep")

    def __init__(self, inner: Any, keep: Callable[[str], None], bound: dict[str, Any] | None = None) -> None:
        self._inner = inner
        self._keep = keep
        self._bound = bound or {}

    @property
    def unkept(self) -> Any:
        """The worker's own log alone, for what is told elsewhere."""
        return self._inner

    def bind(self, **values: Any) -> "RunLogger":
        """The same with more values on every line."""
        return RunLogger(self._inner.bind(**values), self._keep, {**self._bound, **values})

    def debug(self, event: object, *args: Any, **values: Any) -> None:
        """For whoever looks closely."""
        self._say("debug", event, args, values)

    def info(self, event: object, *args: Any, **values: Any) -> None:
        """What happens."""
        self._say("info", event, args, values)

    def warning(self, event: object, *args: Any, **values: Any) -> None:
        """What may be wrong."""
        self._say("warning", event, args, values)

    warn = warning

    def error(self, event: object, *args: Any, **values: Any) -> None:
        """What went wrong."""
        self._say("error", event, args, values)

    def critical(self, event: object, *args: Any, **values: Any) -> None:
        """What went badly wrong."""
        self._say("critical", event, args, values)

    def exception(self, event: object, *args: Any, **values: Any) -> None:
        """What went wrong, with the exception that is being handled."""
        self._say("error", event, args, {"exc_info": True, **values})

    def _say(self, level: str, event: object, args: tuple[Any, ...], values: dict[str, Any]) -> None:
        getattr(self._inner, level)(event, *args, **values)
        self._keep(_line(level, event, args, {**self._bound, **values}))


def _line(level: str, event: object, args: tuple[Any, ...], values: dict[str, Any]) -> str:
    """One line, whatever is in it; a value that cannot be printed must not fail the function."""
    failed = values.pop("exc_info", None)
    try:
        words = str(event) % args if args else str(event)
    except Exception:
        words = str(event)
    told = [level.upper(), words, *(f"{name}={_shown(value)}" for name, value in values.items())]
    trace = traceback.format_exc() if failed else ""
    return storable(" ".join(told) + "\n" + trace)


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:
        text = f"<{type(value).__name__} that cannot be printed>"
    return text if len(text) <= _VALUE_MAX else text[:_VALUE_MAX] + "…"
