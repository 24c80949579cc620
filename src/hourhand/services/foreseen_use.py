"""What a tenant would have after a request that writes nothing, and whether it may: by the judgement that stores make.

Each database is asked once for what there is; what is foreseen is added as documents are judged, the first ones first.
"""

from collections import Counter
from collections.abc import Iterable

from hourhand.core.identity import shard_of
from hourhand.core.model import Job, JobSpec
from hourhand.core.quota import (
    OverQuota,
    Room,
    Use,
    asked_by,
    asked_by_edit,
    over_by,
    over_by_edit,
    too_many_runs,
)
from hourhand.errors import HourhandError, Overloaded, TooLarge
from hourhand.ports.store import Store


class ForeseenUse:
    """A tenant's use in each database, with what documents would add. Raises what the store would refuse with."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._rooms: dict[int, Room] = {}
        self._specs: dict[int, JobSpec] = {}  # of jobs that would be changed, as they would become

    async def create(self, shard: int, spec: JobSpec) -> None:
        """Count a new job."""
        room = await self._room(shard)
        more = asked_by(room.quota, spec)
        self._take(shard, more, over_by(room, spec, more))

    async def change(self, job: Job, new: JobSpec) -> None:
        """Count what a job takes more than it has, or than it would have after a change before."""
        shard, old = shard_of(job.id), self._specs.get(job.id, job.spec)
        room = await self._room(shard)
        more = asked_by_edit(room.quota, old, new)
        self._take(shard, more, over_by_edit(room, old, new, more) or too_many_runs(room, more.runs))
        self._specs[job.id] = new

    async def run(self, job_ids: Iterable[int]) -> None:
        """Count a run of each; several of one job where it is named several times."""
        for shard, count in Counter(map(shard_of, job_ids)).items():
            room = await self._room(shard)
            self._take(shard, Use(runs=count), too_many_runs(room, count))

    async def _room(self, shard: int) -> Room:
        if shard not in self._rooms:
            found = await self._store.room(self._tenant, shard)
            self._rooms.setdefault(shard, found)  # another document may have been faster
        return self._rooms[shard]

    def _take(self, shard: int, more: Use, over: OverQuota | None) -> None:
        if over is not None:
            raise over_quota(over)
        self._rooms[shard] = self._rooms[shard].plus(more)


def over_quota(over: OverQuota) -> HourhandError:
    """The error for what a tenant may not have."""
    return TooLarge(over.why) if over.too_large else Overloaded(over.why, retry_after_s=over.retry_after_s)
