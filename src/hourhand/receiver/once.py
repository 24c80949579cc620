"""`exactly_once`: a receiver's effect happens once, whatever is delivered twice.

A row with the run's id is written in the receiver's own transaction, so that it is there exactly when the
effect is. A second delivery waits until the first has committed or rolled back, and is told which.

    first delivery    BEGIN  claim → first      effect  COMMIT
    second delivery   BEGIN  claim … waits …                    → not first, or first if the other rolled back
"""

from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, TypeVar

from hourhand.clock import Clock, SystemClock
from hourhand.core.calls import ATTEMPT_HEADER, RUN_HEADER, Headers, by_lower_name
from hourhand.core.instant import DAY_US, parse_duration
from hourhand.errors import Conflict, Invalid
from hourhand.receiver import effects
from hourhand.receiver.connections import Connection, Work, connection_of

T = TypeVar("T")

FORGET_AT_ONCE = 1_000  # rows
MIN_KEPT_US = DAY_US

_CLOCK = SystemClock()


class OldAttempt(Conflict):
    """A later attempt of the run has had the effect already; who sent this one was given up. Answer 409."""

    code = "old_attempt"


class ExactlyOnce:
    """A block around an effect: `with` a connection that blocks, `async with` one that is awaited.

    Gives whether the effect is still to happen. Where the block raises, what it wrote and the row are undone
    together, so that the next attempt starts anew. The transaction is its owner's to commit, after the block.
    """

    def __init__(self, connection: Connection, key: str, attempt: int | None, clock: Clock) -> None:
        self._connection = connection
        self._key = key
        self._attempt = attempt
        self._clock = clock

    def __enter__(self) -> bool:
        if self._connection.awaits:
            raise TypeError("this connection is awaited: use `async with exactly_once(…)`")
        return _run(self._claim())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        _run(self._leave(error))
        return False

    async def __aenter__(self) -> bool:
        if not self._connection.awaits:
            raise TypeError("this connection blocks: use `with exactly_once(…)`")
        return await _run_async(self._claim())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        await _run_async(self._leave(error))
        return False

    def _claim(self) -> Work[bool]:
        yield from self._connection.save()
        try:
            values = {"key": self._key, "attempt": self._attempt or 0, "now_at": self._clock.now()}
            claimed = yield from self._connection.change(effects.CLAIM, values)
            if claimed < 0:  # a wrong guess would lose the effect, or have it twice
                raise Invalid("exactly_once cannot tell whether its row is new: the driver does not say it")
            if not claimed:
                yield from self._check_attempt()
        except BaseException as error:
            yield from self._leave(error)
            raise
        return claimed > 0

    def _check_attempt(self) -> Work[None]:
        applied = yield from self._connection.look(effects.ATTEMPT, {"key": self._key})
        if applied is not None and self._attempt is not None and self._attempt < applied:
            raise OldAttempt(
                f"attempt {self._attempt} of {self._key} comes after attempt {applied} had its effect"
            )

    def _leave(self, error: BaseException | None) -> Work[None]:
        if error is None:
            yield from self._connection.keep()
            return
        try:
            yield from self._connection.undo()
        except Exception as trouble:  # what went wrong first is what its owner has to hear
            error.add_note(f"and could not be undone ({trouble}): do not commit this transaction")


def exactly_once(
    connection: Any, call: Headers | str, *, attempt: int | None = None, clock: Clock = _CLOCK
) -> ExactlyOnce:
    """Make an effect happen once: `with exactly_once(connection, headers) as first: if first: …`.

    `call` is the headers of a call that `verify` found genuine, or a key of your own with the number of the
    attempt, if there is one. The connection may be one of psycopg 3, asyncpg, sqlite3, aiosqlite or Django, or
    a connection or session of SQLAlchemy, to PostgreSQL or SQLite; the table is made by `EFFECTS_DDL`. OldAttempt
    says that a later attempt has been here.
    """
    if isinstance(call, str):
        key = call
    else:
        given = by_lower_name(call)
        key = given.get(RUN_HEADER, "")
        number = given.get(ATTEMPT_HEADER, "")
        if attempt is None and number:
            attempt = _number_in(number)
    if not 1 <= len(key) <= effects.MAX_EFFECT_KEY:
        raise Invalid(
            f"the key of an effect has 1 to {effects.MAX_EFFECT_KEY} characters, got {len(key)}; "
            f"of a call it is the header {RUN_HEADER}"
        )
    return ExactlyOnce(connection_of(connection), key, attempt, clock)


def forget_effects(
    connection: Any,
    older_than: str | timedelta = "30d",
    *,
    limit: int = FORGET_AT_ONCE,
    clock: Clock = _CLOCK,
) -> int:
    """Delete the oldest rows of effects, at most `limit`, and say how many; in your transaction, which you commit.

    Keep them for as long as a run may still be delivered: through all its tries, and while it could be requeued
    from the dead letters.
    """
    found = connection_of(connection)
    if found.awaits:
        raise TypeError("this connection is awaited: use forget_effects_async")
    return _run(_forget(found, older_than, limit, clock))


async def forget_effects_async(
    connection: Any,
    older_than: str | timedelta = "30d",
    *,
    limit: int = FORGET_AT_ONCE,
    clock: Clock = _CLOCK,
) -> int:
    """The same on a connection that is awaited."""
    found = connection_of(connection)
    if not found.awaits:
        raise TypeError("this connection blocks: use forget_effects")
    return await _run_async(_forget(found, older_than, limit, clock))


def _forget(connection: Connection, older_than: str | timedelta, limit: int, clock: Clock) -> Work[int]:
    seconds = older_than.total_seconds() if isinstance(older_than, timedelta) else older_than
    kept_us = parse_duration(seconds)
    if kept_us < MIN_KEPT_US:
        raise Invalid("effects are kept for at least a day: their runs may still be delivered again")
    if limit < 1:
        raise Invalid(f"limit is at least 1, got {limit}")
    values = {"before_at": clock.now() - kept_us, "most": limit}
    return (yield from connection.change(effects.FORGET, values))


def _number_in(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Invalid("Hourhand-Attempt is not what hourhand sends: it is a number")
    return int(text)


def _run(work: Work[T]) -> T:
    """Carry out work on a connection that blocks: what its methods returned is the answer already."""
    answer = None
    while True:
        try:
            answer = work.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


async def _run_async(work: Work[T]) -> T:
    """Carry out work on a connection whose methods are awaited."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = work.send(answer) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        answer = error = None
        try:
            answer = await step
        except BaseException as raised:  # also a cancellation: the savepoint is still to be undone
            error = raised
