"""What `hourhand doctor` says of the store: the file or each database, and what only it knows of those who work on it."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hourhand.cli.launch import Examined, SchemaState
from hourhand.cli.text import clean, plural
from hourhand.clock import SystemClock
from hourhand.config import Settings
from hourhand.core.model import JobSpec, OnceTiming, PythonTarget
from hourhand.core.schedule import tzdata_version
from hourhand.core.url import masked_store_url
from hourhand.core.why.serving import LiveWorker, Serving, obstacle
from hourhand.errors import CannotStart, HourhandError
from hourhand.ports.inspection import CalledFunction, Snapshot, StoreFacts
from hourhand.ports.store import NodeInfo
from hourhand.wiring.parts import sqlite_path

SKEW_S = 1.0  # between this machine's clock and a database's; the store's counts, so more is a nuisance only
_MOST_NAMED = 5
_ALONE = "up"  # the one process of a file
_WORKS = (_ALONE, "worker")


async def examine_file(settings: Settings) -> list[Examined]:
    """A file, its schema, and the process on it."""
    where = settings.store.url
    try:
        path = sqlite_path(where)
        if unusable := _unusable(path):
            return [Examined(what="store", where=where, finding=unusable[0], fix=unusable[1])]
        return await asyncio.to_thread(_file, path, where)
    except CannotStart as error:
        return [Examined(what="store", where=where, finding=error.message, fix="see the message")]


async def examine_databases(settings: Settings) -> list[Examined]:
    """Each database, its schema and its clock, and what all of them together say."""
    found: list[Examined] = []
    facts: list[StoreFacts] = []
    for url in settings.store.databases:
        state = await _database(url)
        found.append(state)
        if state.finding:
            continue
        from hourhand.stores.postgres.inspection import facts_of

        try:
            facts.append(await facts_of(_plain(url)))
        except HourhandError as error:
            fix = "check what the user of the URL may read"
            found.append(Examined(what="store", where=state.where, finding=error.message, fix=fix))
            continue
        if (snapshot := facts[-1].snapshot) is not None:
            found.append(_old_snapshot(state.where, snapshot))
    return [*found, *_zones(facts), *unserved(facts, alone=False)]


def _file(path: Path, where: str) -> list[Examined]:
    from hourhand.stores.sqlite.inspection import facts_of, schema_version

    version, newest = schema_version(path)
    if version < newest:
        seen = f"schema {version}, brought to {newest} by the next `hourhand up`"
        return [Examined(what="store", where=where, seen=seen)]
    facts = facts_of(path, SystemClock().now())
    runs = any(node.lease_until > facts.now_at for node in facts.nodes)
    state = "a process runs on it" if runs else "no process runs on it"
    store = Examined(what="store", where=where, seen=f"schema {version}, {state}")
    return [store, *_zones([facts]), *(unserved([facts], alone=True) if runs else ())]


def _unusable(path: Path) -> tuple[str, str] | None:
    """What is wrong with a file or its folder, and what helps."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}", "make it, or set store.url to where the file is"
    if not path.exists():
        return f"there is no file {path}", "`hourhand up` makes it; or set store.url to where it is"
    if not path.is_file():
        return f"{path} is no file", "set store.url to a file"
    for place, needs in ((path, os.R_OK | os.W_OK), (folder, os.W_OK | os.X_OK)):
        if not os.access(place, needs):
            return f"{place} cannot be written", "let the user that runs hourhand read and write there"
    return None


async def _database(url: str) -> Examined:
    from hourhand.stores.postgres import schema

    shown = masked_store_url(url)
    try:
        found = await schema.status(_plain(url))
        skew_s = await schema.skew_s(_plain(url), SystemClock())
    except HourhandError as error:
        return Examined(
            what="store", where=shown, finding=error.message, fix="check the address, or start the server"
        )
    state = SchemaState(
        database=shown, version=found.version, newest=found.newest, pending=tuple(found.pending)
    )
    if state.state == "pending":
        finding = f"its schema is at version {found.version} of {found.newest}"
        return Examined(what="store", where=shown, finding=finding, fix="hourhand migrate up")
    if state.state == "newer":
        return Examined(
            what="store",
            where=shown,
            finding="its schema is newer than this program",
            fix="use a newer hourhand",
        )
    if abs(skew_s) > SKEW_S:
        finding = f"its clock is {skew_s:+.1f} s beside this machine's"
        return Examined(
            what="store", where=shown, finding=finding, fix="let both follow the same time server"
        )
    return Examined(what="store", where=shown, seen=f"schema {found.version}, clock {skew_s * 1000:+.0f} ms")


def _plain(url: str) -> str:
    from hourhand.stores.postgres.store import split_pooler

    return split_pooler(url)[0]


def _old_snapshot(where: str, snapshot: Snapshot) -> Examined:
    by = f"process {snapshot.process}" + (f", {clean(snapshot.program)}" if snapshot.program else "")
    return Examined(
        what="snapshot",
        where=where,
        finding=f"a transaction holds a snapshot for {snapshot.age_s / 60:.0f} min ({by}): what was deleted since stays on the disk",
        fix=f"end that process with pg_terminate_backend({snapshot.process}); idle_in_transaction_session_timeout keeps others from it",
    )


def _zones(facts: Iterable[StoreFacts]) -> Iterator[Examined]:
    """A node whose zone data is older than another's does not plan, so that all fire at the same times."""
    own, newest = tzdata_version(), max((one.tzdata for one in facts if one.tzdata), default=None)
    if newest is None:
        return
    if own < newest:
        finding = f"this machine has {own}, a process on the store had {newest}: a scheduler with older zone data does not plan"
        fix = "pip install --upgrade tzdata, on every machine alike"
        yield Examined(what="tzdata", where="", finding=finding, fix=fix)
    else:
        others = "" if own == newest else f"; processes on the store had {newest}"
        yield Examined(what="tzdata", where="", seen=f"{own}{others}")


def unserved(facts: Iterable[StoreFacts], *, alone: bool) -> Iterator[Examined]:
    """Functions that jobs call, and nobody who lives has."""
    workers: dict[int, NodeInfo] = {}
    called: set[CalledFunction] = set()
    for one in facts:
        called.update(one.called)
        workers |= {
            node.id: node for node in one.nodes if node.lease_until > one.now_at and node.kind in _WORKS
        }
    living = tuple(LiveWorker(name=node.name, serves=node.serves) for node in workers.values())
    serving = Serving(workers=living, alone=alone)
    missing = [(one.function, why) for one in sorted(called) if (why := obstacle(serving, _calling(one)))]
    if missing:
        names = list(dict.fromkeys(function for function, _ in missing))
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        finding = f"jobs call {', '.join(names[:_MOST_NAMED])}{more}: {missing[0][1].text}"
        yield Examined(what="functions", where="", finding=finding, fix=missing[0][1].change)
    elif called:
        seen = (
            f"{plural(len({one.function for one in called}), 'function')} that jobs call, each has a worker"
        )
        yield Examined(what="functions", where="", seen=seen)


def _calling(called: CalledFunction) -> JobSpec:
    target = PythonTarget(function=called.function)
    return JobSpec(timing=OnceTiming(at=0), target=target, pool=called.pool)
