"""A webhook as people write it: its fields, and what of them a webhook becomes."""

from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id, parse_job_id
from hourhand.core.webhooks import Webhook


def _may_be(description: str, example: Any, default: Any) -> Any:
    return Field(
        default=None, description=description, examples=[example], json_schema_extra={"default": default}
    )


class WebhookDocument(BaseModel):
    """An endpoint, and what it wants to hear."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    url: str = Field(
        description="Where events go, by POST; http or https, an address that targets may have too.",
        examples=["https://example.com/hourhand"],
    )
    types: list[str] | None = _may_be(
        "Which events; `run.*` and `job.*` mean all of a kind.", ["run.failed", "job.*"], ["*"]
    )
    jobs: list[str] | None = _may_be("Only of these jobs, or of one of the tags.", ["J-0d3x8m2k7q1vt"], [])
    tags: list[str] | None = _may_be(
        "Only of jobs with one of these, or of one of the jobs.", ["billing"], []
    )
    description: str | None = _may_be("What it is for.", "our chat", "")
    enabled: bool | None = _may_be("False: nothing is sent, and nothing new is noted for it.", True, True)


class WebhookPatch(WebhookDocument):
    """What is to be changed of an endpoint; what is not named stays. For the description: it is read as a whole
    document, once it is merged."""

    url: str = Field(
        default="",
        description="Where events go from now on.",
        examples=["https://example.com/hourhand"],
    )


def document_of(webhook: Webhook) -> dict[str, Any]:
    """What somebody wrote to have it so."""
    return {
        "url": webhook.url,
        "types": list(webhook.types),
        "jobs": [format_job_id(one) for one in webhook.jobs],
        "tags": list(webhook.tags),
        "description": webhook.description,
        "enabled": webhook.enabled,
    }


def applied(document: WebhookDocument, webhook: Webhook) -> Webhook:
    """The webhook as the whole document says; raises nothing once `job_faults` has found nothing."""
    return msgspec.structs.replace(
        webhook,
        url=document.url,
        types=tuple(dict.fromkeys(("*",) if document.types is None else document.types)),
        jobs=tuple(dict.fromkeys(parse_job_id(text) for text in document.jobs or ())),
        tags=tuple(dict.fromkeys(document.tags or ())),
        description=document.description or "",
        enabled=document.enabled is not False,
        disabled_reason=webhook.disabled_reason if document.enabled is False else None,
    )


def job_faults(document: WebhookDocument) -> list[Fault]:
    """What is no job's id among those that it names."""
    faults = []
    for place, text in enumerate(document.jobs or ()):
        try:
            parse_job_id(text)
        except ValueError:
            faults.append(Fault(pointer=f"/jobs/{place}", expected="a job id", got=repr(text[:60])))
    return faults
