"""What routes answer: jobs, runs, dead letters and times as JSON. The one place where instants are spelled out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from hourhand.core.dag import MOST_NAMED, parents_of
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.lifecycle import FINAL
from hourhand.core.model import Job, Version
from hourhand.core.plan import MissedTimes
from hourhand.core.run import AttemptRow, DeadLetter, Progress, RunView
from hourhand.core.schedule import Occurrence
from hourhand.core.skipping import Skip
from hourhand.ports.events import EventType
from hourhand.ports.reading import DeadGroup, JobMarks
from hourhand.ports.store import NodeInfo, SegmentInfo
from hourhand.services.graphs import GraphView
from hourhand.services.overview import Sizes, alive
from hourhand.services.recent import Hour, Minute
from hourhand.services.run_logs import LogPage
from hourhand.services.runs import Status
from hourhand.web.documents import job_document, spec_document
from hourhand.web.names import Names, upstream_of

_ENCODER = msgspec.json.Encoder()
_MILLISECOND_US = SECOND_US // 1000
_SHOWN_APART = ("response", "error", "reason")


def json_answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(
        _ENCODER.encode(body), status_code=status, media_type="application/json", headers=dict(headers or {})
    )


def instant(at: int | None) -> str | None:
    """RFC 3339 in UTC, or null."""
    return None if at is None else format_instant(at)


def entity_tag(job: Job) -> dict[str, str]:
    """The header that names a job's version."""
    return {"ETag": f'"{job.version}"'}


def job_answer(job: Job, next_at: int | None, names: Names) -> dict[str, Any]:
    """A job: its document, and what only answers carry; `names` has those of the jobs that it follows."""
    return {
        "job_id": format_job_id(job.id) if job.id else None,
        **job_document(job),
        "state": job.state,
        "version": job.version,
        "paused_until": instant(job.paused_until),
        "created_at": format_instant(job.created_at),
        "updated_at": format_instant(job.updated_at),
        "next_fire_time": instant(next_at),
        "schedule_in_words": in_words(job, names),
    }


def in_words(job: Job, names: Names) -> str:
    """A job's schedule for people."""
    parents = [names.get(one) or format_job_id(one) for one in parents_of(job.spec.timing)]
    if parents:
        return f"after {_listed(parents)}"
    rule = job.spec.rule
    return "once" if rule is None else rule.describe()


def status_answer(status: Status) -> dict[str, Any]:
    """What a job is up to, in one look."""
    job = status.job
    return {
        "job_id": format_job_id(job.id),
        "status": status.state,
        "last_run": None if status.last_run is None else format_instant(status.last_run.scheduled_at),
        "next_run": instant(status.next_at),
        "retry_count": status.retry_count,
        "state": job.state,
        **({"skipped": [format_instant(at) for at in status.skipped]} if status.skipped else {}),
    }


def run_answer(run: RunView, names: Names) -> dict[str, Any]:
    """A run with all its attempts; `names` has those of the jobs that it mentions."""
    culprit = upstream_of(run)
    first = next((row for row in run.attempts if row.started_at is not None), None)
    last = run.attempts[-1] if run.attempts else None
    started_at = first.started_at if first else run.began_at
    detail = (last.detail if last else None) or {}
    return {
        "run_id": run.run_id,
        "job_id": format_job_id(run.job_id),
        "status": run.state,
        "scheduled_at": format_instant(run.scheduled_at),
        "due_at": format_instant(run.due_at),
        "started_at": instant(started_at),
        "finished_at": format_instant(last.finished_at) if last and run.state in FINAL else None,
        "lag_ms": _milliseconds(first.due_at if first else run.due_at, started_at),
        "attempts": [_attempt(row) for row in run.attempts],
        "response": detail.get("response"),
        "error": detail.get("error"),
        "reason": detail.get("reason"),
        "trigger": run.trigger,
        "worker": run.worker or None,
        "version": run.version,
        "retry_count": run.tries,
        "offered_at": instant(run.offered_at),
        "waits_for_slot": run.waits_for_slot,
        "waits_for": [_mentioned(one, names) for one in run.waits_for],
        "wait_until": instant(run.wait_until),
        "upstream": None if culprit is None else {**_mentioned(culprit[0], names), "outcome": culprit[1]},
        "skip_asked": run.skip_asked,
        "rerun_of": None if run.rerun_of is None else format_run_id(run.job_id, run.rerun_of),
        "reruns": [format_run_id(run.job_id, at) for at in run.reruns],
        "cancel_asked": run.cancel_asked,
        "awaits_report": run.awaits_report,
        "deadline_at": instant(run.deadline_at),
        "progress": None if run.progress is None else _progress(run.progress),
    }


def log_answer(page: LogPage) -> dict[str, Any]:
    """What a run's attempts said."""
    return {
        "data": [
            {
                "attempt": chunk.attempt,
                "seq": chunk.seq,
                "at": format_instant(chunk.at),
                "stream": chunk.stream,
                "text": chunk.text,
            }
            for chunk in page.chunks
        ],
        "next_after": f"{page.next_after.attempt}-{page.next_after.seq}",
        "done": page.done,
    }


def graph_answer(view: GraphView) -> dict[str, Any]:
    """A graph: its jobs by level, and who follows whom."""
    shown = {node.job.id for node in view.nodes}
    return {
        "job_id": format_job_id(view.job_id),
        "at": instant(view.at),
        "jobs": [
            {
                "job_id": format_job_id(node.job.id),
                "name": node.job.name,
                "key": node.job.key,
                "state": node.state,
                "after": [format_job_id(parent) for parent in node.job.parents],
                "level": node.level,
                "status": None if node.run is None else node.run.state,
                "scheduled_at": None if node.run is None else format_instant(node.run.scheduled_at),
            }
            for node in view.nodes
        ],
        "edges": [
            [format_job_id(parent), format_job_id(node.job.id)]
            for node in view.nodes
            for parent in node.job.parents
            if parent in shown
        ],
        "truncated": view.truncated,
    }


def dead_letter_answer(
    letter: DeadLetter, run: RunView | None = None, names: Names | None = None
) -> dict[str, Any]:
    """A dead letter; with its run where one is asked for."""
    answer = {
        "run_id": letter.run_id,
        "job_id": format_job_id(letter.job_id),
        "job_name": letter.job_name,
        "scheduled_at": format_instant(letter.scheduled_at),
        "failed_at": format_instant(letter.failed_at),
        "tries": letter.tries,
        "trigger": letter.trigger,
        "error": letter.error,
        "fingerprint": letter.fingerprint,
    }
    return answer if run is None else {**answer, "run": run_answer(run, names or {})}


def dead_group_answer(group: DeadGroup) -> dict[str, Any]:
    """Dead letters that have something in common."""
    return {"value": group.value, "count": group.count, "sample": dead_letter_answer(group.sample)}


def time_answers(times: Iterable[Occurrence], skips: Sequence[Skip] = ()) -> list[dict[str, Any]]:
    """Coming times, with what DST does to them, and which somebody wants skipped."""
    notes = {skip.scheduled_at: skip.note for skip in skips}
    return [_skipped_time(one, notes[one.at]) if one.at in notes else _time(one) for one in times]


def _time(one: Occurrence) -> dict[str, Any]:
    return {"at": format_instant(one.at), "local": one.local, "fires": one.fires, "note": one.note}


def _skipped_time(one: Occurrence, note: str | None) -> dict[str, Any]:
    words = f"skipped: {note}" if note else "skipped"
    return {**_time(one), "fires": False, "note": words, "skipped": True}


def version_answers(versions: Sequence[Version], makers: Mapping[int, str]) -> list[dict[str, Any]]:
    """What a job was, when, and by whom."""
    return [
        {
            "version": one.version,
            "by": makers.get(one.version),
            "from": format_instant(one.from_at),
            "to": instant(one.to_at),
            "paused": one.paused,
            "note": one.note,
            "deleted": one.deleted,
            "job": spec_document(one.spec),
        }
        for one in versions
    ]


def missed_answers(missed: Sequence[MissedTimes]) -> list[dict[str, Any]]:
    """What a job missed while nobody planned."""
    return [
        {
            "version": one.version,
            "from": format_instant(one.from_at),
            "to": format_instant(one.to_at),
            "missed": one.missed,
            "ran": one.ran,
            "policy": one.policy,
        }
        for one in missed
    ]


def marks_answer(one: JobMarks) -> dict[str, Any]:
    """The last runs of a job, oldest first, as little as a strip of them needs."""
    return {
        "job_id": format_job_id(one.job_id),
        "running": one.running,
        "retrying": one.retrying,
        "runs": [
            {
                "run_id": format_run_id(one.job_id, mark.scheduled_at),
                "scheduled_at": format_instant(mark.scheduled_at),
                "status": mark.state,
                "lag_ms": _milliseconds(mark.due_at, mark.started_at),
                "duration_ms": _milliseconds(mark.started_at, mark.finished_at),
            }
            for mark in one.marks
        ],
    }


def overview_answer(
    sizes: Sizes, whose: str | None, hour: Hour, parts: Mapping[str, str], now_at: int
) -> dict[str, Any]:
    """How everything stands, or what is one tenant's of it."""
    kinds = Counter(node.kind for node in alive(sizes.nodes, now_at))
    backlog = sizes.backlog
    return {
        "now": format_instant(now_at),
        "parts": parts,
        "sizes": {
            "tenant": whose,
            "complete": backlog.complete,
            "jobs": backlog.jobs,
            "planned": backlog.planned,
            "running": backlog.running,
            "blocked": backlog.blocked,
            "dead": backlog.dead,
            "oldest_due_at": instant(backlog.oldest_due_at),
            "counted_at": format_instant(sizes.counted_at),
        },
        "processes": [{"kind": kind, "alive": count} for kind, count in sorted(kinds.items())],
        "since": format_instant(hour.since_at),
        "hour": _minute(hour.total),
        "minutes": [_minute(minute) for minute in hour.minutes],
        "changes": [
            {
                "at": format_instant(event.at),
                "type": event.type,
                "job_id": event.public_job_id,
                "name": event.data.name,
                "state": event.data.state,
                "version": event.data.version,
            }
            for event in hour.changes
        ],
    }


def node_answer(node: NodeInfo, now_at: int) -> dict[str, Any]:
    """A process of the cluster."""
    return {
        "node_id": f"{node.id:016x}",
        "kind": node.kind,
        "name": node.name,
        "started_at": format_instant(node.started_at),
        "lease_until": format_instant(node.lease_until),
        "alive": node.lease_until > now_at,
    }


def segment_answer(segment: SegmentInfo, nodes: Mapping[int, NodeInfo], now_at: int) -> dict[str, Any]:
    """A part of all clocks, and who plans it."""
    node = nodes.get(segment.node_id or 0)
    return {
        "segment": segment.segment,
        "shard": segment.shard,
        "fence": segment.fence,
        "node_id": None if segment.node_id is None else f"{segment.node_id:016x}",
        "name": node and node.name,
        "alive": node is not None and node.lease_until > now_at,
    }


def _attempt(row: AttemptRow) -> dict[str, Any]:
    detail = row.detail or {}
    more = {name: value for name, value in detail.items() if name not in _SHOWN_APART}
    return {
        "attempt": row.attempt,
        "status": row.state,
        "due_at": format_instant(row.due_at),
        "started_at": instant(row.started_at),
        "finished_at": format_instant(row.finished_at),
        "duration_ms": _milliseconds(row.started_at, row.finished_at),
        "worker": row.worker or None,
        "version": row.version,
        "response": detail.get("response"),
        "error": detail.get("error"),
        "reason": detail.get("reason"),
        "detail": more or None,
    }


def _mentioned(job_id: int, names: Names) -> dict[str, Any]:
    return {"job_id": format_job_id(job_id), "name": names.get(job_id)}


def _listed(words: Sequence[str]) -> str:
    if len(words) > MOST_NAMED:
        words = [*words[: MOST_NAMED - 1], f"{len(words) - MOST_NAMED + 1} others"]
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _progress(progress: Progress) -> dict[str, Any]:
    return {
        "fraction": progress.fraction,
        "message": progress.message,
        "at": format_instant(progress.noted_at),
    }


def _milliseconds(from_at: int | None, to_at: int | None) -> int | None:
    return None if from_at is None or to_at is None else (to_at - from_at) // _MILLISECOND_US


def _minute(minute: Minute) -> dict[str, Any]:
    counts = minute.counts
    return {
        "from": format_instant(minute.from_at),
        "succeeded": counts.get(EventType.RUN_SUCCEEDED, 0),
        "failed": counts.get(EventType.RUN_FAILED, 0),
        "retrying": counts.get(EventType.RUN_RETRYING, 0),
        "skipped": counts.get(EventType.RUN_SKIPPED, 0),
        "cancelled": counts.get(EventType.RUN_CANCELLED, 0),
        "lag_p50_ms": minute.lag_p50_ms,
        "lag_p99_ms": minute.lag_p99_ms,
        "lag_max_ms": minute.lag_max_ms,
    }
