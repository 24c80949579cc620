"""Carries out operations: one bounded page of each per step, on behalf of whoever asked.

Holds nothing. Doing something to a thing twice changes nothing more (what is paused is left alone, a run is asked for
under the operation's own key, what is gone is gone), so two that do this at once, or one that dies before the mark has
moved, do no harm. Who moved the mark first has counted; the other begins the page again from there.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from hourhand.core.identity import RunKey, format_job_id, format_operation_id
from hourhand.core.instant import SECOND_US
from hourhand.core.model import Job, JobState
from hourhand.core.operation import Action, Failure, Operation, Step, advanced, allowance
from hourhand.errors import Conflict, Invalid, NotFound, Overloaded
from hourhand.ports.acting import Actor, acting_for
from hourhand.ports.store import Store
from hourhand.services.jobs import Jobs
from hourhand.services.operations import jobs_of, letters_of
from hourhand.services.runs import Runs

OPERATIONS = 20  # that one step looks at
PERIOD_US = SECOND_US // 10  # between looks at those that have a pace
AT_ONCE = 16  # changes under way
_REASON = 200  # characters of a failure

Did = bool | Failure  # True: done; False: there was nothing to do


class Operator:
    """One step at a time over all operations that are not over."""

    def __init__(self, *, store: Store, jobs: Jobs, runs: Runs) -> None:
        self._store = store
        self._jobs = jobs
        self._runs = runs
        self._after_id = 0

    async def step(self, now_at: int) -> int | None:
        """Carry out a page of each; answers when to look again, None when there are none."""
        found = await self._store.unfinished_operations(self._after_id, OPERATIONS)
        begins = self._after_id == 0
        self._after_id = found[-1].id if len(found) == OPERATIONS else 0
        wakes = [await self._carry_on(one, now_at) for one in found]
        if not wakes:
            return None if begins else now_at
        return now_at if self._after_id else min(wakes)

    async def _carry_on(self, operation: Operation, now_at: int) -> int:
        """A page of one operation; when it wants the next."""
        room = allowance(operation, now_at)
        if room == 0:
            return max(operation.next_at, now_at + PERIOD_US)
        with acting_for(_actor(operation)):
            done = await (
                self._letters(operation, room)
                if operation.spec.action.is_of_letters
                else self._page_of_jobs(operation, room)
            )
        await self._store.move_operation(advanced(operation, done, now_at))
        return now_at if operation.spec.pace_us is None else now_at + PERIOD_US

    async def _page_of_jobs(self, operation: Operation, room: int) -> Step:
        query = msgspec.structs.replace(jobs_of(operation.spec), before_id=operation.mark[0], limit=room)
        page = await self._store.list_jobs(operation.tenant, query)
        did: list[Did] = []
        for start in range(0, len(page.jobs), AT_ONCE):
            some = page.jobs[start : start + AT_ONCE]
            did += await asyncio.gather(*(self._try(operation, job) for job in some))
        onward = page.next_before_id
        return _step(did, None if onward is None else (onward,))

    async def _try(self, operation: Operation, job: Job) -> Did:
        try:
            return await self._do(operation, job)
        except NotFound:
            return False  # somebody deleted it meanwhile
        except (Conflict, Invalid, Overloaded) as error:
            return Failure(format_job_id(job.id), error.message[:_REASON])

    async def _do(self, operation: Operation, job: Job) -> bool:
        tenant, note = operation.tenant, operation.spec.note
        match operation.spec.action:
            case Action.PAUSE:
                if job.state is not JobState.ACTIVE:
                    return False
                await self._jobs.pause(tenant, job.id, note=note)
            case Action.RESUME:
                if job.state is not JobState.PAUSED:
                    return False
                await self._jobs.resume(tenant, job.id)
            case Action.RUN:
                await self._jobs.run_now(tenant, job.id, request_key=format_operation_id(operation.id))
            case _:
                await self._jobs.delete(tenant, job.id)
        return True

    async def _letters(self, operation: Operation, room: int) -> Step:
        asked = letters_of(operation.spec)
        until = (
            operation.created_at if asked.failed_to is None else min(asked.failed_to, operation.created_at)
        )
        mark = operation.mark
        query = msgspec.structs.replace(
            asked, failed_to=until, before=(mark[0], mark[1], mark[2]) if mark else None, limit=room
        )
        page = await self._store.dead_letters(operation.tenant, query)
        keys = [RunKey(letter.job_id, letter.scheduled_at) for letter in page.letters]
        changed = await self._change(operation, keys) if keys else []
        did: list[Did] = [key in changed for key in keys]
        return _step(did, page.next_before)

    async def _change(self, operation: Operation, keys: Sequence[RunKey]) -> set[RunKey]:
        if operation.spec.action is Action.REQUEUE:
            return set(await self._runs.requeue(operation.tenant, keys))
        return set(await self._runs.discard(operation.tenant, keys))


def _step(did: Sequence[Did], mark: tuple[int, ...] | None) -> Step:
    return Step(
        mark=mark,
        done=sum(one is True for one in did),
        left_alone=sum(one is False for one in did),
        failures=tuple(one for one in did if isinstance(one, Failure)),
    )


def _actor(operation: Operation) -> Actor:
    return Actor(subject=operation.subject, via=operation.via, request_id=format_operation_id(operation.id))
