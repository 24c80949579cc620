"""Events: what happened to runs and jobs, for whoever watches. Nothing depends on one arriving.

Contract of a bus: `publish` neither blocks nor raises, and may lose or delay a batch; history is the truth.
A subscriber hears each batch at most once, on the event loop, its own process' batches too. A batch with
`gap` set says that others may have been lost before it. An event never carries a payload, a header, or
more of an error than its first line.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import format_instant

MAX_EVENTS = 40  # of one batch
MAX_BATCH_BYTES = 7_500  # encoded, so that it fits into a NOTIFY of under 8,000 with its sender's name
MAX_TEXT = 200  # characters of an error, a reason or a name


class EventType(StrEnum):
    """What can happen, as clients name it."""

    RUN_SUCCEEDED = "run.succeeded"
    RUN_FAILED = "run.failed"
    RUN_RETRYING = "run.retrying"
    RUN_SKIPPED = "run.skipped"
    RUN_CANCELLED = "run.cancelled"
    RUN_PROGRESS = "run.progress"
    JOB_CREATED = "job.created"
    JOB_CHANGED = "job.changed"
    JOB_PAUSED = "job.paused"
    JOB_RESUMED = "job.resumed"
    JOB_DELETED = "job.deleted"


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The little that an event tells by itself; the rest is read by its ids."""

    state: str  # of the run or the job, afterwards
    name: str | None = None  # of the job
    lag_ms: int | None = None
    took_ms: int | None = None
    attempt: int | None = None
    error: str | None = None
    reason: str | None = None
    version: int | None = None
    progress: float | None = None  # from 0 to 1
    message: str | None = None  # beside a progress


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One thing that happened. Field order is the wire's."""

    id: str  # unique over the cluster; grows with time, per publisher strictly
    type: EventType
    tenant: str
    at: int
    job_id: int
    scheduled_at: int | None  # of the run, where it is about one
    data: EventData

    @property
    def public_job_id(self) -> str:
        """The job's id as people see it."""
        return format_job_id(self.job_id)

    @property
    def run_id(self) -> str | None:
        """The run's id as people see it."""
        return None if self.scheduled_at is None else format_run_id(self.job_id, self.scheduled_at)


Counts = Mapping[str, Mapping[EventType, int]]  # how many of each type, by tenant


class EventBatch(msgspec.Struct, frozen=True, array_like=True):
    """Some events, and how many more there were of each type that it has no room for."""

    events: tuple[Event, ...] = ()
    counts: dict[str, dict[EventType, int]] = {}
    gap: bool = False  # batches before this one may have been lost


class EventBus(Protocol):
    """Carries batches to every process that listens, this one included."""

    def publish(self, batch: EventBatch) -> None:
        """Send it on its way."""
        ...

    def subscribe(self, heard: Callable[[EventBatch], None]) -> Callable[[], None]:
        """Hear every batch from now on; the answer ends that."""
        ...


def encode_batch(batch: EventBatch) -> str:
    """A batch as text, for the wire."""
    return _ENCODER.encode(batch).decode()


def decode_batch(text: str) -> EventBatch:
    """The batch behind a text; ValueError where it is none."""
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a batch of events: {error}") from None


def event_document(event: Event) -> dict[str, Any]:
    """An event as clients and webhooks read it."""
    return {
        "id": event.id,
        "type": event.type,
        "at": format_instant(event.at),
        "job_id": event.public_job_id,
        "run_id": event.run_id,
        "data": event.data,
    }


def first_line(value: Any) -> str | None:
    """As much of an error or a reason as an event tells."""
    lines = str(value).strip().splitlines() if value else []
    return cut(lines[0]) if lines else None


def cut(text: str) -> str | None:
    """As much of a text as an event has room for."""
    if len(text) > MAX_TEXT:
        return f"{text[: MAX_TEXT - 1]}…"
    return text or None


def encoded_bytes(event: Event) -> int:
    """How much room an event takes in an encoded batch, its comma included."""
    return len(_ENCODER.encode(event)) + 1


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(EventBatch)
