"""Job documents into a world: parents before those who follow them, everything that is wrong told at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.instant import parse_instant
from hourhand.core.model import Job
from hourhand.errors import HourhandError, Invalid
from hourhand.services.jobs import NewJob
from hourhand.simulation.world import World
from hourhand.web.documents import parse_document

Answer = Job | HourhandError


async def load(
    world: World,
    documents: Sequence[Mapping[str, Any]],
    now_at: int,
    *,
    there: Sequence[Job] = (),
    not_before: int | None = None,
) -> list[Answer]:
    """A job for each document, in their order, or what is wrong with it.

    `after` names keys or ids of the others, or of jobs that are there. No job has a time before `not_before`.
    """
    answers: dict[int, Answer] = {}
    known = {
        name: format_job_id(job.id) for job in there for name in (job.spec.key, format_job_id(job.id)) if name
    }
    waiting = dict(enumerate(documents))
    while waiting:
        ready = {
            place: document
            for place, document in waiting.items()
            if all(one in known for one in _parents(document))
        }
        if not ready:
            answers |= {place: _lost(document, known) for place, document in waiting.items()}
            break
        news, refused = _read(ready, known, now_at, not_before)
        created = await world.create(list(news.values()))
        answers |= refused | dict(zip(news, created, strict=True))
        for place, document in ready.items():
            del waiting[place]
            answer = answers[place]
            for name in _names(document):
                known[name] = format_job_id(answer.id) if isinstance(answer, Job) else ""
    return [answers[place] for place in range(len(documents))]


def over_before(documents: Sequence[Mapping[str, Any]], start_at: int) -> set[int]:
    """The places of those that have no time from here on: theirs have passed, or those of a job that they follow."""
    over = {
        place
        for place, document in enumerate(documents)
        if any(_is_before(document.get(field), start_at) for field in ("at", "ends_at"))
    }
    names = {name for place in over for name in _names(documents[place])}
    while followers := {
        place
        for place, document in enumerate(documents)
        if place not in over and not names.isdisjoint(_parents(document))
    }:
        over |= followers
        names |= {name for place in followers for name in _names(documents[place])}
    return over


def _is_before(text: object, start_at: int) -> bool:
    """Whether it is a time that has passed; what is no time is refused elsewhere."""
    try:
        return isinstance(text, str) and parse_instant(text) < start_at
    except ValueError:
        return False


def _read(
    ready: Mapping[int, Mapping[str, Any]], known: Mapping[str, str], now_at: int, not_before: int | None
) -> tuple[dict[int, NewJob], dict[int, Answer]]:
    """The jobs that documents ask for, and what is wrong with the others."""
    refused: dict[int, Answer] = {}
    news: dict[int, NewJob] = {}
    for place, document in ready.items():
        parents = [known[one] for one in _parents(document)]
        if not all(parents):
            refused[place] = Invalid("a job that it follows is not right")
            continue
        try:
            new = parse_document({**document, **({"after": parents} if parents else {})}, now_at)
        except HourhandError as error:
            refused[place] = error
        else:
            news[place] = new if not_before is None else _bounded(new, not_before)
    return news, refused


def _bounded(new: NewJob, not_before: int) -> NewJob:
    if new.spec.rule is None:
        return new
    starts_at = max(not_before, new.spec.starts_at or not_before)
    return msgspec.structs.replace(new, spec=msgspec.structs.replace(new.spec, starts_at=starts_at))


def _parents(document: Mapping[str, Any]) -> list[str]:
    after = document.get("after")
    return [one for one in after if isinstance(one, str)] if isinstance(after, list) else []


def _names(document: Mapping[str, Any]) -> list[str]:
    return [str(document[field]) for field in ("key", "job_id") if document.get(field)]


def _lost(document: Mapping[str, Any], known: Mapping[str, str]) -> Invalid:
    faults = [
        Fault(
            pointer=f"/after/{index}",
            expected="the key of a job beside it, and no cycle",
            got=one[:80],
        )
        for index, one in enumerate(_parents(document))
        if one not in known
    ]
    return Invalid("it follows a job that is not there", faults)
