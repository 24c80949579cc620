"""Merge patches: what they do not name stays, null resets, and another schedule replaces the present one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from hourhand.core.identity import format_job_id
from hourhand.core.instant import HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import (
    AfterTiming,
    CronTiming,
    EveryTiming,
    HttpTarget,
    Job,
    JobSpec,
    JobState,
    OnceTiming,
    PythonTarget,
    Retry,
)
from hourhand.errors import Invalid
from hourhand.web.patches import patched, read_patch
from tests.web.test_documents import NOW, URL, job_of, specs

SPEC = JobSpec(
    name="daily",
    timing=CronTiming(expression="0 9 * * *", tz="Europe/Berlin", gap="skip"),
    target=HttpTarget(url=URL, method="PUT", headers={"A": "1", "B": "2"}, timeout_us=5 * SECOND_US),
    payload=msgspec.Raw(b'{"a": 1}'),
    retry=Retry(max=7, first_us=2 * SECOND_US),
    tags=("x",),
)
JOB = job_of(SPEC, state=JobState.PAUSED, note="INC-42")


def after(patch: dict[str, Any], job: Job = JOB) -> JobSpec:
    return patched(job, read_patch(msgspec.json.encode(patch)), NOW).spec


def with_(**changes: Any) -> JobSpec:
    return msgspec.structs.replace(SPEC, **changes)


@given(specs)
def test_an_empty_patch_changes_nothing(spec: JobSpec) -> None:
    new = patched(job_of(spec, state=JobState.PAUSED, note="n"), {}, NOW)
    assert (new.spec, new.paused, new.note) == (spec, True, "n")


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"name": "x"}, with_(name="x")),
        ({"name": None}, with_(name="")),
        ({"retry": {"max": 1}}, with_(retry=Retry(max=1, first_us=2 * SECOND_US))),
        ({"retry": {"max": None}}, with_(retry=Retry(first_us=2 * SECOND_US))),
        ({"retry": None}, with_(retry=Retry())),
        ({"tags": ["y"]}, with_(tags=("y",))),
        ({"payload": {"b": 2}}, with_(payload=msgspec.Raw(b'{"b":2}'))),
        ({"payload": None}, with_(payload=msgspec.Raw(b"null"))),
        ({"cron": "@daily"}, with_(timing=CronTiming(expression="@daily", tz="Europe/Berlin", gap="skip"))),
        (
            {"cron": "CRON_TZ=Asia/Tokyo @daily"},
            with_(timing=CronTiming(expression="@daily", tz="Asia/Tokyo", gap="skip")),
        ),
        ({"tz": None}, with_(timing=CronTiming(expression="0 9 * * *", gap="skip"))),
        (
            {"dst": {"fold": "both"}},
            with_(timing=CronTiming(expression="0 9 * * *", tz="Europe/Berlin", gap="skip", fold="both")),
        ),
        (
            {"every": "15m"},
            with_(timing=EveryTiming(interval_us=15 * MINUTE_US, phase_at=NOW - NOW % SECOND_US)),
        ),
        ({"at": "1970-01-01T00:00:01Z"}, with_(timing=OnceTiming(at=SECOND_US))),
        ({"cron": None, "at": "1970-01-01T00:00:01Z"}, with_(timing=OnceTiming(at=SECOND_US))),
        (
            {"target": {"headers": {"B": None, "C": "3"}}},
            with_(
                target=HttpTarget(
                    url=URL, method="PUT", headers={"A": "1", "C": "3"}, timeout_us=5 * SECOND_US
                )
            ),
        ),
        (
            {"callback_url": "https://other.example"},
            with_(
                target=HttpTarget(
                    url="https://other.example",
                    method="PUT",
                    headers={"A": "1", "B": "2"},
                    timeout_us=5 * SECOND_US,
                )
            ),
        ),
        (
            {"target": "https://other.example"},
            with_(
                target=HttpTarget(
                    url="https://other.example",
                    method="PUT",
                    headers={"A": "1", "B": "2"},
                    timeout_us=5 * SECOND_US,
                )
            ),
        ),
        ({"target": {"function": "a:b"}}, with_(target=PythonTarget(function="a:b"))),
        ({"after": [format_job_id(7)]}, with_(timing=AfterTiming(parents=(7,)))),
        (
            {"after": [format_job_id(7)], "wait": "2h"},
            with_(timing=AfterTiming(parents=(7,), wait_us=2 * HOUR_US)),
        ),
    ],
)
def test_patches(patch: dict[str, Any], expected: JobSpec) -> None:
    assert after(patch) == expected


def test_an_interval_keeps_its_phase() -> None:
    job = job_of(with_(timing=EveryTiming(interval_us=HOUR_US, phase_at=7)))
    assert after({"every": "20m"}, job).timing == EveryTiming(interval_us=20 * MINUTE_US, phase_at=7)
    assert after({"cron": "@daily"}, job).timing == CronTiming(expression="@daily")


def test_a_payload_that_is_not_named_keeps_its_bytes() -> None:
    job = job_of(with_(payload=msgspec.Raw(b'"{}"')))
    assert after({"name": "x"}, job).payload == msgspec.Raw(b'"{}"')


def test_a_patch_may_pause_and_resume() -> None:
    assert patched(JOB, {"paused": False}, NOW).paused is False
    new = patched(JOB, {"note": "INC-43"}, NOW)
    assert (new.paused, new.note) == (True, "INC-43")


def test_another_kind_of_target_may_say_what_goes() -> None:
    python = {"type": "python", "function": "a:b", "url": None, "method": None, "headers": None}
    assert after({"target": python}).target == PythonTarget(function="a:b")
    assert after({"target": {"headers": {"C": None}}}).target == SPEC.target


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"cron": None}, ""),
        ({"cron": "@daily", "every": "5m"}, "/every"),
        ({"state": "active"}, "/state"),
        ({"version": 3}, "/version"),
        ({"nmae": "x"}, "/nmae"),
        ({"nmae": None}, "/nmae"),
        ({"retry": {"mxa": None}}, "/retry/mxa"),
        ({"retry": {"max": 1, "a/b": None}}, "/retry/a~1b"),
        ({"misfire": {"plocy": None}}, "/misfire/plocy"),
        ({"dst": {"gpa": None}}, "/dst/gpa"),
        ({"target": {"ulr": None}}, "/target/ulr"),
        ({"retry": {"maxx": 1}}, "/retry/maxx"),
        ({"target": {"type": "http"}, "callback_url": URL}, "/target"),
        ({"target": None}, "/target"),
    ],
)
def test_patches_that_are_refused(patch: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        after(patch)
    assert pointer in [fault.pointer for fault in caught.value.faults]
