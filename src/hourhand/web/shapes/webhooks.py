"""The shape of answers about webhooks and their deliveries, as OpenAPI shows them."""

from typing import Literal

from hourhand.web.shapes.parts import A_JOB, A_RUN, A_TIME, Shape, always, sometimes

A_WEBHOOK = "W-0d3x8m2k7q1vt"
AN_EVENT = f"{A_RUN}.1"


class WebhookAnswer(Shape):
    """A webhook, and how its endpoint has answered of late."""

    webhook_id: str | None = always("Its id; null in a dry run of creating it.", A_WEBHOOK)
    url: str = always("Where events go.", "https://example.com/hourhand")
    types: list[str] = always("Which events.", ["run.failed", "job.*"])
    jobs: list[str] = always("Only of these jobs, where some are named.", [A_JOB])
    tags: list[str] = always("Only of jobs with one of these, where some are named.", ["billing"])
    description: str = always("What it is for.", "our chat")
    enabled: bool = always("Whether events are noted for it and sent.", True)
    disabled_reason: str | None = always("Why it was disabled, where nobody asked for it.", None)
    failing_since: str | None = always("The first failure since the last success.", None)
    last_success_at: str | None = always("When it last took an event.", A_TIME)
    last_failure_at: str | None = always("When a call last failed.", None)
    last_error: str | None = always("What was wrong then.", None)
    waiting: int = always("Deliveries that are still to be made.", 0)
    dropped: int = always("Deliveries that were given up since too many waited, or for too long.", 0)
    previous_secret_until: str | None = always("Until when the secret before this one signs too.", None)
    created_at: str = always("When it was made.", A_TIME)
    updated_at: str = always("When somebody last changed it.", A_TIME)
    secret: str | None = sometimes(
        "What its calls are signed with. Shown once: when it is made, and when it is rotated.",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class WebhookList(Shape):
    """All webhooks of a tenant, oldest first."""

    data: list[WebhookAnswer] = always("The webhooks.", [])
    next_cursor: str | None = always("Always null: there are few.", None)


class DeliveryAnswer(Shape):
    """One event on its way to a webhook."""

    event_id: str = always(
        "The event's id: the same on every repetition, and `webhook-id` of its calls.", AN_EVENT
    )
    webhook_id: str = always("To which.", A_WEBHOOK)
    type: str = always("What happened.", "run.failed")
    state: Literal["pending", "delivered", "failed"] = always("What became of it.", "delivered")
    tries: int = always("How often it was sent.", 1)
    created_at: str = always("When it was made.", A_TIME)
    next_try_at: str | None = always("When it is sent next, at the earliest.", None)
    last_try_at: str | None = always("When it was last sent.", A_TIME)
    status: int | None = always("What the endpoint answered then.", 200)
    error: str | None = always("What was wrong then.", None)
    took_ms: int | None = always("How long that took.", 31)
    event: dict[str, object] = always("The document that is sent.", {"type": "run.failed"})
    dry_run: bool | None = sometimes("True where nothing was written.", True)


class DeliveryList(Shape):
    """A page of deliveries, newest first."""

    data: list[DeliveryAnswer] = always("The deliveries.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])
