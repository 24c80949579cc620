"""What a run looks like on the screen, once or while it goes on."""

from collections.abc import Mapping, Sequence
from typing import Any

from hourhand.cli.failures import NOT_SUCCEEDED, StillRunning, Usage, waiting_for
from hourhand.cli.job_view import job_of, upstream, waits_for, with_id
from hourhand.cli.options import Call
from hourhand.cli.output import Form
from hourhand.cli.text import clean_lines
from hourhand.cli.times import in_zone, now, zone_of, zone_of_run
from hourhand.core.identity import format_job_id, format_run_id, parse_job_id, parse_run_id
from hourhand.core.instant import SECOND_US, format_instant

_Seen = tuple[str, int, bool, bool, str | None]  # status, attempts, a report is awaited, unserved, progress


def show_run(call: Call, run: Mapping[str, Any]) -> None:
    """Everything about one run."""
    job = job_of(call, run["job_id"])
    zone = zone_of(job, call.tz)
    call.out.facts(
        [
            ("run", run["run_id"]),
            ("status", _status(run)),
            ("job", with_id(job)),
            ("scheduled", in_zone(run["scheduled_at"], zone)),
            ("due", in_zone(run["due_at"], zone)),
            ("trigger", run["trigger"]),
            ("repeats", run.get("rerun_of")),
            ("repeated by", ", ".join(run.get("reruns", ()))),
            ("version", run["version"]),
            ("worker", run["worker"]),
            ("until", in_zone(run.get("deadline_at"), zone)),
            ("progress", progress_words(run.get("progress"))),
            ("late", None if run["lag_ms"] is None else f"{run['lag_ms']:,} ms"),
            ("waiting", waits_for(run, zone)),
            ("reason", upstream(run) or run["reason"]),
            ("response", run["response"]),
        ]
    )
    for attempt in run["attempts"]:
        call.out.line(attempt_line(attempt))
    _where_now(call, run)


def watch(call: Call, run_id: str, timeout_s: float | None) -> int:
    """Print each attempt as it ends, then how the run ended; 7 if it did not succeed."""
    run = _watched(call, run_id, timeout_s)
    if call.out.form in (Form.JSON, Form.IDS):
        call.out.document(run, run_id, lambda: None)
    return _code([run])


def watch_wave(call: Call, job: Mapping[str, Any], run_id: str, timeout_s: float | None) -> int:
    """Watch a run and those that follow it down the graph, one after the other; 7 unless all succeed."""
    ends_at = None if timeout_s is None else now() + int(timeout_s * SECOND_US)
    wave = {run_id: "", **_followers(call, job, run_id)}
    runs = []
    for one, name in wave.items():
        if name:
            call.out.note(f"after it {name}")
        left_s = None if ends_at is None else max(0, ends_at - now()) / SECOND_US
        runs.append(_watched(call, one, left_s))
        if call.out.form is Form.IDS:
            call.out.document(runs[-1], one, lambda: None)
    if call.out.form is Form.JSON:
        call.out.document({"data": runs}, None, lambda: None)
    return _code(runs)


def _watched(call: Call, run_id: str, timeout_s: float | None) -> Mapping[str, Any]:
    """A run once it has ended; on the way there what people, and programs that read lines, want to see."""
    people = call.out.form is Form.PEOPLE
    seen: _Seen = ("", 0, False, False, None)
    run: Mapping[str, Any] = {}
    try:
        with waiting_for(run_id, f"hourhand runs watch {run_id}"):
            for run in call.client.runs.watch(run_id, timeout_s=timeout_s):
                if call.out.form is Form.LINES:
                    call.out.document(run, run_id, lambda: None)
                if people:
                    seen = _news(call, run, seen)
    except TimeoutError as error:
        raise StillRunning(str(error), run_id) from None
    if people:
        call.out.line("  ".join(filter(None, (run_id, _status(run), upstream(run)))))
        _where_now(call, run)
    return run


def _code(runs: Sequence[Mapping[str, Any]]) -> int:
    return 0 if all(run["status"] == "SUCCEEDED" for run in runs) else NOT_SUCCEEDED


def _followers(call: Call, job: Mapping[str, Any], run_id: str) -> dict[str, str]:
    """Runs that were made to follow a run, by level of the graph, and what their jobs are called."""
    key = parse_run_id(run_id)
    graph = call.client.jobs.graph(job, at=format_instant(key.scheduled_at))
    below = {format_job_id(key.job_id)}
    found = {}
    for node in graph["jobs"]:  # parents before those who follow them
        if not below.isdisjoint(node["after"]) and node["status"] is not None:
            below.add(node["job_id"])
            follower = format_run_id(parse_job_id(node["job_id"]), key.scheduled_at)
            found[follower] = node["name"] or node["key"] or node["job_id"]
    if graph["truncated"]:
        call.out.note(f"the graph is too large to be watched whole: these are {len(found)} runs of it")
    return found


def show_log(call: Call, run_id: str, *, follow: bool, attempt: int | None, raw: bool) -> None:
    """What a run said, as it comes; job output is only text, unless somebody asks for it raw."""
    out = call.out
    if out.form is Form.JSON and follow:
        raise Usage("with --follow there is no end to one document; use --jsonl")
    chunks = call.client.runs.logs(run_id, attempt=attempt, follow=follow)
    if out.form is Form.JSON:
        data = list(chunks)
        after = f"{data[-1]['attempt']}-{data[-1]['seq']}" if data else None
        out.document({"run_id": run_id, "data": data, "next_after": after}, run_id, lambda: None)
        return
    end, seen = "\n", 0
    for chunk in chunks:
        if out.form is Form.LINES:
            out.document(chunk, run_id, lambda: None)
            continue
        if seen and chunk["attempt"] != seen:
            out.note(("" if end == "\n" else "\n") + f"attempt {chunk['attempt']}")
        seen = chunk["attempt"]
        text = chunk["text"] if raw else clean_lines(chunk["text"])
        out.text(text)
        end = text[-1:] or end
    if out.form is Form.PEOPLE and not raw and end != "\n":
        out.text("\n")
    if not seen and out.form is Form.PEOPLE:
        out.note("it said nothing")


def attempt_line(attempt: Mapping[str, Any]) -> str:
    """One attempt in one line."""
    took = "" if attempt["duration_ms"] is None else f"  took {attempt['duration_ms']:,} ms"
    words = attempt["error"] or attempt["reason"]
    waited = (attempt["detail"] or {}).get("waited_for")
    if waited:
        words = f"{words}: waited for {', '.join(waited)}"
    worker = f"  on {attempt['worker']}" if attempt["worker"] else ""
    return f"attempt {attempt['attempt']}  {attempt['status']}{took}{worker}" + (
        f"  {words}" if words else ""
    )


def progress_words(progress: Mapping[str, Any] | None) -> str | None:
    """How far a run is, such as "40 %, loading"."""
    if progress is None:
        return None
    percent = None if progress["fraction"] is None else f"{progress['fraction'] * 100:.0f} %"
    return ", ".join(one for one in (percent, progress["message"]) if one) or None


def _news(call: Call, run: Mapping[str, Any], seen: _Seen) -> _Seen:
    status, attempts, awaited, unserved, told = seen
    for attempt in run["attempts"][attempts:]:
        call.out.line(attempt_line(attempt))
    if run["status"] != status and run["status"] == "RETRYING":
        due = in_zone(run["due_at"], zone_of_run(call, run["job_id"]))
        call.out.note(f"tries again at {due}")
    elif run["status"] != status and run.get("waits_for_slot"):
        call.out.note("waits for another run of its job to end")
    elif run["status"] != status and run.get("waits_for"):
        call.out.note(waits_for(run, zone_of_run(call, run["job_id"])) or "")
    if run.get("awaits_report") and not awaited:
        until = in_zone(run["deadline_at"], zone_of_run(call, run["job_id"]))
        call.out.note(f"the target accepted it; waiting for its report, until {until}")
    if run.get("offered_at") and not unserved:
        call.out.note(f"no worker can run it so far; why: hourhand why {run['run_id']}")
    unserved = unserved or bool(run.get("offered_at"))
    progress = progress_words(run.get("progress"))
    if progress is not None and progress != told:
        call.out.note(progress)
    return run["status"], len(run["attempts"]), bool(run.get("awaits_report")), unserved, progress


def _where_now(call: Call, run: Mapping[str, Any]) -> None:
    if _is_command(run):
        call.out.note(f"what it said: hourhand runs logs {run['run_id']}")
    if run["status"] == "FAILED":
        call.out.note(f"dead letter: hourhand dlq show {run['run_id']}")
        call.out.note(f"send it back: hourhand dlq requeue {run['run_id']}")


def _status(run: Mapping[str, Any]) -> str:
    if run.get("cancel_asked") and run["status"] != "CANCELLED":
        return f"{run['status']}, cancel asked for"
    if run.get("awaits_report"):
        return f"{run['status']}, waiting for its report"
    if run.get("offered_at"):
        return f"{run['status']}, waits for a worker that can run it"
    return f"{run['status']}, waits for a slot" if run.get("waits_for_slot") else str(run["status"])


def _is_command(run: Mapping[str, Any]) -> bool:
    """Whether it failed as a command does, which is told by its exit code alone."""
    last = run["attempts"][-1] if run["attempts"] else {}
    return run["status"] in ("FAILED", "RETRYING") and "exit_code" in (last.get("detail") or {})
