"""Where settings come from: flag, environment, --config, ./hourhand.toml, /etc, default; the first that says so.

Collects everything that is wrong, each with its place and the nearest known name, and keeps for each
effective value where it came from. The environment and the folder are handed in.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hourhand.config.kinds import is_loopback, is_postgres, split_listen
from hourhand.config.settings import CLIENT_VARIABLES, ENVIRONMENT_PREFIX, Key, Settings, build, keys
from hourhand.config.store_urls import store_url_fault
from hourhand.core.instant import format_duration
from hourhand.core.schedule.errors import nearest
from hourhand.core.shell import RUN_VARIABLES
from hourhand.errors import CannotStart

LOCAL_FILE = "hourhand.toml"
SYSTEM_FILE = Path("/etc/hourhand/hourhand.toml")
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A setting given on the command line."""

    path: str
    value: object
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong, and where it stands."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """A setting's value for people, and where it came from."""

    key: Key
    shown: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was read, right or wrong."""

    values: Settings
    effective: tuple[Effective, ...]
    findings: tuple[Finding, ...]

    def settings(self) -> Settings:
        """The settings; CannotStart with everything that is wrong."""
        if self.findings:
            raise CannotStart("\n".join(map(str, self.findings)))
        return self.values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """One value as somebody wrote it."""

    key: Key
    raw: object
    source: str


def load(
    *,
    flags: Sequence[Flag] = (),
    environment: Mapping[str, str],
    config: Path | None = None,
    folder: Path,
    system_file: Path = SYSTEM_FILE,
) -> Loaded:
    """Read everything; later sources only fill what earlier ones leave open, but all are checked."""
    findings: list[Finding] = []
    given = list(_from_flags(flags))
    given += _from_environment(environment, findings)
    if config is not None:
        given += _from_file(config, findings, required=True)
    for file in (folder / LOCAL_FILE, system_file):
        if config is None or not _same(file, config):
            given += _from_file(file, findings, required=False)
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for one in given:
        try:
            value = one.key.kind.parse(one.raw)
        except ValueError as error:
            findings.append(_wrong_value(one, str(error)))
            continue
        if one.key.path not in values:
            values[one.key.path], sources[one.key.path] = value, one.source
    settings = build(values)
    findings += _judge(settings, sources)
    effective = tuple(
        Effective(
            key=key,
            shown=key.kind.show(values.get(key.path, key.default)),
            source=sources.get(key.path, "default"),
        )
        for key in keys()
    )
    return Loaded(values=settings, effective=effective, findings=tuple(findings))


def _from_flags(flags: Iterable[Flag]) -> Iterator[_Given]:
    by_path = {key.path: key for key in keys()}
    for flag in flags:
        yield _Given(key=by_path[flag.path], raw=flag.value, source=flag.name)


def _from_environment(environment: Mapping[str, str], findings: list[Finding]) -> Iterator[_Given]:
    by_variable = {key.variable: key for key in keys()}
    by_file = {f"{key.variable}_FILE": key for key in keys() if key.secret}
    for name, text in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT_PREFIX) or name in CLIENT_VARIABLES or name in RUN_VARIABLES:
            continue
        if name in by_variable:
            yield _Given(key=by_variable[name], raw=text, source=name)
        elif name not in by_file:
            findings.append(Finding(where=name, message=_unknown("variable", name, [*by_variable, *by_file])))
        elif by_file[name].variable in environment:
            findings.append(
                Finding(where=name, message=f"{by_file[name].variable} is set too; only one of them may be")
            )
        else:
            secret = _secret_in(Path(text), name, findings)
            if secret is not None:
                yield _Given(key=by_file[name], raw=secret, source=f"{name} ({text})")


def _secret_in(file: Path, variable: str, findings: list[Finding]) -> str | None:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        findings.append(Finding(where=variable, message=f"cannot read {file}: {_why(error)}"))
        return None


def _from_file(file: Path, findings: list[Finding], *, required: bool) -> Iterator[_Given]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE:,} bytes")
        lines = text.decode("utf-8")
        document = tomllib.loads(lines)
    except (FileNotFoundError, NotADirectoryError):
        if required:
            findings.append(Finding(where=str(file), message="there is no such file"))
        return
    except (OSError, ValueError) as error:  # a TOML or UTF-8 error is a ValueError that names its place
        findings.append(Finding(where=str(file), message=f"cannot be read: {_why(error)}"))
        return
    yield from _from_document(document, _Places(file, lines), findings)


def _from_document(
    document: Mapping[str, Any], places: "_Places", findings: list[Finding]
) -> Iterator[_Given]:
    sections = list(dict.fromkeys(key.section for key in keys()))
    for section, table in document.items():
        where = places.of(section)
        if section not in sections:
            hint = _home_of(section) if not isinstance(table, dict) else None
            message = hint or _unknown("section", section, sections)
            findings.append(Finding(where=where, message=message))
        elif not isinstance(table, dict):
            findings.append(Finding(where=where, message=f"{section} is a section: write [{section}]"))
        else:
            yield from _from_table(section, table, places, findings)


def _from_table(
    section: str, table: Mapping[str, Any], places: "_Places", findings: list[Finding]
) -> Iterator[_Given]:
    known = {key.name: key for key in keys() if key.section == section}
    for name, raw in table.items():
        where = places.of(section, name)
        if name in known:
            yield _Given(key=known[name], raw=raw, source=where)
        else:
            message = _home_of(name) or _unknown(f"key of [{section}]", name, known)
            findings.append(Finding(where=where, message=message))


class _Places:
    """Finds the lines of a TOML file that set something; tomllib does not keep them."""

    def __init__(self, file: Path, text: str) -> None:
        self._file = file
        self._lines: dict[tuple[str, str], int] = {}
        section = ""
        for number, line in enumerate(text.splitlines(), start=1):
            if header := re.match(r"\s*\[\s*\"?([\w.-]+)\"?\s*\]", line):
                section = header[1]
                self._lines.setdefault((section, ""), number)
            elif assignment := re.match(r"\s*\"?([\w-]+)\"?\s*(?:\.\s*\"?([\w-]+)\"?\s*)?=", line):
                first, second = assignment[1], assignment[2]
                place = (first, second) if second and not section else (section, first)
                self._lines.setdefault(place, number)

    def of(self, section: str, name: str = "") -> str:
        """`file:line`, or the file alone where the line was not found."""
        line = self._lines.get((section, name)) or self._lines.get(("", section))
        return f"{self._file}:{line}" if line else str(self._file)


def _judge(settings: Settings, sources: Mapping[str, str]) -> Iterator[Finding]:
    """What is wrong with values that are right one by one."""
    scheduler = settings.scheduler
    yield from _judge_listeners(settings, sources)
    yield from _judge_auth(settings, sources)
    yield from _judge_store(settings, sources)
    yield from _judge_leases(settings, sources)
    if scheduler.lead_us * 2 > scheduler.horizon_us:
        yield Finding(
            where=sources.get("scheduler.lead", sources.get("scheduler.horizon", "scheduler.lead")),
            message=(
                f"lead is {format_duration(scheduler.lead_us)}, expected at most half the horizon, "
                f"which is {format_duration(scheduler.horizon_us)}"
            ),
        )


def _judge_listeners(settings: Settings, sources: Mapping[str, str]) -> Iterator[Finding]:
    server, telemetry = settings.server, settings.telemetry
    if settings.auth.asks:
        return
    remedy = "set auth.mode to tokens or jwt, or listen on 127.0.0.1"
    if not is_loopback(server.host):
        yield Finding(
            where=sources.get("server.listen", "server.listen"),
            message=(
                f"listening on {server.host} would let everybody who reaches it run jobs, since there is "
                f"no authentication (auth.mode is none); {remedy} and reach it from elsewhere through a tunnel"
            ),
        )
    if telemetry.listen and not is_loopback(split_listen(telemetry.listen)[0]):
        yield Finding(
            where=sources.get("telemetry.listen", "telemetry.listen"),
            message=f"there is no authentication (auth.mode is none); {remedy}",
        )


def _judge_auth(settings: Settings, sources: Mapping[str, str]) -> Iterator[Finding]:
    auth = settings.auth
    if auth.mode != "jwt":
        for name in ("secret", "jwks", "issuer", "audience"):
            if getattr(auth, name):
                yield Finding(
                    where=sources[f"auth.{name}"],
                    message=f"auth.{name} is about JWTs, but auth.mode is {auth.mode}; "
                    f"set auth.mode to jwt, or leave auth.{name} out",
                )
        return
    where = sources.get("auth.mode", "auth.mode")
    if not auth.secret and not auth.jwks:
        yield Finding(
            where=where,
            message="auth.mode is jwt, but there is nothing to check JWTs with; "
            "set auth.secret (HS256) or auth.jwks (RS256, ES256, EdDSA)",
        )
    for name, claim in (("issuer", "iss"), ("audience", "aud")):
        if not getattr(auth, name):
            yield Finding(
                where=where,
                message=f"auth.mode is jwt, but auth.{name} is empty; set it to what the claim {claim} of your JWTs is",
            )


def _judge_store(settings: Settings, sources: Mapping[str, str]) -> Iterator[Finding]:
    store = settings.store
    if store.shards and "store.url" in sources:
        yield Finding(
            where=sources["store.url"],
            message=(
                f"store.url and store.shards are both given, store.url by {sources['store.url']} and "
                f"store.shards by {sources['store.shards']}; with shards, leave store.url out"
            ),
        )
    given = {"store.url": (store.url,), "store.shards": store.shards, "store.listen_url": store.listen_url}
    for path, urls in given.items():
        for fault in filter(None, map(store_url_fault, urls)):
            yield Finding(where=sources.get(path, path), message=f"{path}: {fault}")
    if store.listen_url and len(store.listen_url) != len(store.databases):
        yield Finding(
            where=sources["store.listen_url"],
            message=f"store.listen_url: expected one URL per database ({len(store.databases)}), "
            f"got {len(store.listen_url)}",
        )


def _judge_leases(settings: Settings, sources: Mapping[str, str]) -> Iterator[Finding]:
    if settings.leases.url and not settings.store.shards and not is_postgres(settings.store.url):
        yield Finding(
            where=sources.get("leases.url", "leases.url"),
            message="leases.url is for the schedulers of a cluster on PostgreSQL; a file has one process",
        )


def _wrong_value(given: _Given, expected: str) -> Finding:
    shown = "a value" if given.key.secret else repr(given.key.kind.show(given.raw)[:80])
    return Finding(where=given.source, message=f"{given.key.path}: expected {expected}, got {shown}")


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    meant = nearest(name, names)
    hint = f"did you mean {meant}?" if meant else "known: " + ", ".join(names[:12])
    return f"unknown {what}: {name}; {hint}"


def _home_of(name: str) -> str | None:
    """Where a key belongs that stands in the wrong section."""
    homes = [key.section for key in keys() if key.name == name]
    return f"{name} belongs to [{homes[0]}]" if len(homes) == 1 else None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
