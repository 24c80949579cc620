"""Options that every command takes, before or after its name, and what a command gets to work with.

`command` registers a function `f(call, …)`: its own parameters become options by typer's rules, the global
ones are added here, and `call` carries them, the output and the client.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.output import Form, Output

if TYPE_CHECKING:
    from hourhand.client import Client

Parameter = inspect.Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as data: its name in Python, its type, and how typer shows it."""

    name: str
    kind: Any
    info: Any
    default: Any = None

    def parameter(self) -> Parameter:
        """As a parameter of a function."""
        return Parameter(
            self.name,
            Parameter.KEYWORD_ONLY,
            default=self.default,
            annotation=Annotated[self.kind, self.info],
        )


def _text(name: str, flag: str, help: str, metavar: str) -> Option:
    return Option(name=name, kind=str | None, info=typer.Option(flag, help=help, metavar=metavar))


def _switch(name: str, *flags: str, help: str) -> Option:
    return Option(name=name, kind=bool, info=typer.Option(*flags, help=help), default=False)


GLOBAL = (
    _text("server", "--server", "Where hourhand answers; also HOURHAND_URL.", "URL"),
    _text("tenant", "--tenant", "On whose behalf; also HOURHAND_TENANT.", "NAME"),
    _switch("as_json", "--json", help="The API's document, verbatim; errors as problem+json."),
    _switch("as_lines", "--jsonl", help="One JSON document per line."),
    _switch("ids_only", "--quiet", "-q", help="Ids only."),
    _text("tz", "--tz", "The zone that times are shown in; else the job's.", "ZONE"),
)
OF_CHANGES = (
    _switch("dry_run", "--dry-run", help="Say what would be done, and do nothing."),
    _switch("yes", "--yes", "-y", help="Do not ask."),
)
_NAMES = frozenset(option.name for option in GLOBAL + OF_CHANGES)
_META = "hourhand.options"


class Call:
    """What a command works with: the global options, the output, and the client when it is asked for."""

    def __init__(self, given: dict[str, Any], extra: dict[str, Any]) -> None:
        self.server: str | None = given.get("server")
        self.tenant: str | None = given.get("tenant")
        self.tz = _zone(given.get("tz"))
        self.dry_run = bool(given.get("dry_run"))
        self.yes = bool(given.get("yes"))
        self.extra = extra  # values of the options that were added as data
        self.out = Output(form_of(given))

    @cached_property
    def client(self) -> "Client":
        """A client of the server; imported only now, since commands without one start faster."""
        from hourhand.client import Client
        from hourhand.core.access import TENANT_WORDS, is_tenant

        named = (self.tenant or "").strip()
        if named and not is_tenant(named):  # not shown: it may be something secret at the wrong place
            raise Usage(f"--tenant: expected {TENANT_WORDS}")

        return Client(self.server, tenant=self.tenant, retries=1)

    def confirm(self, question: str) -> None:
        """Ask before something that cannot be undone."""
        if self.yes or self.dry_run:
            return
        if not typer.get_text_stream("stdin").isatty():
            raise Usage(f"{question} Add -y to do so without being asked.")
        typer.confirm(question, abort=True, err=True)


def form_of(given: dict[str, Any]) -> Form:
    """The form that the options ask for."""
    if given.get("as_json"):
        return Form.JSON
    if given.get("as_lines"):
        return Form.LINES
    return Form.IDS if given.get("ids_only") else Form.PEOPLE


def accept_globals(app: typer.Typer, help: str, more: Iterable[Option] = ()) -> None:
    """Let a group take the global options, and perhaps more, before the name of its command."""

    def callback(context: typer.Context, **given: Any) -> None:
        _merge(context, given)

    _sign(callback, [option.parameter() for option in (*GLOBAL, *OF_CHANGES, *more)])
    app.callback(help=help)(callback)


def command(
    app: typer.Typer, name: str, *, changes: bool = False, extra: Iterable[Option] = ()
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Register a command. `changes`: it takes --dry-run and -y; `extra`: options as data, for `call.extra`."""
    added = tuple(extra)

    def register(function: Callable[..., int | None]) -> Callable[..., int | None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        taken = {parameter.name for parameter in own} | {option.name for option in added}
        shared = [option for option in GLOBAL + OF_CHANGES * changes if option.name not in taken]

        def run(context: typer.Context, **values: Any) -> int | None:
            given = _merge(context, {option.name: values.pop(option.name) for option in shared})
            call = Call(given, {option.name: values.pop(option.name) for option in added})
            return function(call, **values)

        _sign(run, [*own, *(option.parameter() for option in (*added, *shared))])
        app.command(name, help=inspect.getdoc(function))(run)
        return function

    return register


def _zone(name: str | None) -> str | None:
    """The zone that was asked for, whether or not this form of the answer shows times; ScheduleError where there is none."""
    if name is not None:
        from hourhand.core.schedule import zone_info  # here, since few calls name a zone

        zone_info(name)
    return name


def _sign(function: Callable[..., Any], parameters: Iterable[Parameter]) -> None:
    """Give a function the signature that typer is to read."""
    context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    plain = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    function.__signature__ = inspect.Signature([context, *plain])  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *plain)}


def _merge(context: typer.Context, given: dict[str, Any]) -> dict[str, Any]:
    """What was given here, over what was given before the name of the command."""
    merged: dict[str, Any] = context.meta.setdefault(_META, {})
    merged.update({name: value for name, value in given.items() if value not in (None, False)})
    return merged
