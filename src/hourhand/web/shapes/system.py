"""How the whole stands, in answers: processes, sizes, the last hour, health."""

from typing import Literal

from pydantic import Field

from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, SpanShape, always


class NodeAnswer(Shape):
    """A process of the cluster."""

    node_id: str = always("New at every start.", "1f3c5a7b9d0e2f41")
    kind: str = always("What it does.", "up")
    name: str = always("Host and process.", "host-1:4711")
    started_at: str = always("Since when.", A_TIME)
    lease_until: str = always("When it counts as gone without a sign.", A_TIME)
    alive: bool = always("Whether its lease still runs.", True)


class NodeList(Shape):
    """All processes known."""

    data: list[NodeAnswer] = always("The processes.", [])


class SegmentAnswer(Shape):
    """A part of all clocks, and who plans it."""

    segment: int = always("Its number.", 0)
    shard: int = always("The database that it belongs to.", 0)
    fence: int = always("Grows each time it changes hands.", 7)
    node_id: str | None = always("Who plans it; null where nobody does.", "1f3c5a7b9d0e2f41")
    name: str | None = always("Host and process of that.", "host-1:4711")
    alive: bool = always("Whether that one's lease still runs.", True)


class SegmentList(Shape):
    """All segments."""

    data: list[SegmentAnswer] = always("The segments.", [])


class SizesAnswer(Shape):
    """How much there is; counted up to a bound, and a moment ago. Of the tenant's own, or of everything."""

    tenant: str | None = always(
        "Whose they are; null for everything, which is told to who runs the system.", "acme"
    )
    complete: bool = always(
        "False where there was too much to look through: then it is at least so many.", True
    )
    jobs: int = always("Jobs.", 12)
    planned: int = always("Runs that are written and not yet taken.", 3)
    running: int = always("Runs in a worker's hand or between two attempts.", 1)
    blocked: int = always("Runs that wait for a slot of their job.", 0)
    dead: int = always("Dead letters.", 0)
    oldest_due_at: str | None = always("Since when the oldest run waits for a worker; may lie ahead.", A_TIME)
    counted_at: str = always("When this was counted.", A_TIME)


class ProcessesAnswer(Shape):
    """Processes of one kind."""

    kind: str = always("What they do.", "up")
    alive: int = always("How many have a lease.", 1)


class MinuteAnswer(SpanShape):
    """What a minute held, or an hour."""

    from_: str = Field(alias="from", description="Its beginning.", examples=[A_TIME])
    succeeded: int = always("Runs that succeeded.", 60)
    failed: int = always("Runs that used up their tries.", 0)
    retrying: int = always("Attempts that failed and will be repeated.", 0)
    skipped: int = always("Runs that were skipped.", 0)
    cancelled: int = always("Runs that were cancelled.", 0)
    lag_p50_ms: int | None = always("Half of the starts were at most this late; null without one.", 2)
    lag_p99_ms: int | None = always("99 of 100 starts were at most this late.", 12)
    lag_max_ms: int | None = always("The latest start.", 15)


class ChangeAnswer(Shape):
    """Something that changed of a job."""

    at: str = always("When.", A_TIME)
    type: str = always(
        "What: job.created, job.changed, job.paused, job.resumed or job.deleted.", "job.paused"
    )
    job_id: str = always("The job.", A_JOB)
    name: str | None = always("Its name, cut if it is long.", "daily-report")
    state: str = always("Its state since.", "paused")
    version: int | None = always("Its version since.", 2)


class OverviewAnswer(Shape):
    """How everything stands."""

    now: str = always("The server's time.", A_TIME)
    parts: dict[str, str] = always("Each part of this process: ok, or what is wrong.", {"planner": "ok"})
    sizes: SizesAnswer = always("How much there is.", None)
    processes: list[ProcessesAnswer] = always("The live processes by kind.", [])
    since: str = always(
        "From when on this process has heard what happens; an hour ago at the earliest.", A_TIME
    )
    hour: MinuteAnswer = always("The last hour in sum.", None)
    minutes: list[MinuteAnswer] = always("Its minutes, oldest first; empty ones are left out.", [])
    changes: list[ChangeAnswer] = always("What changed of jobs, newest first, at most 50.", [])


class Health(Shape):
    """The process is up."""

    status: Literal["ok"] = always("ok.", "ok")
    version: str = always("Of hourhand.", "0.1.0")


class Readiness(Shape):
    """Whether the process can do its work."""

    status: Literal["ready", "not ready"] = always("ready, or not.", "ready")
    parts: dict[str, str] = always("Each part: ok, or what is wrong.", {"store": "ok"})
