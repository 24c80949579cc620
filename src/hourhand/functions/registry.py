"""The functions a worker can call, by name. Nothing is ever looked up that was not registered."""

import inspect
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from hourhand.functions.arguments import Arguments, check_signature


class RegisteredFunction:
    """A function, the name it is called by, and the fields of a job that were written beside it."""

    def __init__(self, function: Callable[..., Any], fields: Mapping[str, Any] | None = None) -> None:
        if not inspect.isroutine(function):
            raise TypeError(f"expected a function, got {type(function).__name__}")
        check_signature(function)
        self.function = function
        self.name = f"{_module_name(function)}:{function.__qualname__}"
        self.is_async = inspect.iscoroutinefunction(function)
        self._fields = fields

    @cached_property
    def arguments(self) -> Arguments:
        """What it takes. Worked out at the first call, when every annotation can be resolved."""
        return Arguments(self.function)

    def document(self) -> dict[str, Any] | None:
        """The job as declared; None where it has no schedule. Its key is the name, so applying twice is once."""
        if self._fields is None:
            return None
        return {
            "name": self.function.__name__,
            "key": self.name,
            **deepcopy(dict(self._fields)),
            "target": {"type": "python", "function": self.name},
        }


class Registry(dict[str, RegisteredFunction]):
    """Registered functions by name. A name registered again, as by a reload, means the newest."""

    def add(self, registered: RegisteredFunction) -> None:
        """Make a function callable by its name."""
        self[registered.name] = registered


REGISTRY = Registry()
"""What decorators fill while modules are imported, and what a worker serves."""


def _module_name(function: Callable[..., Any]) -> str:
    """The importable name, also for a module that was started with `python -m`."""
    name = function.__module__
    if name == "__main__":
        spec = getattr(sys.modules.get(name), "__spec__", None)
        return spec.name if spec is not None else name
    return name
