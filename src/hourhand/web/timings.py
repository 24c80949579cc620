"""When a document says a job fires: exactly one of cron, every, at and after, with what may stand beside it.

Expressions, zones and DST policies are `core.schedule`'s; its errors become faults that name the field. Keys in
`after` have become ids before (`references`).
"""

from functools import lru_cache

from hourhand.core.fault import Fault
from hourhand.core.identity import parse_job_id
from hourhand.core.instant import SECOND_US, format_duration, format_instant
from hourhand.core.model import AfterTiming, CronTiming, EveryTiming, Job, OnceTiming, Timing
from hourhand.core.schedule import ScheduleError, parse_cron
from hourhand.errors import Invalid
from hourhand.web.faults import refusal
from hourhand.web.fields import shown
from hourhand.web.schema import DstDocument, JobDocument

SCHEDULES = ("cron", "every", "at", "after")
DEFAULT_WAIT_US = AfterTiming(parents=()).wait_us
_DEFAULT_DST = DstDocument.model_validate({"gap": "after", "fold": "auto"})


def timing_of(document: JobDocument, now_at: int, replaces: Job | None, faults: list[Fault]) -> Timing | None:
    """The timing that a document names; None with its faults added where it names none."""
    named = [name for name in SCHEDULES if getattr(document, name) is not None]
    if len(named) != 1:
        got = " and ".join(named) if named else "none of them"
        pointer = f"/{named[1]}" if named else ""
        faults.append(Fault(pointer=pointer, expected="exactly one of cron, every, at and after", got=got))
        return None
    faults += _misplaced(document, named[0])
    if document.every is not None:
        if document.every == 0:
            faults.append(Fault(pointer="/every", expected="more than 0", got="0s"))
            return None
        return EveryTiming(interval_us=document.every, phase_at=_phase(document, now_at, replaces))
    if document.at is not None:
        return OnceTiming(at=document.at)
    if document.after is not None:
        return _after_timing(document.after, document.wait, faults)
    try:
        return cron_timing(str(document.cron), document.tz, document.dst)
    except Invalid as error:
        faults += error.faults
        return None


def cron_timing(expression: str, tz: str | None, dst: DstDocument | None) -> CronTiming:
    """The timing of an expression, with the zone that it names itself brought into `tz`; Invalid says where."""
    gap = dst.gap if dst and dst.gap else "after"
    fold = dst.fold if dst and dst.fold else "auto"
    try:
        return _cron_timing(expression, tz or "UTC", str(gap), str(fold))
    except ScheduleError as error:
        raise refusal([_schedule_fault(error, tz)]) from None


def _after_timing(named: list[str], wait_us: int | None, faults: list[Fault]) -> AfterTiming | None:
    parents: set[int] = set()
    wrong = []
    for index, text in enumerate(named):
        try:
            parents.add(parse_job_id(text))
        except ValueError:
            wrong.append(Fault(pointer=f"/after/{index}", expected="a job id", got=shown(text)))
    faults += wrong
    if wrong:
        return None
    return AfterTiming(
        parents=tuple(sorted(parents)), wait_us=DEFAULT_WAIT_US if wait_us is None else wait_us
    )


def _phase(document: JobDocument, now_at: int, replaces: Job | None) -> int:
    if document.phase is not None:
        return document.phase
    before = replaces.spec.timing if replaces else None
    if isinstance(before, EveryTiming) and before.interval_us == document.every:
        return before.phase_at
    return now_at - now_at % SECOND_US


def _misplaced(document: JobDocument, schedule: str) -> list[Fault]:
    """Fields that would say nothing beside this schedule; their defaults may stand."""
    faults = []
    if schedule != "cron":
        if document.tz is not None and document.tz.upper() != "UTC":
            faults.append(_only_beside("tz", "cron", document.tz))
        if document.dst is not None and document.dst != _DEFAULT_DST and document.dst != DstDocument():
            faults.append(_only_beside("dst", "cron", "an object"))
    if schedule != "every" and document.phase is not None:
        faults.append(_only_beside("phase", "every", format_instant(document.phase)))
    if schedule != "after" and document.wait is not None and document.wait != DEFAULT_WAIT_US:
        faults.append(_only_beside("wait", "after", format_duration(document.wait)))
    return faults


def _only_beside(field: str, schedule: str, got: str) -> Fault:
    return Fault(pointer=f"/{field}", expected=f"{field} only beside {schedule}", got=got)


@lru_cache(maxsize=16_384)
def _cron_timing(expression: str, tz: str, gap: str, fold: str) -> CronTiming:
    rule = parse_cron(expression, tz=tz, gap=gap, fold=fold)
    words = expression.split()
    if "=" in words[0]:
        words = words[1:]  # CRON_TZ=…: the rule's zone says it already
    return CronTiming(expression=" ".join(words), tz=rule.zone, gap=gap, fold=fold)


def _schedule_fault(error: ScheduleError, tz: str | None) -> Fault:
    match error.field:
        case "zone":
            pointer, expected = ("/tz" if tz else "/cron"), error.allowed
        case "dst gap" | "dst fold":
            pointer, expected = f"/dst/{error.field.removeprefix('dst ')}", error.allowed
        case "expression":
            pointer, expected = "/cron", error.allowed
        case field:
            pointer, expected = "/cron", f"as {field} {error.allowed}"
    return Fault(pointer=pointer, expected=expected, got=shown(error.value), hint=error.hint)
