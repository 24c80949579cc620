"""No statement scans a table that grows: every one is explained, and executed, on a database of some size.

Plans are made as the store makes them: once, for all parameters. So they are looked at as they were made on an
empty database, which is when a new cluster's connections make them; once the server knows its tables; and in an
idle hour, when the hot tables were cleaned up and look as if they never had a row; and in a flood, when a lane has
more than the jobs that a cheap join would read all. What counts is what a statement really handles: an index that is
read from end to end is no better than a scan of its table.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import asyncpg
import pytest

from hourhand.stores.postgres.engine import _SETTINGS
from hourhand.stores.postgres.statements import statements
from tests.servers.postgres import PostgresServer, require_postgres
from tests.servers.postgres_databases import run_apart
from tests.stores.postgres_at_size import analyse, empty_hot, fill, fill_hot, flood, make
from tests.stores.postgres_examples import EXAMPLES, FEW

SMALL_TABLES = {"pools", "segments", "nodes", "meta"}  # as many rows as there are processes and settings
_COUNTS = (
    "Actual Rows",
    "Rows Removed by Filter",
    "Rows Removed by Index Recheck",
    "Rows Removed by Join Filter",
)


class Part(NamedTuple):
    """A part of a plan, and how many rows it really handled."""

    kind: str
    table: str | None
    handled: int
    condition: str | None


Plans = Mapping[str, list[Part] | Exception]


@pytest.fixture(scope="module")
def plans() -> dict[str, Plans]:
    """The plans of all statements, made on an empty database and on a full one, executed on the full one.

    On a server of its own, where nothing has a plan made again in between: no other databases, and no cleaning up,
    which of the server's own tables alone keeps ours from being cleaned up at the moment when they are to be.
    """
    require_postgres()
    with PostgresServer(settings={"autovacuum": "off"}) as server:
        return run_apart(_explain_all(server.create_database()))


def test_every_statement_has_an_example() -> None:
    assert set(EXAMPLES) == set(statements())


def test_examples_that_handle_much_say_why() -> None:
    assert not [name for name, example in EXAMPLES.items() if (example.most > FEW) != bool(example.why)]


@pytest.mark.parametrize("made", ["when empty", "when full", "when idle", "when flooded"])
@pytest.mark.parametrize("name", sorted(statements()))
def test_a_statement_scans_no_table_that_grows(plans: dict[str, Plans], made: str, name: str) -> None:
    plan = plans[made][name]
    if isinstance(plan, Exception):
        raise plan
    scanned = [part.table for part in plan if part.kind == "Seq Scan" and part.table not in SMALL_TABLES]
    assert not scanned, f"{name} scans {scanned}"
    handled = max((part.handled for part in plan), default=0)
    assert handled <= EXAMPLES[name].most, [part for part in plan if part.handled > EXAMPLES[name].most]


def test_examples_meet_rows(plans: dict[str, Plans]) -> None:
    """An example that finds nothing proves nothing; these may, for they ask whether something is not there."""
    by_nature = {
        "is_live", "run_exists", "run_is_live", "take_given", "version_tenant", "request_key", "take_idle_row",
        "drop_idle_node", "take_dead", "hold_hand", "now", "drop_dead_of", "misfires_of",
            "open_attempt_at",
    }  # fmt: skip
    plans_of = {name: plan for name, plan in plans["when full"].items() if not isinstance(plan, Exception)}
    assert not {name for name, plan in plans_of.items() if not any(part.handled for part in plan)} - by_nature


async def _explain_all(url: str) -> dict[str, Plans]:
    await make(url)
    young: Any = await asyncpg.connect(url, server_settings=_SETTINGS)
    grown: Any = await asyncpg.connect(url, server_settings=_SETTINGS)
    idle: Any = await asyncpg.connect(url, server_settings=_SETTINGS)
    flooded: Any = await asyncpg.connect(url, server_settings=_SETTINGS)
    try:
        await _prepare(young)  # and plan, while there is nothing
        await fill(url)
        made_when_empty = await _execute_all(young)
        await analyse(url)
        await _prepare(grown)
        made_when_full = await _execute_all(grown)
        await empty_hot(url)
        await _prepare(idle)
        await fill_hot(url)
        made_when_idle = await _execute_all(idle)
        await flood(url)
        await _prepare(flooded)
        made_when_flooded = await _execute_all(flooded)
    finally:
        for connection in (young, grown, idle, flooded):
            connection.terminate()
    return {
        "when empty": made_when_empty,
        "when full": made_when_full,
        "when idle": made_when_idle,
        "when flooded": made_when_flooded,
    }


async def _prepare(connection: Any) -> None:
    for name, statement in statements().items():
        await connection.execute(f"PREPARE {name} AS {statement.text}")
        with contextlib.suppress(Exception):  # said when it is executed
            await _explain(connection, name)


async def _execute_all(connection: Any) -> Plans:
    found: dict[str, list[Part] | Exception] = {}
    for name in statements():
        try:
            found[name] = await _explain(connection, name, "ANALYZE, TIMING OFF")
        except (asyncpg.PostgresError, KeyError) as error:  # of one statement, which fails its own test
            found[name] = error
    return found


async def _explain(connection: Any, name: str, options: str = "COSTS OFF") -> list[Part]:
    """The parts of a statement's plan; what it changes when it is executed is given up."""
    names, parameters = statements()[name].names, EXAMPLES[name].parameters
    values = [parameters[name] for name in names] if isinstance(parameters, dict) else list(parameters)
    given = f"({', '.join(map(_literal, values))})" if values else ""
    await connection.execute("BEGIN")
    try:
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON, {options}) EXECUTE {name}{given}")
    finally:
        await connection.execute("ROLLBACK")
    return list(_parts(json.loads(text)[0]["Plan"]))


def _parts(plan: dict[str, Any]) -> Iterator[Part]:
    handled = sum(plan.get(count, 0) for count in _COUNTS) * plan.get("Actual Loops", 0)
    condition = plan.get("Index Cond") or plan.get("Recheck Cond")
    yield Part(plan["Node Type"], plan.get("Relation Name"), handled, condition)
    for part in plan.get("Plans", ()):
        yield from _parts(part)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case int():
            return str(value)
        case bytes():
            return f"'\\x{value.hex()}'"
        case list():
            return f"'{{{','.join(map(_element, value))}}}'"
        case _:
            return f"'{value}'"


def _element(value: Any) -> str:
    return "NULL" if value is None else json.dumps(value) if isinstance(value, str) else str(value)
