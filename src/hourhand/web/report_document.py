"""What a target reports, as it comes: its fields, which of them go together, and the report that they mean."""

import math
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from hourhand.core.fault import Fault
from hourhand.core.instant import SECOND_US
from hourhand.core.report import Report, ReportOutcome
from hourhand.web.fields import misfit, one_of, shown, words

_LONGEST_EXTENSION_S = 366 * 86_400


def _attempt(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 31:
        return value
    raise misfit("the number in Hourhand-Attempt", shown(value))


def _fraction(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise misfit("a number from 0 to 1", shown(value))


def _extension(value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return int(min(value, _LONGEST_EXTENSION_S) * SECOND_US)
    raise misfit("a number of seconds above 0", shown(value))


_OutcomeWord = Annotated[ReportOutcome, one_of(ReportOutcome), words(ReportOutcome)]
_AttemptNumber = Annotated[int, PlainValidator(_attempt), WithJsonSchema({"type": "integer", "minimum": 1})]
_Fraction = Annotated[
    float, PlainValidator(_fraction), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
_Seconds = Annotated[
    int, PlainValidator(_extension), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]


def _may_be(description: str, example: Any) -> Any:
    return Field(default=None, description=description, examples=[example])


class ReportDocument(BaseModel):
    """What a target that answered 202 says of its attempt."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    attempt: _AttemptNumber = Field(description="Which attempt: Hourhand-Attempt of the call.", examples=[1])
    outcome: _OutcomeWord = Field(
        description="succeeded and failed end the attempt; progress does not.", examples=["succeeded"]
    )
    result: Any = _may_be("With succeeded: any JSON; the first 4 KiB are kept.", {"rows": 1204})
    error: str | None = _may_be("With failed: what went wrong.", "the warehouse did not answer")
    retryable: bool | None = _may_be("With failed: whether trying again can help; true unless given.", True)
    progress: _Fraction | None = _may_be("With progress: how far it is, from 0 to 1.", 0.4)
    message: str | None = _may_be("With progress: a few words; 200 characters are kept.", "loading")
    extend_s: _Seconds | None = _may_be(
        "With progress: how many seconds from now it may still take, at most the job's timeout.", 300
    )


_GOES_WITH = {
    "result": ReportOutcome.SUCCEEDED,
    "error": ReportOutcome.FAILED,
    "retryable": ReportOutcome.FAILED,
    "progress": ReportOutcome.PROGRESS,
    "message": ReportOutcome.PROGRESS,
    "extend_s": ReportOutcome.PROGRESS,
}


def report_faults(document: ReportDocument) -> list[Fault]:
    """Fields that do not go with the outcome."""
    given = [name for name in _GOES_WITH if getattr(document, name) is not None]
    return [
        Fault(
            pointer=f"/{name}",
            expected=f"{name} only with outcome {_GOES_WITH[name]}",
            got=f"it with {document.outcome}",
        )
        for name in given
        if _GOES_WITH[name] is not document.outcome
    ]


def report_in(document: ReportDocument) -> Report:
    """The report that a document means."""
    return Report(
        attempt=document.attempt,
        outcome=document.outcome,
        result=document.result,
        error=document.error,
        retryable=document.retryable is not False,
        fraction=document.progress,
        message=document.message,
        extend_us=document.extend_s,
    )
