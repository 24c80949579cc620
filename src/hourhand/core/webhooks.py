"""Webhooks: which events somebody's endpoint is told of, when a call is tried again, and when an endpoint is given up.

Pure. An event has an id of its own that everybody computes alike, so a receiver can tell a repetition from news.
What an event says is `ports.events`'; who sends is `services.webhooks`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id, format_run_id, parse_job_id
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US, format_duration
from hourhand.core.url import url_faults

MAX_WEBHOOKS = 20  # of a tenant
MAX_JOBS = 50  # that one webhook may name
MAX_TAGS = 10  # the same
MAX_DESCRIPTION = 500  # characters
MAX_BACKLOG = 10_000  # deliveries of one webhook that wait; beyond, the oldest are dropped
KEPT_DELIVERIES = 1_000  # of one webhook that are over, for people to look at
KEEP_US = 7 * DAY_US  # deliveries, whatever became of them
TIMEOUT_US = 15 * SECOND_US  # of one call
RETRIES_US = (
    5 * SECOND_US,
    5 * MINUTE_US,
    30 * MINUTE_US,
    2 * HOUR_US,
    5 * HOUR_US,
    10 * HOUR_US,
    14 * HOUR_US,
    20 * HOUR_US,
    24 * HOUR_US,
)  # after the first call, the second, and so on
LONGEST_RETRY_AFTER_US = DAY_US  # that an endpoint may ask for
FAILING_US = 5 * DAY_US  # without one success, after which an endpoint is disabled
QUIET_US = 2 * DAY_US  # without a call, after which a failure is not the continuation of the one before
FIRST_REST_US = (
    5 * SECOND_US
)  # an endpoint is left alone after a batch without a success; twice as long each time
LONGEST_REST_US = 5 * MINUTE_US
SECRET_OVERLAP_US = DAY_US  # for which the secret before the newest signs too
GONE = 410
_MAX_TAG = 100
_MAX_TYPES = 20

TEST = 0  # the kind of a delivery that somebody asked for
KINDS: Mapping[str, int] = {
    "run.succeeded": 1,
    "run.retrying": 2,
    "run.failed": 3,
    "run.skipped": 4,
    "run.cancelled": 7,
    "job.created": 16,
    "job.changed": 17,
    "job.paused": 18,
    "job.resumed": 19,
    "job.deleted": 20,
}  # those of runs have the codes of what happened to them, which statements count on
NAMES = {code: name for name, code in KINDS.items()} | {TEST: "webhook.test"}
FAMILIES = {
    family: tuple(name for name in KINDS if name.startswith(family[:-1]))
    for family in ("*", "run.*", "job.*")
}


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint has answered of late."""

    succeeded_at: int | None = None  # the last time
    failed_at: int | None = None
    failing_since: int | None = None  # the first failure since the last success
    failures: int = 0  # batches in a row without a success
    rest_until: int = 0  # nothing is sent before
    error: str | None = None  # the last one


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint of a tenant, and what it wants to hear."""

    id: int
    tenant: str
    url: str
    types: tuple[str, ...] = ("*",)
    jobs: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    description: str = ""
    enabled: bool = True
    disabled_reason: str | None = None  # where nobody asked for it
    secrets: tuple[str, ...] = ()  # the newest first, at most two
    rotated_at: int = 0
    health: Health = Health()
    dropped: int = 0  # deliveries that had no room or grew too old
    backlog: int = 0  # deliveries that wait, as counted when it was read
    created_at: int = 0
    updated_at: int = 0

    @property
    def kinds(self) -> int:
        """The events it wants as bits, for statements."""
        return sum(1 << KINDS[name] for name in wanted(self.types))

    def hears(self, kind: int, job_id: int, tags: Sequence[str]) -> bool:
        """Whether it wants an event of its tenant: by type, and by job or tag where it names some."""
        if not self.enabled or not self.kinds >> kind & 1:
            return False
        if not self.jobs and not self.tags:
            return True
        return job_id in self.jobs or not set(self.tags).isdisjoint(tags)

    def signing_secrets(self, now_at: int) -> tuple[str, ...]:
        """Those that sign a call: the newest, and the one before for some time."""
        return self.secrets if now_at < self.rotated_at + SECRET_OVERLAP_US else self.secrets[:1]


class DeliveryState(StrEnum):
    """What became of one event for one webhook; their order is how they are kept."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event on its way to one webhook."""

    number: int  # grows within a database
    webhook_id: int
    event_id: str
    kind: int
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0
    made_at: int
    due_at: int
    tried_at: int | None = None
    status: int | None = None  # of the last answer
    error: str | None = None
    took_ms: int | None = None
    body: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to."""

    at: int
    status: int | None = None
    error: str | None = None  # None: it was taken
    took_ms: int = 0
    retry_after_us: int | None = None


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery as it was taken, and what its call came to."""

    delivery: Delivery
    answer: Answered


def event_id_of_run(job_id: int, scheduled_at: int, attempt: int) -> str:
    """The event of one attempt of a run, or of its end without one; no two share an attempt's number."""
    return f"{format_run_id(job_id, scheduled_at)}.{attempt}"


def event_id_of_job(job_id: int, version: int) -> str:
    """The event of one version of a job."""
    return f"{format_job_id(job_id)}.v{version}"


def format_webhook_id(webhook_id: int) -> str:
    """`W-` and 13 letters, made like a job's."""
    return f"W-{format_job_id(webhook_id)[2:]}"


def parse_webhook_id(text: str) -> int:
    """The number behind a public webhook id; ValueError where it is not one."""
    try:
        if text.startswith(("W-", "w-")):
            return parse_job_id(f"J-{text[2:]}")
    except ValueError:
        pass
    raise ValueError(f"not a webhook id: {text[:80]!r} (expected W- and 13 letters or digits)")


def wanted(types: Sequence[str]) -> frozenset[str]:
    """The events that names and families of events mean."""
    return frozenset(name for one in types for name in FAMILIES.get(one, (one,)))


def webhook_faults(webhook: Webhook) -> list[Fault]:
    """Everything that is wrong with what somebody wrote; an empty list is good."""
    faults = url_faults(webhook.url, "/url")
    if not faults and "@" in urlsplit(webhook.url).netloc:
        faults.append(
            Fault(
                pointer="/url",
                expected="no user or password; calls are signed",
                got="one",
            )
        )
    faults += _bounded("/types", len(webhook.types), 1, _MAX_TYPES, "names of events")
    for name in webhook.types:
        if name not in KINDS and name not in FAMILIES:
            known = ", ".join((*FAMILIES, *KINDS))
            hint = "progress is told by /events only" if name == "run.progress" else None
            faults.append(Fault(pointer="/types", expected=f"some of {known}", got=name[:80], hint=hint))
    faults += _bounded("/jobs", len(webhook.jobs), 0, MAX_JOBS, "jobs; use a tag for more")
    faults += _bounded("/tags", len(webhook.tags), 0, MAX_TAGS, "tags")
    if any(not 1 <= len(tag) <= _MAX_TAG for tag in webhook.tags):
        faults.append(Fault(pointer="/tags", expected=f"tags of 1 to {_MAX_TAG} characters", got="others"))
    if len(webhook.description) > MAX_DESCRIPTION or "\0" in webhook.description:
        expected = f"at most {MAX_DESCRIPTION} characters, none of them NUL"
        faults.append(Fault(pointer="/description", expected=expected, got=f"{len(webhook.description):,}"))
    return faults


def rotated(webhook: Webhook, secret: str, now_at: int) -> Webhook:
    """With a new secret; the one before signs too for a day."""
    secrets = (secret, *webhook.secrets[:1])
    return msgspec.structs.replace(webhook, secrets=secrets, rotated_at=now_at, updated_at=now_at)


def after_try(tried: Tried) -> Delivery:
    """What becomes of a delivery by a call: over, or tried again later."""
    delivery, answer = tried.delivery, tried.answer
    tries = delivery.tries + 1
    state, due_at = DeliveryState.DELIVERED, answer.at
    if answer.error is not None:
        state = DeliveryState.PENDING if tries <= len(RETRIES_US) else DeliveryState.FAILED
        if state is DeliveryState.PENDING:
            due_at += max(RETRIES_US[tries - 1], _asked_us(answer))
    return msgspec.structs.replace(
        delivery,
        state=state,
        tries=tries,
        due_at=due_at,
        tried_at=answer.at,
        status=answer.status,
        error=answer.error,
        took_ms=answer.took_ms,
    )


def after_calls(webhook: Webhook, answers: Sequence[Answered], now_at: int) -> Webhook:
    """What a batch of calls says of their endpoint: well, to be left alone for a while, or disabled.

    A success among them says that it lives, whatever happened to the others.
    """
    if not answers:
        return webhook
    old = webhook.health
    failed = [one for one in answers if one.error is not None]
    gone = any(one.status == GONE for one in failed)
    error = failed[-1].error if failed else old.error
    if len(failed) < len(answers) and not gone:
        health = Health(
            succeeded_at=now_at,
            failed_at=now_at if failed else old.failed_at,
            error=error,
            rest_until=now_at + max((_asked_us(one) for one in failed), default=0),
        )
        return msgspec.structs.replace(webhook, health=health)
    continues = old.failing_since is not None and now_at - (old.failed_at or 0) < QUIET_US
    since = old.failing_since if continues and old.failing_since is not None else now_at
    rest_us = min(LONGEST_REST_US, FIRST_REST_US << min(old.failures, 20))
    health = msgspec.structs.replace(
        old,
        failed_at=now_at,
        failing_since=since,
        failures=old.failures + 1,
        error=error,
        rest_until=now_at + max(rest_us, *(_asked_us(one) for one in failed)),
    )
    reason = None
    if gone:
        reason = f"it answered {GONE} Gone"
    elif now_at - since >= FAILING_US:
        reason = f"nothing was taken for {format_duration(FAILING_US)}; the last error: {error}"
    return msgspec.structs.replace(
        webhook,
        health=health,
        enabled=webhook.enabled and reason is None,
        disabled_reason=webhook.disabled_reason if reason is None else reason,
    )


def enabled_anew(webhook: Webhook, now_at: int) -> Webhook:
    """As somebody wants it who has mended the endpoint: what happened before no longer counts."""
    health = Health(succeeded_at=webhook.health.succeeded_at, failed_at=webhook.health.failed_at)
    return msgspec.structs.replace(
        webhook, enabled=True, disabled_reason=None, health=health, updated_at=now_at
    )


def _asked_us(answer: Answered) -> int:
    return min(answer.retry_after_us or 0, LONGEST_RETRY_AFTER_US)


def _bounded(pointer: str, count: int, least: int, most: int, what: str) -> list[Fault]:
    if least <= count <= most:
        return []
    return [Fault(pointer=pointer, expected=f"{least} to {most} {what}", got=str(count))]
