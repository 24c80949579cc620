"""What a job may be: the limits that a document's shape alone cannot say.

Pure. Answers faults that name the field, what was expected and what came; an empty list is a good job.
"""

import re

import msgspec

from hourhand.core.dag import MAX_PARENTS
from hourhand.core.fault import Fault
from hourhand.core.headers import header_faults
from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US, format_duration, format_instant
from hourhand.core.model import (
    MAX_CONCURRENCY,
    MAX_PAYLOAD_BYTES,
    AfterTiming,
    CronTiming,
    HttpTarget,
    JobSpec,
    ShellTarget,
)
from hourhand.core.shell import shell_faults

MAX_JITTER_US = 30 * SECOND_US
MAX_TIMEOUT_US = 7 * DAY_US
MAX_WAIT_US = 30 * DAY_US
MAX_RETRIES = 100
MAX_NAME = 200
MAX_KEY = 200
MAX_TAGS = 32
MAX_CATCH_UP = 1_000
MAX_GRACE_US = DAY_US
MAX_RUNS = 10_000_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DOTS = re.compile(
    r"(?:^|/)\.\.?(?:/|$)"
)  # clients and proxies resolve them in a path, so another job would be meant


class SpecLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits an operator sets."""

    min_interval_us: int = SECOND_US
    payload_bytes: int = MAX_PAYLOAD_BYTES


def faults_in(spec: JobSpec, limits: SpecLimits) -> list[Fault]:
    """Everything that is wrong with a job, the schedule first."""
    faults = _schedule_faults(spec, limits)
    faults += _label_faults(spec)
    faults += _policy_faults(spec)
    if len(bytes(spec.payload)) > limits.payload_bytes:
        faults.append(
            Fault(
                pointer="/payload",
                expected=f"at most {limits.payload_bytes:,} bytes of JSON",
                got=f"{len(bytes(spec.payload)):,} bytes",
            )
        )
    if isinstance(spec.target, HttpTarget):
        faults += header_faults(spec.target.headers)
        faults += _duration_faults("/target/timeout", spec.target.timeout_us, 1000, HOUR_US)
    if isinstance(spec.target, ShellTarget):
        faults += shell_faults(spec.target)
    return faults


def _schedule_faults(spec: JobSpec, limits: SpecLimits) -> list[Fault]:
    faults = _after_faults(spec)
    rule = spec.rule
    if rule is not None and rule.min_gap() < limits.min_interval_us:
        pointer = "/cron" if isinstance(spec.timing, CronTiming) else "/every"
        faults.append(
            Fault(
                pointer=pointer,
                expected=f"times at least {format_duration(limits.min_interval_us)} apart",
                got=f"{format_duration(rule.min_gap())} apart",
            )
        )
    if spec.starts_at is not None and spec.ends_at is not None and spec.ends_at < spec.starts_at:
        faults.append(
            Fault(
                pointer="/ends_at", expected="a time not before starts_at", got=format_instant(spec.ends_at)
            )
        )
    if spec.max_runs is not None and not 1 <= spec.max_runs <= MAX_RUNS:
        faults.append(_range_fault("/max_runs", 1, MAX_RUNS, spec.max_runs))
    return faults


def _after_faults(spec: JobSpec) -> list[Fault]:
    """A job that follows others has its times from them."""
    timing = spec.timing
    if not isinstance(timing, AfterTiming):
        return []
    faults = _duration_faults("/wait", timing.wait_us, SECOND_US, MAX_WAIT_US)
    if not 1 <= len(timing.parents) <= MAX_PARENTS:
        expected = f"1 to {MAX_PARENTS} jobs"
        faults.append(Fault(pointer="/after", expected=expected, got=f"{len(timing.parents)}"))
    bounds = (("starts_at", spec.starts_at), ("ends_at", spec.ends_at), ("max_runs", spec.max_runs))
    return faults + [
        Fault(
            pointer=f"/{field}",
            expected=f"no {field} beside after",
            got=f"{value}",
            hint="a job that follows others has their times: bound the roots of its graph",
        )
        for field, value in bounds
        if value is not None
    ]


def _label_faults(spec: JobSpec) -> list[Fault]:
    faults = []
    labels = [("/name", spec.name, MAX_NAME), ("/pool", spec.pool, MAX_NAME)]
    labels += [
        (f"/{field}", text, MAX_KEY)
        for field, text in (("key", spec.key), ("shard_key", spec.shard_key), ("set", spec.set_name))
        if text is not None
    ]
    labels += [(f"/tags/{index}", tag, MAX_NAME) for index, tag in enumerate(spec.tags)]
    for pointer, text, longest in labels:
        if len(text) > longest or _CONTROL.search(text):
            expected = f"at most {longest} characters, none of them control characters"
            faults.append(Fault(pointer=pointer, expected=expected, got=f"{len(text)} characters"))
        elif not text and pointer != "/name":
            faults.append(Fault(pointer=pointer, expected="at least one character", got="an empty text"))
        elif text.isspace() and pointer == "/name":
            expected = "a name that can be seen, or none"
            faults.append(Fault(pointer=pointer, expected=expected, got="only spaces"))
        elif pointer == "/key" and _DOTS.search(text):
            expected = 'a key without a part "." or "..", since it stands in URLs'
            faults.append(Fault(pointer=pointer, expected=expected, got=f"{text!r}"))
    if len(spec.tags) > MAX_TAGS:
        faults.append(Fault(pointer="/tags", expected=f"at most {MAX_TAGS} tags", got=f"{len(spec.tags)}"))
    return faults


def _policy_faults(spec: JobSpec) -> list[Fault]:
    faults = []
    durations = (
        ("/jitter", spec.jitter_us, 0, MAX_JITTER_US),
        ("/timeout", spec.timeout_us, 1000, MAX_TIMEOUT_US),
        ("/misfire/grace", spec.misfire.grace_us, 0, MAX_GRACE_US),
        ("/retry/first", spec.retry.first_us, 0, MAX_TIMEOUT_US),
        ("/retry/max_delay", spec.retry.max_delay_us, 0, MAX_TIMEOUT_US),
    )
    for bounds in durations:
        faults += _duration_faults(*bounds)
    numbers = (
        ("/retry/max", spec.retry.max, 0, MAX_RETRIES),
        ("/misfire/limit", spec.misfire.limit, 1, MAX_CATCH_UP),
        ("/concurrency", 1 if spec.concurrency is None else spec.concurrency, 1, MAX_CONCURRENCY),
    )
    faults += [
        _range_fault(pointer, low, high, value)
        for pointer, value, low, high in numbers
        if not low <= value <= high
    ]
    if not 1 <= spec.retry.factor <= 100:
        faults.append(
            Fault(pointer="/retry/factor", expected="a number from 1 to 100", got=f"{spec.retry.factor:g}")
        )
    return faults


def _duration_faults(pointer: str, value: int, low: int, high: int) -> list[Fault]:
    if low <= value <= high:
        return []
    expected = f"a duration from {format_duration(low)} to {format_duration(high)}"
    got = format_duration(value) if value >= 0 else f"{value:,} microseconds"
    return [Fault(pointer=pointer, expected=expected, got=got)]


def _range_fault(pointer: str, low: int, high: int, value: int) -> Fault:
    return Fault(pointer=pointer, expected=f"a whole number from {low:,} to {high:,}", got=f"{value:,}")
