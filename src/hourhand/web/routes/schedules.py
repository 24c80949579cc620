"""Schedules before a job has them: what an expression means, and when it would fire."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.fault import Fault
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.model import rule_of
from hourhand.core.schedule import Cron, Every, Rule, next_zone_change, preview
from hourhand.web.access import needs
from hourhand.web.answers import json_answer, time_answers
from hourhand.web.context import context_of
from hourhand.web.faults import refusal, validated
from hourhand.web.json_text import read_object
from hourhand.web.openapi import problems, takes
from hourhand.web.requests import StrictRoute, json_body
from hourhand.web.schema import ScheduleDocument
from hourhand.web.shapes.schedules import Preview
from hourhand.web.timings import cron_timing

router = APIRouter(tags=["schedules"], route_class=StrictRoute)

MAX_TIMES = 1_000


@router.post(
    "/schedules/preview",
    summary="What a schedule means",
    response_model=Preview,
    responses=problems(body=True),
    openapi_extra=takes(ScheduleDocument),
)
@needs(Role.VIEWER)
async def preview_schedule(request: Request) -> Response:
    """The schedule in words, and its coming times with what DST moves, drops or repeats. Changes nothing."""
    web = context_of(request)
    asked = validated(ScheduleDocument, read_object(await json_body(request), "a schedule"))
    now_at = web.clock.now()
    rule = _rule(asked, now_at)
    count = 10 if asked.n is None else asked.n
    if not 1 <= count <= MAX_TIMES:
        raise refusal([Fault(pointer="/n", expected=f"1 to {MAX_TIMES:,}", got=f"{count:,}")])
    after = now_at if asked.after is None else asked.after
    zone = rule.zone if isinstance(rule, Cron) else "UTC"
    change = next_zone_change(zone, after)
    return json_answer(
        {
            "schedule_in_words": rule.describe(),
            "tz": zone,
            "data": time_answers(preview(rule, after, count)),
            "next_change": change
            and {
                "at": format_instant(change.at),
                "old_offset_s": change.old_offset_s,
                "new_offset_s": change.new_offset_s,
            },
        }
    )


def _rule(asked: ScheduleDocument, now_at: int) -> Rule:
    if (asked.cron is None) == (asked.every is None):
        got = "neither" if asked.cron is None else "both"
        raise refusal([Fault(pointer="", expected="either cron or every", got=got)])
    if asked.cron is not None:
        rule = rule_of(cron_timing(asked.cron, asked.tz, asked.dst))
        assert rule is not None
        return rule
    if not asked.every:
        raise refusal([Fault(pointer="/every", expected="more than 0", got="0s")])
    phase_at = now_at - now_at % SECOND_US if asked.phase is None else asked.phase
    return Every(interval_us=asked.every, phase_us=phase_at)
