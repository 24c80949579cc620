"""A process that dies in the middle of a change, before or after it has written who asked for it.

python -m tests.contract.deed_killed WHERE WHEN
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from hourhand.clock import ManualClock
from hourhand.core.access import Via
from hourhand.ports.acting import Actor, acting_for
from hourhand.ports.store import Store
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.postgres.engine import PostgresTx
from hourhand.stores.sqlite import SqliteStore
from hourhand.stores.sqlite.engine import SqliteTx
from tests.contract.builders import draft

ID = 77


def die_at_the_deed(kind: Any, moment: str) -> None:
    run = kind.run

    async def dying(self: Any, name: str, parameters: Any = ()) -> int:
        if name == "add_creations" and moment == "before":
            os._exit(9)
        count: int = await run(self, name, parameters)
        if name == "add_creations":
            os._exit(9)
        return count

    kind.run = dying


async def main(where: str, moment: str) -> None:
    store: Store
    if where.startswith("postgres"):
        store = await PostgresStore.open(where)
        die_at_the_deed(PostgresTx, moment)
    else:
        store = SqliteStore.open(Path(where), clock=ManualClock())
        die_at_the_deed(SqliteTx, moment)
    with acting_for(Actor(subject="ann", via=Via.TOKEN)):
        await store.create_jobs([draft(id=ID)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
