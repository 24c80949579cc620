"""Job documents into a world: parents before those who follow them, everything that is wrong told at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.model import Job
from hourhand.errors import HourhandError, Invalid
from hourhand.services.jobs import NewJob
from hourhand.simulation.world import World
from hourhand.web.documents import parse_document

Answer = Job | HourhandError


async def load(world: World, documents: Sequence[Mapping[str, Any]], now_at: int) -> list[Answer]:
    """A job for each document, in their order, or what is wrong with it. `after` names keys or ids of the others."""
    answers: dict[int, Answer] = {}
    known: dict[str, str] = {}  # key or id in the documents -> id in the world
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
        answers |= await _create(world, ready, known, now_at)
        for place, document in ready.items():
            del waiting[place]
            answer = answers[place]
            for name in _names(document):
                known[name] = format_job_id(answer.id) if isinstance(answer, Job) else ""
    return [answers[place] for place in range(len(documents))]


async def _create(
    world: World, ready: Mapping[int, Mapping[str, Any]], known: Mapping[str, str], now_at: int
) -> dict[int, Answer]:
    answers: dict[int, Answer] = {}
    news: dict[int, NewJob] = {}
    for place, document in ready.items():
        parents = [known[one] for one in _parents(document)]
        if not all(parents):
            answers[place] = Invalid("a job that it follows is not right")
            continue
        try:
            news[place] = parse_document({**document, **({"after": parents} if parents else {})}, now_at)
        except HourhandError as error:
            answers[place] = error
    created = await world.create(list(news.values()))
    return answers | dict(zip(news, created, strict=True))


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
