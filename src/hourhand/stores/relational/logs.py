"""Operations on what attempts wrote."""

from collections.abc import Sequence

from hourhand.core.identity import RunKey
from hourhand.core.log import STREAM_CODES, STREAMS, LogChunk, LogPlace
from hourhand.stores.relational.tx import Tx

_MOST = (1 << 31) - 1  # attempts and chunks are counted in 32 bits


async def append_log(tx: Tx, chunks: Sequence[LogChunk]) -> None:
    """Add chunks; those that are there already stay as they are."""
    rows = sorted(
        (
            chunk.job_id,
            chunk.scheduled_at,
            chunk.attempt,
            chunk.seq,
            chunk.at,
            STREAM_CODES[chunk.stream],
            chunk.text,
        )
        for chunk in chunks
    )
    await tx.insert("add_log", rows)


async def read_log(
    tx: Tx, key: RunKey, after: LogPlace, last_attempt: int | None, limit: int
) -> list[LogChunk]:
    """Chunks of a run behind a place, in order."""
    last = _MOST if last_attempt is None else min(last_attempt, _MOST)
    place = {"attempt": min(after.attempt, _MOST), "seq": min(after.seq, _MOST)}
    rows = await tx.all(
        "log_of",
        {"job_id": key.job_id, "scheduled_at": key.scheduled_at, **place, "last": last, "limit": limit},
    )
    return [
        LogChunk(
            job_id=key.job_id,
            scheduled_at=key.scheduled_at,
            attempt=attempt,
            seq=seq,
            at=at,
            stream=STREAMS[stream],
            text=text,
        )
        for attempt, seq, at, stream, text in rows
    ]
