"""A few jobs for the first look: Python functions, so that no call leaves the machine."""

import itertools

from hourhand.functions import Hourhand, Run

_hh = Hourhand()
_deliveries = itertools.count(1)


@_hh.job(every="10s", key="demo/hello", name="hello", tags=["demo"], payload={"name": "world"})
async def hello(name: str) -> str:
    """Says hello every ten seconds."""
    return f"hello, {name}"


@_hh.job(cron="* * * * *", key="demo/minutely", name="minutely", tags=["demo"], priority="high")
def minutely(ctx: Run) -> dict[str, str]:
    """A plain function, on a thread, at every full minute."""
    return {"scheduled_at": ctx.scheduled_at.isoformat()}


@_hh.job(every="30s", key="demo/flaky", name="flaky", tags=["demo"], retry={"max": 3, "first": "2s"})
async def flaky() -> str:
    """Fails every second time, to show a retry."""
    number = next(_deliveries)
    if number % 2:
        raise ConnectionError("the other side hung up (as the demo wants it to)")
    return f"delivered at call {number}"


@_hh.job(cron="0 9 * * mon-fri", tz="Europe/Berlin", key="demo/report", name="weekday-report", tags=["demo"])
async def report() -> str:
    """Weekdays at nine in Berlin, whatever DST does."""
    return "the report of the day"


DEMO = (hello, minutely, flaky, report)
