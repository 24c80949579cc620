"""The shape of graphs in answers, as OpenAPI shows them; `answers` builds them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hourhand.web.shapes import StateWord

_CONFIG = ConfigDict(extra="forbid", strict=True)
_TIME = "2026-11-16T08:00:00Z"
_JOB = "J-0d3x8m2k7q1vt"


def _is(description: str, example: Any) -> Any:
    return Field(description=description, examples=[example])


class GraphJobAnswer(BaseModel):
    """A job of a graph."""

    model_config = _CONFIG

    job_id: str = _is("Its id.", _JOB)
    name: str = _is("Its label.", "daily-report")
    key: str | None = _is("Its key.", "billing/daily")
    state: Literal["active", "paused", "completed"] = _is("Whether it makes runs.", "active")
    after: list[str] = _is("The jobs that it follows; none for a root.", [])
    level: int = _is("How far below the roots it is.", 0)
    status: StateWord | None = _is("Of its run; null where it has none.", "SUCCEEDED")
    scheduled_at: str | None = _is("The nominal time of that run.", _TIME)


class GraphAnswer(BaseModel):
    """A job with all that hang together with it."""

    model_config = _CONFIG

    job_id: str = _is("The job that was asked for.", _JOB)
    at: str | None = _is("The nominal time whose runs are shown; null: the newest of each job.", None)
    jobs: list[GraphJobAnswer] = _is("The jobs, by level.", [])
    edges: list[list[str]] = _is("Who is followed by whom.", [[_JOB, "J-0d3x8m2k7q1vv"]])
    truncated: bool = _is("Whether there are more, further away.", False)
