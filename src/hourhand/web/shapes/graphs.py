"""The shape of graphs in answers, as OpenAPI shows them; `answers` builds them."""

from typing import Literal

from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, StateWord, always


class GraphJobAnswer(Shape):
    """A job of a graph."""

    job_id: str = always("Its id.", A_JOB)
    name: str = always("Its label.", "daily-report")
    key: str | None = always("Its key.", "billing/daily")
    state: Literal["active", "paused", "completed"] = always("Whether it makes runs.", "active")
    after: list[str] = always("The jobs that it follows; none for a root.", [])
    level: int = always("How far below the roots it is.", 0)
    status: StateWord | None = always("Of its run; null where it has none.", "SUCCEEDED")
    scheduled_at: str | None = always("The nominal time of that run.", A_TIME)


class GraphAnswer(Shape):
    """A job with all that hang together with it."""

    job_id: str = always("The job that was asked for.", A_JOB)
    at: str | None = always("The nominal time whose runs are shown; null: the newest of each job.", None)
    jobs: list[GraphJobAnswer] = always("The jobs, by level.", [])
    edges: list[list[str]] = always("Who is followed by whom.", [[A_JOB, "J-0d3x8m2k7q1vv"]])
    truncated: bool = always("Whether there are more, further away.", False)
