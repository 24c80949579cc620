"""Operations on kept answers, and the mark by which a change under a promise is known to have happened.

`marked` is put around every operation that an engine writes: it adds one statement, and only under a promise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hourhand.core.repeating import KEPT_US, Answer, Fate, Turn, judge, taken
from hourhand.errors import Conflict
from hourhand.ports.answers import Asked, Begun, Past, Promise, leaves_traces, promise
from hourhand.ports.store import JobDraft
from hourhand.stores.relational.tx import Operation, T, Tx

_HEADERS = msgspec.json.Decoder(dict[str, str])
_MARKS_KEPT_US = 2 * KEPT_US  # longer than any answer that they are about


async def begin_answer(tx: Tx, asked: Asked) -> Begun:
    """Take a turn with a key, or say why not."""
    first = taken(None, Fate.NEW, asked.sum, tx.now_at)
    if await tx.run("add_answer", _values(asked, first)):
        return Begun(fate=Fate.NEW, fence=first.fence, since=first.since)
    row = await tx.one("lock_answer", (asked.tenant, asked.key))
    await tx.look_at_clock()
    turn = _turn(row)
    fate = judge(turn, asked.sum, tx.now_at)
    match fate:
        case Fate.NEW | Fate.AGAIN:
            turn = taken(turn, fate, asked.sum, tx.now_at)
            await tx.run("retake_answer", _values(asked, turn))
            return Begun(fate=fate, fence=turn.fence, since=turn.since)
        case Fate.REPLAY:
            answer = Answer(status=row[5], headers=_HEADERS.decode(row[6]), body=bytes(row[7]))
            return Begun(fate=fate, answer=answer)
        case Fate.IN_FLIGHT:
            return Begun(fate=fate, retry_after_us=turn.lease_until - tx.now_at)
        case _:
            return Begun(fate=fate)


async def fence_off(tx: Tx, tenant: str, key: str, fence: int, since: int) -> Past:
    """Refuse earlier fences in this database; what they had changed here."""
    await _mark(tx, tenant, key, fence, since, applied=False)
    applied = (await tx.one("answer_applied", (tenant, key)))[0]
    made = {row[0]: row[1] for row in await tx.all("answer_makes_of", (tenant, key, since))}
    return Past(applied=bool(applied), made=made)


async def finish_answer(tx: Tx, tenant: str, key: str, fence: int, answer: Answer) -> bool:
    """Keep the answer of whoever still has the turn."""
    headers = msgspec.json.encode(answer.headers).decode()
    return await tx.run("finish_answer", (tenant, key, fence, answer.status, headers, answer.body)) > 0


async def abandon_answer(tx: Tx, tenant: str, key: str, fence: int) -> None:
    """End the lease of whoever still has the turn."""
    await tx.run("abandon_answer", (tenant, key, fence, tx.now_at))


async def note_made(tx: Tx, made: Mapping[int, JobDraft]) -> None:
    """Note jobs of promised requests under their places, in the transaction that makes them."""
    rows = [
        (draft.tenant, draft.numbered.key, draft.numbered.since, draft.numbered.place, job_id, tx.now_at)
        for job_id, draft in made.items()
        if draft.numbered is not None
    ]
    if rows:
        await tx.insert("add_answer_make", rows)


async def purge_answers(tx: Tx, limit: int) -> bool:
    """Forget answers after a day, and their marks after they can matter; True while there are more."""
    counts = [
        await tx.run("purge_answers", (tx.now_at - KEPT_US, limit)),
        await tx.run("purge_answer_marks", (tx.now_at - _MARKS_KEPT_US, limit)),
        await tx.run("purge_answer_makes", (tx.now_at - _MARKS_KEPT_US, limit)),
    ]
    return max(counts) >= limit


def marked(operation: Operation[T]) -> Operation[T]:
    """The same operation, and under a promise its mark in the same transaction. Asked for on the caller's task."""
    made_under = promise()
    if made_under is None:
        return operation
    return _with_mark(operation, made_under, leaves_traces())


def _with_mark(operation: Operation[T], under: Promise, applied: bool) -> Operation[T]:
    async def both(tx: Tx) -> T:
        result = await operation(tx)
        await _mark(tx, under.tenant, under.key, under.fence, under.since, applied=applied)
        return result

    return both


async def _mark(tx: Tx, tenant: str, key: str, fence: int, since: int, *, applied: bool) -> None:
    marked_rows = await tx.run(
        "mark_answer",
        {
            "tenant": tenant,
            "key": key,
            "fence": fence,
            "since": since,
            "applied": int(applied),
            "made_at": tx.now_at,
        },
    )
    if not marked_rows:
        raise Conflict(
            "another request with the same Idempotency-Key has taken over; this one changed nothing"
        )


def _values(asked: Asked, turn: Turn) -> dict[str, Any]:
    return {
        "tenant": asked.tenant,
        "key": asked.key,
        "sum": turn.sum,
        "fence": turn.fence,
        "since": turn.since,
        "lease_until": turn.lease_until,
        "began_at": turn.began_at,
    }


def _turn(row: Sequence[Any]) -> Turn:
    """From a row in the order of `lock_answer`."""
    return Turn(
        sum=bytes(row[0]),
        fence=row[1],
        since=row[2],
        lease_until=row[3],
        began_at=row[4],
        is_answered=row[5] is not None,
    )
