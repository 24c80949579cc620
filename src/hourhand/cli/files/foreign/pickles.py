"""Reads pickles of other schedulers without running anything of them.

A pickle may name any function to call. Here a name never becomes the thing that it names: known ones become inert
records of what they were given, or plain values of ours, and so do unknown ones, under their name, to be refused by whoever finds them.
"""

import datetime
import io
import pickle
from collections.abc import Callable
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from hourhand.cli.files.foreign.found import LeftOut
from hourhand.core.schedule import ScheduleError, zone_info, zone_name

MAX_BYTES = 16 * 1024 * 1024


class Made:
    """What would have been made: of which class, of which arguments, in which state."""

    made_of: ClassVar[str] = ""
    args: tuple[Any, ...]
    state: Any

    def __new__(cls, *args: Any, **_named: Any) -> "Made":
        """Also where no __init__ is called, as pickles do."""
        self = super().__new__(cls)
        self.args = args
        self.state = None
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def append(self, _value: Any) -> None:
        """An item of what was a list."""

    def extend(self, _values: Any) -> None:
        """Items of what was a list."""

    def add(self, _value: Any) -> None:
        """An item of what was a set."""

    def __setitem__(self, _name: Any, _value: Any) -> None:
        """An item of what was a mapping."""


def read_pickle(data: bytes) -> Any:
    """The value of a pickle, of plain values and records; LeftOut where it is none or names what it must not."""
    if len(data) > MAX_BYTES:
        raise LeftOut(f"its state is larger than {MAX_BYTES:,} bytes")
    try:
        return _Reader(io.BytesIO(data)).load()
    except LeftOut:
        raise
    except Exception as error:
        raise LeftOut(f"its state cannot be read: {type(error).__name__}: {error}") from None


class _Call:
    """A function of ours that a pickle may call, and not change."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, _state: Any) -> None:
        raise LeftOut("its state would change a function")


def _named_zone(key: str, *_more: Any) -> ZoneInfo:
    try:
        return zone_info(zone_name(key))
    except (ScheduleError, TypeError, AttributeError):
        raise LeftOut(f"its time zone {str(key)[:60]!r} is not known") from None


def _rebuilt(kind: type, _base: Any, _state: Any) -> Any:
    """What old protocols make an object with; only of records."""
    if not issubclass(kind, Made):
        raise LeftOut(f"its state makes a {kind.__qualname__} in a way that is not read")
    return kind()


def _attribute(of: Any, name: Any) -> Any:
    """A zone is made by an attribute of its class; nothing else is."""
    full = f"{getattr(of, 'made_of', type(of).__qualname__)}.{name}"
    if full not in _ZONES:
        raise LeftOut(f"its state asks for {full[:100]}, which is not read")
    return _ZONE


_ZONE = _Call(_named_zone)
_ZONES = ("zoneinfo.ZoneInfo._unpickle", "backports.zoneinfo.ZoneInfo._unpickle")
_PLAIN: dict[str, Callable[..., Any]] = {
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.object": object,
    "copyreg._reconstructor": _Call(_rebuilt),
    "datetime.datetime": datetime.datetime,
    "datetime.date": datetime.date,
    "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta,
    "datetime.timezone": datetime.timezone,
    "builtins.getattr": _Call(_attribute),
    **dict.fromkeys(_ZONES, _ZONE),
    "pytz._UTC": _Call(lambda: datetime.UTC),
    "pytz._p": _ZONE,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Never the thing itself."""
        full = f"{module}.{name}"
        return _PLAIN.get(full) or type("Made", (Made,), {"made_of": full})

    def persistent_load(self, pid: Any) -> Any:
        """Nothing lies elsewhere."""
        raise LeftOut("its state refers to something outside of it")
