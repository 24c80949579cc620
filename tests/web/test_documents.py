"""Jobs as people write them: short forms, defaults, every kind of fault, and the way back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.core.instant import DAY_US, HOUR_US, LONGEST_DURATION_US, MINUTE_US, SECOND_US
from hourhand.core.model import (
    AfterTiming,
    CronTiming,
    Delivery,
    Durability,
    EveryTiming,
    HttpTarget,
    Job,
    JobSpec,
    JobState,
    Misfire,
    MisfirePolicy,
    OnceTiming,
    Overlap,
    Priority,
    PythonTarget,
    Retry,
)
from hourhand.errors import Invalid
from hourhand.web.documents import DocumentRules, job_document, parse_document
from hourhand.web.faults import _ELSEWHERE, unknown_field
from hourhand.web.schema import JobDocument
from tests.web.test_json_text import JSON_VALUES

NOW = 1_800_000_000_123_456
URL = "https://example.com/hook"
CRON: dict[str, Any] = {"cron": "0 9 * * *", "callback_url": URL}


def spec_of(document: dict[str, Any]) -> JobSpec:
    return parse_document(msgspec.json.encode(document), NOW).spec


def faults_of(document: dict[str, Any]) -> list[Fault]:
    with pytest.raises(Invalid) as caught:
        spec_of(document)
    return list(caught.value.faults)


def job_of(spec: JobSpec, **more: Any) -> Job:
    return Job(id=1, tenant="default", spec=spec, since=NOW, created_at=NOW, updated_at=NOW, **more)


# --- short forms


def test_the_form_of_the_requirements() -> None:
    spec = spec_of(
        {
            "name": "daily",
            "cron": "0 9 * * *",
            "callback_url": URL,
            "priority": "HIGH",
            "payload": {"region": "eu"},
        }
    )
    assert spec == JobSpec(
        name="daily",
        timing=CronTiming(expression="0 9 * * *"),
        target=HttpTarget(url=URL),
        priority=Priority.HIGH,
        payload=msgspec.Raw(b'{"region":"eu"}'),
    )


def test_the_shortest_form() -> None:
    spec = spec_of({"cron": "*/5 * * * *", "target": URL, "payload": "{}"})
    assert spec == JobSpec(
        timing=CronTiming(expression="*/5 * * * *"), target=HttpTarget(url=URL), payload=msgspec.Raw(b"{}")
    )


@pytest.mark.parametrize(
    ("written", "timing"),
    [
        ({"every": "15m"}, EveryTiming(interval_us=15 * MINUTE_US, phase_at=NOW - 123_456)),
        ({"every": 90}, EveryTiming(interval_us=90 * SECOND_US, phase_at=NOW - 123_456)),
        (
            {"every": "1h30m", "phase": "1970-01-01T00:00:07Z"},
            EveryTiming(interval_us=90 * MINUTE_US, phase_at=7 * SECOND_US),
        ),
        ({"every": 0.5}, EveryTiming(interval_us=500_000, phase_at=NOW - 123_456)),
        (
            {"every": "15m", "tz": "UTC", "dst": {}},
            EveryTiming(interval_us=15 * MINUTE_US, phase_at=NOW - 123_456),
        ),
        ({"at": "2026-11-16T09:00:00+01:00"}, OnceTiming(at=1_794_816_000_000_000)),
        ({"at": "1999-01-01T00:00:00Z"}, OnceTiming(at=915_148_800_000_000)),
        (
            {"cron": "0 9 * * *", "tz": "europe/berlin"},
            CronTiming(expression="0 9 * * *", tz="Europe/Berlin"),
        ),
        ({"cron": " CRON_TZ=Asia/Tokyo  0 9  * * *"}, CronTiming(expression="0 9 * * *", tz="Asia/Tokyo")),
        ({"cron": "@daily", "dst": {"gap": "SKIP"}}, CronTiming(expression="@daily", gap="skip")),
        (
            {"cron": "0 9 * * *", "dst": {"gap": "shift", "fold": "both"}, "every": None, "at": None},
            CronTiming(expression="0 9 * * *", gap="shift", fold="both"),
        ),
    ],
)
def test_schedules(written: dict[str, Any], timing: object) -> None:
    assert spec_of({"callback_url": URL, **written}).timing == timing


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ({"target": URL}, HttpTarget(url=URL)),
        ({"target": {"url": URL}}, HttpTarget(url=URL)),
        (
            {
                "target": {
                    "type": "http",
                    "url": URL,
                    "method": "put",
                    "headers": {"X-A": "1"},
                    "timeout": "5s",
                }
            },
            HttpTarget(url=URL, method="PUT", headers={"X-A": "1"}, timeout_us=5 * SECOND_US),
        ),
        (
            {"target": {"type": "python", "function": "app.tasks:daily"}},
            PythonTarget(function="app.tasks:daily"),
        ),
        ({"target": {"function": "app:Class.method"}}, PythonTarget(function="app:Class.method")),
    ],
)
def test_targets(written: dict[str, Any], target: object) -> None:
    assert spec_of({"cron": "@daily", **written}).target == target


@pytest.mark.parametrize(
    ("field", "value", "attribute", "expected"),
    [
        ("priority", "low", "priority", Priority.LOW),
        ("concurrency", "unlimited", "concurrency", None),
        ("concurrency", 7, "concurrency", 7),
        ("timeout", "90s", "timeout_us", 90 * SECOND_US),
        ("jitter", 10, "jitter_us", 10 * SECOND_US),
        ("durability", "fire_and_forget", "durability", Durability.FIRE_AND_FORGET),
        ("delivery", "at_most_once", "delivery", Delivery.AT_MOST_ONCE),
        ("overlap", "skip", "overlap", Overlap.SKIP),
        ("retry", {"max": 0}, "retry", Retry(max=0)),
        ("retry", {"factor": 3, "first": "2s"}, "retry", Retry(factor=3.0, first_us=2 * SECOND_US)),
        (
            "misfire",
            {"policy": "catch_up", "limit": 5},
            "misfire",
            Misfire(policy=MisfirePolicy.CATCH_UP, limit=5),
        ),
        ("misfire", {"grace": "2h"}, "misfire", Misfire(grace_us=2 * HOUR_US)),
        ("tags", ["a", "b"], "tags", ("a", "b")),
        ("starts_at", "1970-01-02T00:00:00Z", "starts_at", DAY_US),
        ("max_runs", 3, "max_runs", 3),
        ("key", "a/b", "key", "a/b"),
        ("pool", "gpu", "pool", "gpu"),
    ],
)
def test_fields(field: str, value: object, attribute: str, expected: object) -> None:
    assert getattr(spec_of({**CRON, field: value}), attribute) == expected


def test_null_means_the_default_everywhere() -> None:
    everything = dict.fromkeys(set(JobDocument.model_fields) - {"cron", "callback_url"})
    assert spec_of({**everything, **CRON}) == spec_of(CRON)
    nested = {"retry": {"max": None}, "misfire": {"limit": None, "grace": None}, "dst": {"gap": None}}
    assert spec_of({**CRON, **nested}) == spec_of(CRON)


def test_paused_and_note_go_beside_the_job() -> None:
    new = parse_document({**CRON, "paused": True, "note": "INC-42"}, NOW)
    assert (new.paused, new.note) == (True, "INC-42")
    assert parse_document(CRON, NOW).paused is False


def test_an_operator_decides_what_applies_to_jobs_that_do_not_say() -> None:
    rules = DocumentRules(payload_bytes=10, misfire_grace_us=5 * SECOND_US, target_timeout_us=SECOND_US)
    spec = parse_document({**CRON, "misfire": {"limit": 2}}, NOW, rules=rules).spec
    assert spec.misfire == Misfire(grace_us=5 * SECOND_US, limit=2)
    assert spec.target == HttpTarget(url=URL, timeout_us=SECOND_US)
    assert parse_document(CRON, NOW, rules=rules).spec.misfire.grace_us == 5 * SECOND_US
    with pytest.raises(Invalid, match="at most 10"):
        parse_document({**CRON, "payload": "x" * 20}, NOW, rules=rules)


def test_what_answers_carry_may_be_sent_back() -> None:
    assert spec_of(
        {**CRON, "job_id": "J-1", "state": "active", "version": 3, "next_fire_time": None}
    ) == spec_of(CRON)


def test_the_documented_defaults_are_the_defaults() -> None:
    document = job_document(job_of(spec_of({"every": "1h", "callback_url": URL})))
    properties = JobDocument.model_json_schema()["properties"]
    documented = {
        name: shape["default"] for name, shape in properties.items() if shape.get("default") is not None
    }
    nested = {"retry": "RetryDocument", "misfire": "MisfireDocument"}
    for name, value in documented.items():
        if name in nested:
            inner = JobDocument.model_json_schema()["$defs"][nested[name]]["properties"]
            assert document[name] == {field: shape["default"] for field, shape in inner.items()}
        elif name not in ("tz", "dst", "wait"):
            assert document[name] == value, name


def test_every_field_is_described_with_an_example() -> None:
    schema = JobDocument.model_json_schema()
    shapes = {"JobDocument": schema, **schema["$defs"]}
    for shape_name, shape in shapes.items():
        for name, field in shape["properties"].items():
            assert field.get("description"), f"{shape_name}.{name}"
            assert field.get("examples"), f"{shape_name}.{name}"


# --- faults


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (
            {"callback_url": URL},
            Fault(pointer="", expected="exactly one of cron, every, at and after", got="none of them"),
        ),
        (
            {**CRON, "every": "5m"},
            Fault(
                pointer="/every", expected="exactly one of cron, every, at and after", got="cron and every"
            ),
        ),
        (
            {"callback_url": URL, "after": [format_job_id(7), "J-1"]},
            Fault(pointer="/after/1", expected="a job id", got="'J-1'"),
        ),
        (
            {**CRON, "after": [format_job_id(7)]},
            Fault(
                pointer="/after", expected="exactly one of cron, every, at and after", got="cron and after"
            ),
        ),
        (
            {**CRON, "wait": "2h"},
            Fault(pointer="/wait", expected="wait only beside after", got="2h"),
        ),
        (
            {"cron": "@daily"},
            Fault(pointer="/target", expected="either target or callback_url", got="neither"),
        ),
        (
            {**CRON, "target": URL},
            Fault(pointer="/target", expected="either target or callback_url", got="both"),
        ),
        (
            {**CRON, "nmae": "x"},
            Fault(pointer="/nmae", expected="a field that exists", got="'nmae'", hint="did you mean name?"),
        ),
        (
            {**CRON, "timezone": "UTC"},
            Fault(
                pointer="/timezone", expected="a field that exists", got="'timezone'", hint="did you mean tz?"
            ),
        ),
        (
            {**CRON, "retry": {"maximum": 3}},
            Fault(
                pointer="/retry/maximum",
                expected="a field that exists",
                got="'maximum'",
                hint="did you mean max?",
            ),
        ),
        (
            {"cron": "@daily", "target": {"type": "http", "url": URL, "header": {"Authorization": "s3cret"}}},
            Fault(
                pointer="/target/header",
                expected="a field that exists",
                got="'header'",
                hint="did you mean headers?",
            ),
        ),
        ({**CRON, "name": 5}, Fault(pointer="/name", expected="a text", got="a number")),
        ({**CRON, "tags": "a"}, Fault(pointer="/tags", expected="a list", got="a text")),
        ({**CRON, "tags": ["a", 5]}, Fault(pointer="/tags/1", expected="a text", got="a number")),
        ({**CRON, "max_runs": "3"}, Fault(pointer="/max_runs", expected="a whole number", got="a text")),
        ({**CRON, "max_runs": 1.5}, Fault(pointer="/max_runs", expected="a whole number", got="a number")),
        ({**CRON, "paused": 1}, Fault(pointer="/paused", expected="true or false", got="a number")),
        ({**CRON, "retry": 3}, Fault(pointer="/retry", expected="an object", got="a number")),
        (
            {**CRON, "priority": "URGENT"},
            Fault(pointer="/priority", expected="one of HIGH, MEDIUM, LOW", got="'URGENT'"),
        ),
        ({"cron": "@daily", "target": 5}, Fault(pointer="/target", expected="an object", got="a number")),
        (
            {"cron": "@daily", "target": {"type": "grpc", "address": "localhost:50051"}},
            Fault(
                pointer="/target/type",
                expected="http, python or shell",
                got="'grpc'",
                hint="grpc targets are not available in this version",
            ),
        ),
        (
            {"cron": "@daily", "target": {"type": "http"}},
            Fault(pointer="/target/url", expected="a value", got="nothing"),
        ),
        (
            {"cron": "@daily", "target": "ftp://x.de"},
            Fault(pointer="/target", expected="http:// or https://", got="ftp"),
        ),
        (
            {"cron": "@daily", "callback_url": "x.de"},
            Fault(pointer="/callback_url", expected="http:// or https://", got="no scheme"),
        ),
        (
            {"cron": "@daily", "target": {"url": "https://"}},
            Fault(pointer="/target/url", expected="a URL such as https://example.com/path", got="no host"),
        ),
        (
            {"cron": "@daily", "target": {"function": "daily"}},
            Fault(
                pointer="/target/function",
                expected="module and function, such as app.tasks:daily_report",
                got="'daily'",
            ),
        ),
        (
            {"cron": "@daily", "target": {"url": URL, "headers": {"Authorization": ["s3cret"]}}},
            Fault(pointer="/target/headers/Authorization", expected="a text", got="a list"),
        ),
        ({"every": "0s", "callback_url": URL}, Fault(pointer="/every", expected="more than 0", got="0s")),
        (
            {"every": "5m", "callback_url": URL, "tz": "Asia/Tokyo"},
            Fault(pointer="/tz", expected="tz only beside cron", got="Asia/Tokyo"),
        ),
        (
            {**CRON, "phase": "2026-11-16T00:00:00Z"},
            Fault(pointer="/phase", expected="phase only beside every", got="2026-11-16T00:00:00Z"),
        ),
        (
            {"every": "15x", "callback_url": URL},
            Fault(
                pointer="/every",
                expected='a duration such as "1h30m", "250ms" or a number of seconds',
                got="'15x'",
            ),
        ),
        (
            {"at": "2026-11-16T08:00:00", "callback_url": URL},
            Fault(
                pointer="/at",
                expected="an RFC 3339 time with its offset, such as 2026-11-16T08:00:00Z",
                got="'2026-11-16T08:00:00'",
                hint="end it with Z or an offset",
            ),
        ),
        (
            {**CRON, "concurrency": "many"},
            Fault(
                pointer="/concurrency",
                expected='a whole number from 1 to 1,000, or "unlimited"',
                got="'many'",
            ),
        ),
    ],
)
def test_faults_name_the_field(document: dict[str, Any], fault: Fault) -> None:
    assert fault in faults_of(document)


@pytest.mark.parametrize(
    ("document", "pointer", "expected", "got"),
    [
        ({"cron": "0 25 * * *"}, "/cron", "hour 0 to 23", "25"),
        ({"cron": "0 9 * * funday"}, "/cron", "day", "funday"),
        ({"cron": "0 9 * *"}, "/cron", "5 fields", "0 9 * *"),
        ({"cron": "0 0 30 2 *"}, "/cron", "days that exist", "0 0 30 2 *"),
        ({"cron": "0 9 * * *", "tz": "Europe/Berlim"}, "/tz", "zone name", "Europe/Berlim"),
        ({"cron": "CRON_TZ=Nowhere 0 9 * * *"}, "/cron", "zone name", "Nowhere"),
        ({"cron": "@dayly"}, "/cron", "@daily", "@dayly"),
        ({"cron": "* " * 200}, "/cron", "256 characters", "* * *"),
        ({"cron": "0 9 * * *", "dst": {"gap": "later"}}, "/dst/gap", "after, skip, shift", "later"),
    ],
)
def test_schedule_errors_say_what_is_allowed(
    document: dict[str, Any], pointer: str, expected: str, got: str
) -> None:
    fault = faults_of({"callback_url": URL, **document})[0]
    assert fault.pointer == pointer
    assert expected in fault.expected
    assert got in str(fault.got)


def test_all_faults_are_told_at_once() -> None:
    pointers = {
        fault.pointer for fault in faults_of({"cron": 5, "priority": "x", "nmae": "", "retry": {"max": "x"}})
    }
    assert pointers == {"/cron", "/priority", "/nmae", "/retry/max"}
    pointers = {fault.pointer for fault in faults_of({"cron": "0 25 * * *", "target": "nope"})}
    assert pointers == {"/cron", "/target"}


def test_words_of_other_schedulers_lead_to_fields_of_a_job() -> None:
    assert set(_ELSEWHERE.values()) <= set(JobDocument.model_fields)
    assert not set(_ELSEWHERE) & set(JobDocument.model_fields)
    assert unknown_field("/Interval", "Interval", JobDocument.model_fields).hint == "did you mean every?"
    assert unknown_field("?timezone", "timezone", ["zone", "limit"]).hint == "did you mean zone?"


def test_no_fault_shows_a_secret() -> None:
    secret = "s3cret-canary"
    documents: list[dict[str, Any]] = [
        {"cron": "@daily", "target": {"url": URL, "headers": {"Authorization": {"x": secret}}}},
        {"cron": "@daily", "target": {"url": URL, "headers": secret}},
        {"cron": "@daily", "target": {"url": f"ftp://user:{secret}@example.com"}},
        {**CRON, "token": secret},
        {"cron": 5, "callback_url": URL, "payload": {"password": secret}},
    ]
    for document in documents:
        with pytest.raises(Invalid) as caught:
            spec_of(document)
        assert secret not in caught.value.message + repr(caught.value.faults)


# --- replacing


def test_a_replacing_document_keeps_what_only_creation_decides() -> None:
    spec = msgspec.structs.replace(spec_of({"every": "15m", "callback_url": URL}), shard_key="s")
    job = job_of(spec, state=JobState.PAUSED, note="INC-42")
    later = NOW + HOUR_US + 77 * SECOND_US
    same = parse_document({"every": "15m", "callback_url": URL}, later, replaces=job)
    assert (same.spec, same.paused, same.note) == (spec, True, "INC-42")
    other = parse_document({"every": "20m", "callback_url": URL, "paused": False}, later, replaces=job)
    assert other.spec.timing == EveryTiming(interval_us=20 * MINUTE_US, phase_at=later - later % SECOND_US)
    assert (other.paused, other.note) == (False, None)


def test_the_key_of_the_address_need_not_be_repeated() -> None:
    assert parse_document(CRON, NOW, key="a/b").spec.key == "a/b"
    assert parse_document({**CRON, "key": "a/b"}, NOW, key="a/b").spec.key == "a/b"
    with pytest.raises(Invalid, match="key: expected the key of the address"):
        parse_document({**CRON, "key": "c"}, NOW, key="a/b")


# --- and back

instants = st.integers(0, 250_000_000_000_000_000)
durations = st.integers(0, LONGEST_DURATION_US)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)  # NUL is refused
timings = (
    st.builds(
        CronTiming,
        expression=st.sampled_from(
            ["0 9 * * *", "*/5 0-3 L * *", "@hourly", "30 0 9 * * mon-fri", "0 0 * * 5#2"]
        ),
        tz=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
        gap=st.sampled_from(["after", "skip", "shift"]),
        fold=st.sampled_from(["auto", "first", "second", "both"]),
    )
    | st.builds(EveryTiming, interval_us=st.integers(1, LONGEST_DURATION_US), phase_at=instants)
    | st.builds(OnceTiming, at=instants)
    | st.builds(
        AfterTiming,
        parents=st.sets(st.integers(1, 1 << 40), max_size=4).map(lambda ids: tuple(sorted(ids))),
        wait_us=durations,
    )
)
targets = st.builds(
    HttpTarget,
    url=st.sampled_from([URL, "http://[::1]:8080/a?b=c#d"]),
    method=st.sampled_from(["GET", "POST", "DELETE"]),
    headers=st.dictionaries(texts, texts, max_size=3),
    timeout_us=st.integers(1, LONGEST_DURATION_US),
) | st.builds(PythonTarget, function=st.sampled_from(["a:b", "app.tasks:Daily.run"]))
payloads = JSON_VALUES.filter(
    lambda value: not (isinstance(value, str) and value.strip()[:1] in ("{", "["))
).map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
specs = st.builds(
    JobSpec,
    timing=timings,
    target=targets,
    name=texts,
    key=st.none() | texts,
    shard_key=st.none() | texts,
    tags=st.lists(texts, max_size=3).map(tuple),
    starts_at=st.none() | instants,
    ends_at=st.none() | instants,
    max_runs=st.none() | st.integers(),
    payload=payloads,
    priority=st.sampled_from(Priority),
    durability=st.sampled_from(Durability),
    pool=texts,
    timeout_us=durations,
    delivery=st.sampled_from(Delivery),
    retry=st.builds(
        Retry,
        max=st.integers(0, 1_000),
        first_us=durations,
        factor=st.floats(1, 100),
        max_delay_us=durations,
    ),
    concurrency=st.none() | st.integers(1, 1_000),
    overlap=st.sampled_from(Overlap),
    misfire=st.builds(
        Misfire, policy=st.sampled_from(MisfirePolicy), grace_us=durations, limit=st.integers(1, 1_000)
    ),
    jitter_us=durations,
)


@given(specs, st.booleans(), st.none() | texts)
def test_a_jobs_document_reads_back_as_the_same_job(spec: JobSpec, paused: bool, note: str | None) -> None:
    job = job_of(spec, state=JobState.PAUSED if paused else JobState.ACTIVE, note=note)
    document = job_document(job)
    for written in (document, msgspec.json.encode(document)):
        new = parse_document(written, NOW)
        assert new.spec == spec
        assert (new.paused, new.note) == (paused, note)
