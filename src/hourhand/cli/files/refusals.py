"""Of which jobs that an import made it is known that they will not be taken, and why, so that it can name them and leave them out.

A server that is asked says so itself. Else the limits count that hold where no setting says otherwise.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hourhand.cli.files.changing import would_fail
from hourhand.cli.files.documents import Wanted
from hourhand.cli.files.faults import words_of
from hourhand.cli.progress import Progress
from hourhand.core.instant import parse_duration, parse_given_instant
from hourhand.core.model import (
    CronTiming,
    EveryTiming,
    JobSpec,
    Misfire,
    MisfirePolicy,
    OnceTiming,
    PythonTarget,
    ShellTarget,
)
from hourhand.core.specification import SpecLimits, faults_in

if TYPE_CHECKING:
    from hourhand.client import Client


def refused_by_server(client: "Client", wanted: Wanted) -> dict[str, str]:
    """Why, by the key of each job that a server would not take."""
    return {key: _reason(error) for key, error in would_fail(client, wanted).items()}


def refused_by_limits(wanted: Wanted, *, told: bool) -> dict[str, str]:
    """Why, by the key of each job that no server takes whose limits are not set."""
    with Progress("checked", len(wanted.jobs), wanted=told) as progress:
        found = {key: _fault_of(job.document) for key, job in progress.each(wanted.jobs.items())}
    return {key: reason for key, reason in found.items() if reason is not None}


def _fault_of(document: Mapping[str, Any]) -> str | None:
    try:
        faults = faults_in(_spec(document), SpecLimits())
    except (ValueError, OverflowError) as error:  # a time, a length or a number that none of ours can be
        return str(error)
    return _reason({"errors": [msgspec.to_builtins(one) for one in faults]}) if faults else None


def _reason(error: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{pointer.removeprefix('/').replace('/', '.')}: {words}" if pointer else words
        for pointer, words in words_of(error)
    )


def _spec(document: Mapping[str, Any]) -> JobSpec:
    """The job of a document, of the fields that imports write."""
    misfire = dict(document.get("misfire") or {})
    if "grace" in misfire:
        misfire["grace_us"] = parse_duration(misfire.pop("grace"))
    if "policy" in misfire:
        misfire["policy"] = MisfirePolicy(misfire["policy"])
    return JobSpec(
        timing=_timing(document),
        target=_target(document["target"]),
        name=document.get("name", ""),
        key=document["key"],
        set_name=document.get("set"),
        starts_at=_time(document, "starts_at"),
        ends_at=_time(document, "ends_at"),
        max_runs=document.get("max_runs"),
        payload=msgspec.Raw(msgspec.json.encode(document.get("payload"))),
        concurrency=document.get("concurrency", 1),
        misfire=Misfire(**misfire),
        jitter_us=parse_duration(document.get("jitter", 0)),
    )


def _timing(document: Mapping[str, Any]) -> CronTiming | EveryTiming | OnceTiming:
    if "cron" in document:
        return CronTiming(expression=document["cron"], tz=document.get("tz", "UTC"))
    at = _time(document, "at")
    if at is not None:
        return OnceTiming(at=at)
    return EveryTiming(interval_us=parse_duration(document["every"]), phase_at=_time(document, "phase") or 0)


def _time(document: Mapping[str, Any], name: str) -> int | None:
    return parse_given_instant(document[name]) if name in document else None


def _target(target: Mapping[str, Any]) -> PythonTarget | ShellTarget:
    if target["type"] == "python":
        return PythonTarget(function=target["function"])
    return ShellTarget(argv=tuple(target["argv"]), env=target.get("env", {}), cwd=target.get("cwd"))
