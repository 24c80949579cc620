"""The use cases of operations: ask for one action on all that match, look at it, cancel it.

How many match is counted before anything is done, so that nobody changes more than they have seen. Carrying it out
is the matter of `services.operator`.
"""

import msgspec

from hourhand.clock import Clock
from hourhand.core.access import Principal
from hourhand.core.fault import Fault
from hourhand.core.identity import format_operation_id
from hourhand.core.operation import FIRST_COUNT, MAX_EXPECTED, MAX_NOTE, Operation, OperationSpec
from hourhand.errors import Conflict, Invalid, NotFound, Unavailable
from hourhand.ids import IdSource
from hourhand.ports.operations import OperationPage
from hourhand.ports.reading import DeadQuery, JobQuery
from hourhand.ports.store import Store

_COUNTED_AT_ONCE = 1_000


class Operations:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, ids: IdSource, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock

    async def create(
        self,
        tenant: str,
        spec: OperationSpec,
        by: Principal,
        *,
        expected_count: int | None = None,
        dry_run: bool = False,
    ) -> Operation:
        """Ask for it; Conflict where more match than were expected. A dry run only counts."""
        _check(spec, expected_count)
        most = FIRST_COUNT if expected_count is None else expected_count
        now_at = self._clock.now()
        matched, newest_id = await self._count(tenant, spec, most + 1)
        if expected_count is not None and matched > expected_count:
            raise Conflict(
                f"more match than the {expected_count:,} that were expected; look again, then say how many"
            )
        operation_id = 0 if dry_run else self._ids.job_id(0)
        operation = Operation(
            id=operation_id,
            tenant=tenant,
            spec=spec,
            subject=by.subject,
            via=by.via,
            matched=min(matched, most),
            is_all=matched <= most,
            created_at=now_at,
            updated_at=now_at,
            next_at=now_at,
            # Ids go by time, but an import of very many is a little ahead of it.
            mark=() if spec.action.is_of_letters else (max(operation_id, newest_id + 1),),
        )
        if not dry_run:
            await self._store.add_operation(operation)
        return operation

    async def get(self, tenant: str, operation_id: int) -> Operation:
        """One operation, or NotFound."""
        found = await self._store.get_operation(tenant, operation_id)
        if found is None:
            raise _unknown(operation_id)
        return found

    async def page(self, tenant: str, before_id: int | None, limit: int) -> OperationPage:
        """A page of operations, newest first."""
        return await self._store.list_operations(tenant, before_id, limit)

    async def cancel(self, tenant: str, operation_id: int, *, dry_run: bool = False) -> Operation:
        """End it where it is; what is done stays done."""
        if dry_run:
            found = await self.get(tenant, operation_id)
            if found.state == "done":
                raise Conflict(f"the operation {format_operation_id(operation_id)} is done already")
            return found
        found_or_none = await self._store.cancel_operation(tenant, operation_id)
        if found_or_none is None:
            raise _unknown(operation_id)
        return found_or_none

    async def _count(self, tenant: str, spec: OperationSpec, most: int) -> tuple[int, int]:
        """How many match, counted up to a bound, and the newest job among them."""
        if spec.action.is_of_letters:
            return await self._count_letters(tenant, letters_of(spec), most), 0
        query: JobQuery | None = jobs_of(spec)
        count = newest_id = 0
        while query is not None and count < most:
            page = await self._store.list_jobs(
                tenant, msgspec.structs.replace(query, limit=min(_COUNTED_AT_ONCE, most - count))
            )
            _check_all_answered(page.missing)
            count += len(page.jobs)
            newest_id = max([newest_id, *(job.id for job in page.jobs[:1])])
            onward = page.next_before_id
            query = None if onward is None else msgspec.structs.replace(query, before_id=onward)
        return count, newest_id

    async def _count_letters(self, tenant: str, first: DeadQuery, most: int) -> int:
        query: DeadQuery | None = first
        count = 0
        while query is not None and count < most:
            page = await self._store.dead_letters(
                tenant, msgspec.structs.replace(query, limit=min(_COUNTED_AT_ONCE, most - count))
            )
            _check_all_answered(page.missing)
            count += len(page.letters)
            onward = page.next_before
            query = None if onward is None else msgspec.structs.replace(query, before=onward)
        return count


def jobs_of(spec: OperationSpec) -> JobQuery:
    """The jobs that an operation is about, as the store is asked for them."""
    asked = spec.jobs
    return JobQuery(
        state=asked.state,
        tag=asked.tag,
        set_name=asked.set_name,
        name_prefix=asked.name_prefix,
        failing=asked.failing,
    )


def letters_of(spec: OperationSpec) -> DeadQuery:
    """The dead letters that an operation is about, as the store is asked for them."""
    asked = spec.letters
    return DeadQuery(
        job_id=asked.job_id,
        fingerprint=asked.fingerprint,
        failed_from=asked.failed_from,
        failed_to=asked.failed_to,
    )


def _check(spec: OperationSpec, expected_count: int | None) -> None:
    if spec.note is not None and len(spec.note) > MAX_NOTE:
        fault = Fault(pointer="/note", expected=f"at most {MAX_NOTE} characters", got=f"{len(spec.note):,}")
        raise Invalid(f"note: expected {fault.expected}", [fault])
    if expected_count is not None and not 0 <= expected_count <= MAX_EXPECTED:
        fault = Fault(pointer="/expected_count", expected=f"0 to {MAX_EXPECTED:,}", got=f"{expected_count:,}")
        raise Invalid(f"expected_count: expected {fault.expected}", [fault])


def _check_all_answered(missing: tuple[int, ...]) -> None:
    if missing:  # to count some would look like having counted all
        away = " and ".join(f"shard {shard}" for shard in missing)
        raise Unavailable(f"not all that match are known while {away} cannot be reached")


def _unknown(operation_id: int) -> NotFound:
    return NotFound(f"there is no operation {format_operation_id(operation_id)}")
