"""Names that only the server knows, asked for with little patience: whoever presses a key must not wait, or read an error."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from hourhand.cli.completion.lines import (
    BACKFILL,
    JOB,
    OPERATION,
    RUN,
    SET,
    TAG,
    TENANT,
    TOKEN,
    WEBHOOK,
    ZONE,
    Place,
)
from hourhand.core.instant import DAY_US, format_instant

PATIENCE_S = 1.0
MOST = 100
_DEAD = ("dlq",)


def looked_up(place: Place) -> list[tuple[str, str]]:
    """What may follow where a value of some kind is wanted; nothing where the server does not answer at once."""
    if place.kind == ZONE:
        from hourhand.core.schedule.zone import zone_names

        return [(name, "") for name in zone_names()]
    ask = _ASKED.get(place.kind or "")
    if ask is None:
        return []
    with suppress(Exception):  # a wrong URL, no server, no right to ask: whatever it is, this is not the time
        return list(_asked(place, ask))
    return []


def _asked(place: Place, ask: Callable[[Any, Place], Iterator[tuple[str, str]]]) -> list[tuple[str, str]]:
    from hourhand.client import Client

    server, tenant = place.options.get("--server"), place.options.get("--tenant")
    with Client(server, tenant=tenant, timeout_s=PATIENCE_S, retries=0) as client:
        return list(ask(client, place))


def _jobs(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    """By key and name; by id once that is what is being written."""
    pages = [client.jobs.page(limit=MOST)["data"]]
    if place.word and len(pages[0]) == MOST:
        pages.append(client.jobs.page(limit=MOST, name=place.word)["data"])
    seen: set[str] = set()
    for job in (job for page in pages for job in page):
        by_id = place.word.startswith("J-") or not (job["key"] or job["name"])
        names = (job["job_id"],) if by_id else (job["key"], job["name"])
        for name in names:
            if name and name not in seen:
                seen.add(name)
                yield name, job["schedule_in_words"]


def _runs(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    """Of the job whose id is written; else dead letters where these are meant, or what ended within a day."""
    job_id, at, _ = place.word.partition("@")
    if place.path[:1] == _DEAD:
        for letter in client.dead_letters.page(limit=MOST)["data"]:
            yield letter["run_id"], letter["job_name"] or ""
        return
    if at:
        page = client.jobs.history_page(job_id, limit=MOST)
    else:
        from hourhand.cli.times import now

        page = client.runs.page(limit=MOST, **{"from": format_instant(now() - DAY_US)})
    for run in page["data"]:
        yield run["run_id"], run["status"]


def _backfills(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    for one in client.backfills.page(limit=MOST)["data"]:
        yield one["backfill_id"], f"{one['state']} {one['job_id']}"


def _tokens(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    """Those that can still be revoked."""
    for one in client.tokens.page(limit=MOST)["data"]:
        if one["state"] == "live":
            yield one["token_id"], f"{one['name']}, {one['role']} of {one['tenant']}"


def _webhooks(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    for one in client.webhooks.page()["data"]:
        yield one["webhook_id"], one["url"]


def _operations(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    for one in client.operations.page(limit=MOST)["data"]:
        yield one["operation_id"], f"{one['action']} {one['state']}"


def _sets(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    for name in sorted({job["set"] for job in client.jobs.page(limit=MOST)["data"]} - {None}):
        yield name, ""


def _tags(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    for name in sorted({tag for job in client.jobs.page(limit=MOST)["data"] for tag in job["tags"]}):
        yield name, ""


def _tenants(client: Any, place: Place) -> Iterator[tuple[str, str]]:
    """For those who run the system."""
    for one in client.system.tenants_page(limit=MOST)["data"]:
        yield one["tenant"], ""


_ASKED: dict[str, Callable[[Any, Place], Iterator[tuple[str, str]]]] = {
    JOB: _jobs,
    RUN: _runs,
    BACKFILL: _backfills,
    TOKEN: _tokens,
    WEBHOOK: _webhooks,
    OPERATION: _operations,
    SET: _sets,
    TAG: _tags,
    TENANT: _tenants,
}
