"""`dag show` and `dag check`."""

import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hourhand.cli.failures import FINDINGS
from hourhand.cli.options import Call, command
from hourhand.cli.output import wants_colour
from hourhand.cli.text import plural
from hourhand.cli.times import in_zone, zone_of_run

if TYPE_CHECKING:
    from hourhand.cli.files.documents import FileJob

_COLOURS = {"SUCCEEDED": 32, "FAILED": 31, "RETRYING": 33, "RUNNING": 36, "SKIPPED": 2, "CANCELLED": 2}
_OFF_TERMINAL_WIDTH = 160


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "show")(show)
    command(app, "check")(check)


def show(
    call: Call,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Its id, key, or name if only one has it.")],
    runs: Annotated[
        str | None,
        typer.Option(metavar="TIME|latest", help="The runs of one nominal time; else each job's newest."),
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with plain characters only.")] = False,
    width: Annotated[
        int | None,
        typer.Option(min=20, max=1_000, metavar="N", help="How wide; the terminal's unless given."),
    ] = None,
) -> None:
    """Draw a job with all that hang together with it, by level, and how their runs stand."""
    found = call.client.jobs.resolve(job)
    graph = call.client.jobs.graph(found, at=runs)
    call.out.document(graph, found["job_id"], lambda: _show(call, graph, ascii_only, width))


def check(
    call: Call,
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Files or folders with jobs; - is stdin.")
    ],
) -> int:
    """Check the graphs in files without a server: circles, keys that nobody has, roots with different times."""
    from hourhand.cli.files.documents import read_sources
    from hourhand.cli.files.faults import FileFaults
    from hourhand.cli.files.sources import files
    from hourhand.cli.graphs.checking import findings_in

    jobs: dict[str, FileJob] = {}
    try:
        jobs = read_sources(files(sources)).jobs
        findings = findings_in(jobs)
    except FileFaults as faults:
        findings = list(faults.found)
    dependents = sum(bool(job.document.get("after")) for job in jobs.values())
    document = {
        "jobs": len(jobs),
        "dependents": dependents,
        "findings": [
            {"file": one.file, "line": one.line, "field": one.field, "detail": one.words} for one in findings
        ],
    }

    def tell() -> None:
        for one in findings:
            call.out.line(str(one))
        counts = f"{plural(len(jobs), 'job')}, {dependents:,} of them after others"
        call.out.note(f"{counts}: {plural(len(findings), 'finding') if findings else 'all good'}")

    call.out.document(document, None, tell)
    return FINDINGS if findings else 0


def _show(call: Call, graph: dict[str, Any], ascii_only: bool, width: int | None) -> None:
    from hourhand.cli.graphs.drawing import Drawn, draw, sign_of

    plain = ascii_only or not _has_lines(sys.stdout.encoding)
    numbers = {job["job_id"]: number for number, job in enumerate(graph["jobs"], start=1)}
    parents: dict[int, list[int]] = {number: [] for number in numbers.values()}
    for parent, child in graph["edges"]:
        parents[numbers[child]].append(numbers[parent])
    jobs = [
        Drawn(
            ident=numbers[job["job_id"]],
            label=_label(job, job["job_id"] == graph["job_id"]),
            parents=tuple(parents[numbers[job["job_id"]]]),
            level=job["level"],
            status=job["status"],
        )
        for job in graph["jobs"]
    ]
    colour = wants_colour(sys.stdout)
    for row in draw(jobs, width=width or _width(), ascii_only=plain):
        call.out.line(_coloured(row) if colour else "".join(text for text, _ in row))
    if graph["at"] is not None:
        call.out.note(f"runs of {in_zone(graph['at'], zone_of_run(call, graph['job_id']))}")
    seen = dict.fromkeys(job["status"] for job in graph["jobs"] if job["status"])
    if seen:
        call.out.note("  ".join(f"{sign_of(status, plain)} {status.lower()}" for status in seen))
    if graph["truncated"]:
        call.out.note(f"only the nearest {plural(len(jobs), 'job')}; there are more")


def _label(job: dict[str, Any], asked_for: bool) -> str:
    name = job["name"] or job["key"] or job["job_id"]
    paused = " (paused)" if job["state"] == "paused" else ""
    return f"{'*' if asked_for else ''}{name}{paused}"


def _coloured(row: list[tuple[str, str | None]]) -> str:
    line, before = "", None
    for text, status in row:
        code = _COLOURS.get(status or "")
        if code != before:
            line += "\x1b[0m" if code is None else f"\x1b[0;{code}m"
            before = code
        line += text
    return line if before is None else f"{line}\x1b[0m"


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _OFF_TERMINAL_WIDTH


def _has_lines(encoding: str | None) -> bool:
    try:
        "┌─▼✓…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
