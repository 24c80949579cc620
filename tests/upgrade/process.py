"""One process of some version that makes one-time jobs and does what it finds, until its input ends.

Run as a script, with the source of that version on the path: it may use only what both versions have. Prints a
line for each round, and in the end what it made and did.
"""

import asyncio
import json
import sys

from hourhand.core.lifecycle import Event
from hourhand.core.model import DEFAULT_POOL, DEFAULT_TENANT, JobSpec, OnceTiming, PythonTarget
from hourhand.core.run import Settlement
from hourhand.ports.store import ClaimRequest, JobDraft
from hourhand.stores.postgres import PostgresStore

LEASE_US = 3_600_000_000
TARGET = PythonTarget(function="tests:noop")


class Work:
    """What one process does."""

    def __init__(self, store: PostgresStore, node_id: int) -> None:
        self._store = store
        self._node_id = node_id
        self.made: list[int] = []
        self.done: list[int] = []

    async def round(self, make: int) -> int:
        now_at = await self._store.now()
        first = self._node_id << 40 | len(self.made)
        drafts = [
            JobDraft(
                id=first + n,
                tenant=DEFAULT_TENANT,
                spec=JobSpec(timing=OnceTiming(at=now_at + n), target=TARGET),
            )
            for n in range(make)
        ]
        if drafts:
            self.made += [job.id for job in await self._store.create_jobs(drafts)]
        request = ClaimRequest(node_id=self._node_id, pools=(DEFAULT_POOL,), room=10, lead_us=0)
        runs = (await self._store.claim(request)).runs
        ended = [
            Settlement(
                job_id=run.job_id,
                scheduled_at=run.scheduled_at,
                slot=run.slot,
                fence=run.fence,
                event=Event.SUCCEED,
                version=run.version,
                tries=0,
                started_at=now_at,
                finished_at=now_at,
            )
            for run in runs
        ]
        if await self._store.settle("w", ended):
            raise AssertionError("an outcome was refused")
        self.done += [run.job_id for run in runs]
        return len(runs)


async def main(url: str, node_id: int) -> None:
    store = await PostgresStore.open(url)
    await store.renew_node(node_id, "worker", str(node_id), LEASE_US)
    work = Work(store, node_id)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not ended.done():
        await work.round(5)
        print("round", flush=True)
    while await work.round(0):
        pass
    print(json.dumps({"made": work.made, "done": work.done}), flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
