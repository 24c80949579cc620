"""Imports the modules that a worker serves, before it claims anything."""

import importlib
import os
import sys
import traceback
from collections.abc import Iterable

from hourhand.errors import CannotStart
from hourhand.functions.registry import REGISTRY, Registry


class NoModule(CannotStart):
    """There is no module of that name."""


def load_modules(names: Iterable[str], *, given_by: str = "--import ") -> Registry:
    """Imports each, the working directory included; CannotStart shows the traceback. `given_by`: how errors begin."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    for name in names:
        _load(name, given_by)
    return REGISTRY


def _load(name: str, given_by: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        raise CannotStart(f"{given_by}{name}: expected a module's dotted name such as app.tasks")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise NoModule(
                f"{given_by}{name}: there is no module {error.name!r} here or in the environment"
            ) from None
        raise CannotStart(_with_traceback(f"{given_by}{name}", error)) from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise CannotStart(_with_traceback(f"{given_by}{name}", error)) from error


def _with_traceback(what: str, error: BaseException) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return f"{what} failed:\n" + "".join(lines).rstrip()
