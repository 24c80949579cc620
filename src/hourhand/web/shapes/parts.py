"""What the shapes of answers are made of: their base, their fields, and the examples in them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

A_TIME = "2026-11-16T08:00:00Z"
A_JOB = "J-0d3x8m2k7q1vt"
A_RUN = f"{A_JOB}@20261116T080000Z"

StateWord = Literal["PENDING", "RUNNING", "RETRYING", "SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]


class Shape(BaseModel):
    """An answer, with these fields and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SpanShape(Shape):
    """One with a field `from`, which is no name in Python."""

    model_config = ConfigDict(populate_by_name=True)


def always(description: str, example: Any) -> Any:
    """A field that every answer has."""
    return Field(description=description, examples=[example])


def sometimes(description: str, example: Any) -> Any:
    """A field that only some answers have."""
    return Field(default=None, description=description, examples=[example])
