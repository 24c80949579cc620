"""`simulate`: what it takes, and where the jobs come from. What happens to them is `simulation`'s, reached through `Launch`."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Annotated, Any

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.launch import Launch, RefusedJobs, SimulatedJob, SimulationWish
from hourhand.cli.options import Call, command
from hourhand.cli.text import clean
from hourhand.cli.times import instant, now
from hourhand.core.instant import GIVEN_YEARS, may_be_given

MAX_DAYS = 366
_DAY_US = 86_400_000_000
_SECOND_US = 1_000_000
_POOLS_SHOWN = 5
_RATE = re.compile(r"(\d{1,3}(?:\.\d+)?)%|(0?\.\d+|[01](?:\.0+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A job of a simulation: what it is called, its document, and where it stands."""

    names: tuple[str, ...]
    document: Mapping[str, Any]
    file_job: Any = None


def register(app: typer.Typer, launch: Launch) -> None:
    """Add the command."""

    def simulate(
        call: Call,
        sources: Annotated[
            list[str] | None,
            typer.Argument(metavar="[FILE|MODULE…]", help="As for apply: files, folders, - or modules."),
        ] = None,
        from_server: Annotated[
            bool, typer.Option("--from-server", help="The server's jobs; they are only read.")
        ] = False,
        days: Annotated[int, typer.Option(min=1, max=MAX_DAYS, help="How many days.")] = 7,
        start: Annotated[
            str | None, typer.Option(metavar="TIME", help="From when on; now unless given.")
        ] = None,
        duration: Annotated[
            list[str] | None,
            typer.Option(metavar="[JOB=]2m", help="How long runs take, or p50/p99 as in 2m/10m; else 1s."),
        ] = None,
        fail: Annotated[
            list[str] | None, typer.Option(metavar="[JOB=]5%", help="How many attempts fail; else none.")
        ] = None,
        workers: Annotated[int, typer.Option(min=1, max=1_000, help="How many workers.")] = 1,
        concurrency: Annotated[
            int, typer.Option(min=1, max=10_000, help="Runs at once, per worker.")
        ] = 1_000,
        outage: Annotated[
            list[str] | None, typer.Option(metavar="FROM..TO", help="Everything is down; may be repeated.")
        ] = None,
        seed: Annotated[int, typer.Option(min=0, help="Other dice; the same seed is the same story.")] = 0,
    ) -> int:
        """Let days of jobs pass in a second, on the real services: what would run, overlap, be skipped and be late."""
        from hourhand.cli.simulation_view import show

        start_at = now() // _SECOND_US * _SECOND_US if start is None else instant(start, "--start")
        end_at = start_at + days * _DAY_US
        if not may_be_given(end_at):
            raise Usage(f"--start, --days: their end lies outside of {GIVEN_YEARS}")
        if from_server and sources:
            raise Usage("say either files and modules, or --from-server")
        jobs = _from_server(call) if from_server else _from_files(sources)
        _note_pools(call, jobs)
        wish = SimulationWish(
            jobs=_with_habits(jobs, duration or (), fail or ()),
            start_at=start_at,
            end_at=end_at,
            workers=workers,
            concurrency=concurrency,
            outages=_outages(outage or (), start_at, end_at),
            seed=seed,
        )
        try:
            found = launch.simulate(wish)
        except RefusedJobs as error:
            raise _placed(error, jobs) from None
        call.out.document(found, None, lambda: show(call.out, found))
        return 0

    command(app, "simulate")(simulate)


def _from_files(sources: Sequence[str] | None) -> list[Named]:
    from hourhand.cli.files.documents import read_sources  # here: YAML is of no use to other commands
    from hourhand.cli.files.faults import FileFaults
    from hourhand.cli.files.sources import files, modules, split

    named_files, named_modules = split(sources or ())
    if not named_files and not named_modules:
        raise Usage("say what to simulate: a file, a folder, - for stdin, a module, or --from-server")
    try:
        wanted = read_sources([*files(named_files), *modules(named_modules)])
    except FileFaults as error:
        raise FileFaults(error.found, "nothing was simulated") from None
    if not wanted.jobs:  # for apply that is a set to prune; here it is most likely the wrong file
        raise Usage(f"there are no jobs in {', '.join(sources or ())}; nothing was simulated")
    return [
        Named(names=_names(job.document), document=job.document, file_job=job) for job in wanted.jobs.values()
    ]


def _from_server(call: Call) -> list[Named]:
    from hourhand.cli.files.listing import all_jobs

    return [Named(names=_names(job), document=job) for job in all_jobs(call.client)]


def _note_pools(call: Call, jobs: Sequence[Named]) -> None:
    """Say that pools are no limit here: on a server a run waits where nobody serves its pool."""
    from hourhand.core.model import DEFAULT_POOL

    pools = sorted({str(job.document.get("pool") or DEFAULT_POOL) for job in jobs} - {DEFAULT_POOL})
    if pools:
        shown = ", ".join(pools[:_POOLS_SHOWN]) + (", …" if len(pools) > _POOLS_SHOWN else "")
        call.out.note(clean(f"note: simulated workers serve all pools, also {shown}"))


def _names(document: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(document[field]) for field in ("key", "name", "job_id") if document.get(field))


def _with_habits(
    jobs: Sequence[Named], durations: Iterable[str], failures: Iterable[str]
) -> list[SimulatedJob]:
    took = [(1_000_000, 1_000_000)] * len(jobs)
    fails = [0.0] * len(jobs)
    for text in durations:
        pattern, value = _assigned(text)
        drawn = _duration(value)
        for place in _matching(pattern, jobs, "--duration"):
            took[place] = drawn
    for text in failures:
        pattern, value = _assigned(text)
        rate = _rate(value)
        for place in _matching(pattern, jobs, "--fail"):
            fails[place] = rate
    return [
        SimulatedJob(document=job.document, p50_us=p50_us, p99_us=p99_us, fails=rate)
        for job, (p50_us, p99_us), rate in zip(jobs, took, fails, strict=True)
    ]


def _assigned(text: str) -> tuple[str, str]:
    """`JOB=value`, or a value for all."""
    job, equals, value = text.rpartition("=")
    return (job, value) if equals else ("*", text)


def _matching(pattern: str, jobs: Sequence[Named], option: str) -> list[int]:
    """The jobs that a key, a name or a pattern with * means."""
    found = [place for place, job in enumerate(jobs) if any(fnmatchcase(name, pattern) for name in job.names)]
    if not found and pattern != "*":
        near = difflib.get_close_matches(pattern, [name for job in jobs for name in job.names], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Usage(f"{option}: no job is called {pattern!r}{hint}")
    return list(range(len(jobs))) if pattern == "*" else found


def _duration(text: str) -> tuple[int, int]:
    from hourhand.core.instant import parse_duration

    half, _, most = text.partition("/")
    try:
        p50_us, p99_us = parse_duration(half), parse_duration(most or half)
    except ValueError as error:
        raise Usage(f"--duration: {error}") from None
    if not 0 < p50_us <= p99_us:
        raise Usage(f"--duration: expected p50/p99 such as 2m/10m, the smaller first, got {text!r}")
    return p50_us, p99_us


def _rate(text: str) -> float:
    match = _RATE.fullmatch(text)
    rate = float(match[1]) / 100 if match and match[1] else float(match[2]) if match else 2.0
    if rate > 1:
        raise Usage(f"--fail: expected a share from 0% to 100%, got {text!r}")
    return rate


def _outages(texts: Iterable[str], start_at: int, end_at: int) -> list[tuple[int, int]]:
    found = []
    for text in texts:
        begin, dots, over = text.partition("..")
        if not dots:
            raise Usage(f"--outage: expected FROM..TO, two times, got {text!r}")
        begin_at, over_at = instant(begin, "--outage"), instant(over, "--outage")
        if not start_at <= begin_at < over_at <= end_at:
            raise Usage("--outage: expected FROM before TO, both within the days")
        found.append((begin_at, over_at))
    found.sort()
    if any(later[0] <= earlier[1] for earlier, later in pairwise(found)):
        raise Usage("--outage: two of them touch; say them as one")
    return found


def _placed(error: RefusedJobs, jobs: Sequence[Named]) -> Exception:
    """What is wrong with documents, at the lines they stand in."""
    from hourhand.cli.files.faults import FileFault, FileFaults
    from hourhand.errors import Invalid

    faults = []
    for place, refusal in error.refused:
        job = jobs[place]
        told = [
            (fault.pointer, f"expected {fault.expected}" + (f", got {fault.got}" if fault.got else ""))
            for fault in (refusal.faults if isinstance(refusal, Invalid) else ())
        ] or [("", refusal.message)]
        for pointer, words in told:
            if job.file_job is not None:
                faults.append(job.file_job.fault(pointer, words))
            else:
                faults.append(FileFault(file="server", line=None, field=job.names[0], words=words))
    return FileFaults(faults, "nothing was simulated")
