"""Reading of feeds with a deadline, and offers to read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from hourhand.core.model import Priority
from hourhand.core.offer import Offer
from hourhand.errors import Unavailable
from hourhand.ports.queue import Feed, Message

HIGH, MEDIUM, LOW = Priority
AT = 1_763_280_000_000_000
ROOM = {int(run_class): 1_000 for run_class in Priority}
DEADLINE_S = 30.0


def offer_of(job_id: int, run_class: int = MEDIUM, *, pool: str = "default", at: int = AT) -> Offer:
    """An offer of some job's run."""
    return Offer(job_id=job_id, scheduled_at=at, due_at=at + 5, fence=2, run_class=int(run_class), pool=pool)


async def read_until(
    feed: Feed,
    enough: Callable[[Sequence[Message]], bool],
    room: dict[int, int] | None = None,
    within_s: float = DEADLINE_S,
) -> list[Message]:
    """Everything that came, once it is enough; a broker that is away is waited for, as workers do."""
    found: list[Message] = []
    async with asyncio.timeout(within_s):
        while not enough(found):
            try:
                found += await feed.read(room or ROOM)
            except Unavailable:
                await asyncio.sleep(0.01)
    return found


async def read_many(feed: Feed, count: int, room: dict[int, int] | None = None) -> list[Message]:
    """So many messages."""
    return await read_until(feed, lambda found: len(found) >= count, room)


async def is_silent(feed: Feed) -> bool:
    """Whether a wait of its own brings nothing."""
    return not await feed.read(ROOM)


def jobs_of(messages: Sequence[Message]) -> list[int]:
    """Whose runs they are."""
    return [message.offer.job_id for message in messages]


async def until(holds: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
    """Return once it holds."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110  (what is watched happens in threads and at a server)
            await asyncio.sleep(0.01)


async def why_unavailable(ask: Callable[[], Awaitable[object]], within_s: float = DEADLINE_S) -> Unavailable:
    """Ask again and again until it is refused, and tell how."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                await ask()
            except Unavailable as error:
                return error


@contextlib.asynccontextmanager
async def reading(feed: Feed) -> AsyncIterator[list[int]]:
    """A worker that acknowledges whatever comes; tells whose runs they were."""
    seen: list[int] = []

    async def work() -> None:
        while True:
            found = await read_until(feed, bool)
            seen.extend(jobs_of(found))
            await feed.ack(found)

    task = asyncio.create_task(work())
    try:
        yield seen
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
