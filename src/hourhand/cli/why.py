"""`why`: what became of a nominal time of a job, with the evidence, and what would change it."""

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.options import Call, command
from hourhand.cli.references import known_job
from hourhand.cli.text import clean
from hourhand.cli.times import in_zone, moment, now, weekday, zone_of
from hourhand.core.identity import format_job_id, parse_run_id
from hourhand.core.instant import format_instant

_NAMED = ("last", "next")
_LOST = "lost"
_FORMS = "last (the newest that is due), next, 09:00, 'Sat 09:00', 'yesterday 09:00', '2026-11-16 09:00', or RFC 3339"


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "why")(why)


def why(
    call: Call,
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="Its id, key, or name if only one has it; or the id of a run."),
    ],
    time: Annotated[
        str | None,
        typer.Argument(
            metavar="[TIME]",
            help=f"Which: {_FORMS}.",
        ),
    ] = None,
) -> int:
    """Say why a job ran, waits or did not at a time, and what would change that; exit 8 if it was lost."""
    found, asked = _asked(call, job, time)
    answer = call.client.jobs.why(found, at=asked)
    call.out.document(answer, answer["run_id"], lambda: _show(call, answer))
    return FINDINGS if answer["verdict"] == _LOST else 0


def _asked(call: Call, reference: str, time: str | None) -> tuple[dict[str, Any], str]:
    """The job and the time that are meant; the id of a run says both."""
    if "@" in reference:
        with contextlib.suppress(ValueError):
            key = parse_run_id(reference)
            if time is not None:
                raise Usage(
                    f"{reference} is the id of a run, which says its time: leave out TIME, or name the job"
                )
            return {"job_id": format_job_id(key.job_id)}, format_instant(key.scheduled_at)
    found = known_job(call, reference)
    word = "last" if time is None else time.strip().lower()
    if time is None or word in _NAMED:
        return found, word
    try:
        at = moment(time, zone_of(found, call.tz), now(), "TIME")
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}; TIME is {_FORMS}", param_hint="TIME") from None
    return found, format_instant(at)


def _show(call: Call, answer: Mapping[str, Any]) -> None:
    zone = call.tz or answer["tz"]
    out = call.out
    decided = in_zone(answer["decided_at"], zone)
    who = answer["decided_by"]
    nearest = answer["nearest"] or {}
    out.facts(
        [
            ("verdict", answer["verdict"].upper() if answer["verdict"] == _LOST else answer["verdict"]),
            ("why", answer["summary"]),
            ("time", f"{in_zone(answer['at'], zone)} {_weekday(answer, zone)}, {zone}"),
            ("run", answer["run_id"] if answer["status"] else None),
            ("status", answer["status"]),
            ("version", answer["version"]),
            ("decided", decided and (f"{decided} by {who}" if who else decided)),
            ("worker", None if decided else who),
            ("late", _late(answer["lateness"])),
            ("blocked by", ", ".join(answer["blocked_by"])),
            ("before", in_zone(nearest.get("before"), zone)),
            ("after", in_zone(nearest.get("after"), zone)),
        ]
    )
    out.line()
    for one in answer["evidence"]:
        out.line(clean(f"{in_zone(one['at'], zone) or '':<26}  {one['text']}"))
    out.line()
    for one in answer["change"]:
        out.line(clean(f"would change it: {one}"))


def _weekday(answer: Mapping[str, Any], zone: str) -> str:
    local = in_zone(answer["at"], zone) or ""
    return weekday(local[:19])


def _late(lateness: Mapping[str, int | None] | None) -> str | None:
    if lateness is None:
        return None
    names = ("planning", "slot", "queue", "worker")
    parts = [f"{name} {lateness[f'{name}_ms']:,} ms" for name in names if lateness[f"{name}_ms"]]
    return f"{lateness['total_ms']:,} ms" + (f" ({', '.join(parts)})" if parts else "")
