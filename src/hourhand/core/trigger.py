"""The message that announces a run on a topic that others may read too: spelled as people spell it, with a version.

By default it holds references only: job, nominal time, fence, priority, due time and pool. On request it also tells
the job as it is now, but never its headers and environment, where credentials live. Both forms read back as the same
offer. The compact form for brokers that only hourhand reads is `core.offer`'s.
"""

from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec

from hourhand.core.identity import format_job_id, parse_job_id
from hourhand.core.instant import format_duration, format_instant, parse_instant
from hourhand.core.model import DEFAULT_POOL, Durability, HttpTarget, Job, ShellTarget, Target
from hourhand.core.offer import NotAnOffer, Offer
from hourhand.core.url import masked_url

_Name = Literal["HIGH", "MEDIUM", "LOW"]

_MANY = 4_096  # a herd shares its times

_written = lru_cache(_MANY)(format_instant)
_read = lru_cache(_MANY)(parse_instant)
_NAMES: tuple[_Name, ...] = ("HIGH", "MEDIUM", "LOW")  # by class


def encode_trigger(offer: Offer) -> bytes:
    """One line of JSON; with the job where the offer carries it."""
    if offer.job is not None:
        return _encoder.encode({**msgspec.to_builtins(_wire(offer)), **_job_fields(offer.job)})
    return _encoder.encode(_wire(offer))


def encode_reference(offer: Offer) -> bytes:
    """The same without the job, whatever the offer carries."""
    return _encoder.encode(_wire(offer))


def decode_trigger(text: bytes) -> Offer:
    """What was written, in either form; NotAnOffer where it cannot be read."""
    try:
        wire = _decoder.decode(text)
        return Offer(
            job_id=parse_job_id(wire.job_id),
            scheduled_at=_read(wire.scheduled_time),
            due_at=_read(wire.due),
            fence=wire.fence,
            run_class=_CLASSES[wire.priority],
            pool=wire.pool,
            durability=wire.durability,
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise NotAnOffer(f"not a trigger: {error}") from error


def trigger_key(offer: Offer) -> bytes:
    """What a topic is partitioned by: one job's runs keep their order."""
    return format_job_id(offer.job_id).encode()


class _Wire(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Version 1. A field that is added has a default; one whose meaning changes makes a new version."""

    version: Literal[1]
    job_id: str
    scheduled_time: str
    due: str
    fence: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    priority: _Name
    pool: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = DEFAULT_POOL
    durability: Durability = Durability.CRITICAL


def _wire(offer: Offer) -> _Wire:
    return _Wire(
        version=1,
        job_id=format_job_id(offer.job_id),
        scheduled_time=_written(offer.scheduled_at),
        due=_written(offer.due_at),
        fence=offer.fence,
        priority=_NAMES[offer.run_class],
        pool=offer.pool,
        durability=offer.durability,
    )


def _job_fields(job: Job) -> dict[str, Any]:
    spec = job.spec
    return {
        "tenant": job.tenant,
        "job_version": job.version,
        "name": spec.name,
        "key": spec.key,
        "tags": spec.tags,
        "target": _target(spec.target),
        "payload": spec.payload,
        "timeout": format_duration(spec.timeout_us),
        "delivery": spec.delivery,
    }


def _target(target: Target) -> dict[str, Any]:
    match target:
        case HttpTarget(url=url, method=method, timeout_us=timeout_us):
            return {
                "type": "http",
                "url": masked_url(url),
                "method": method,
                "timeout": format_duration(timeout_us),
            }
        case ShellTarget(argv=argv, cwd=cwd):
            return {"type": "shell", "argv": argv, "cwd": cwd}
        case _:
            return dict(msgspec.to_builtins(target))


_CLASSES = {name: run_class for run_class, name in enumerate(_NAMES)}
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Wire)
