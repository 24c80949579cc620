"""Webhooks, pure: what they hear, when calls are repeated, and when an endpoint is left alone or given up."""

import msgspec
import pytest

from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.webhooks import (
    FAILING_US,
    KINDS,
    LONGEST_REST_US,
    LONGEST_RETRY_AFTER_US,
    RETRIES_US,
    SECRET_OVERLAP_US,
    Answered,
    Delivery,
    DeliveryState,
    Tried,
    Webhook,
    after_calls,
    after_try,
    enabled_anew,
    format_webhook_id,
    parse_webhook_id,
    rotated,
    wanted,
    webhook_faults,
)

NOW = 1_800_000_000 * SECOND_US
WEBHOOK = Webhook(id=5, tenant="acme", url="https://example.com/hook", secrets=("whsec_a",))
DELIVERY = Delivery(number=1, webhook_id=5, event_id="e", kind=3, made_at=NOW, due_at=NOW, body="{}")


def failed(at: int = NOW, **fields: object) -> Answered:
    return Answered(**{"at": at, "status": 500, "error": "it answered 500", **fields})  # type: ignore[arg-type]


def test_families_mean_all_of_a_kind() -> None:
    assert wanted(["run.*", "job.deleted"]) == {n for n in KINDS if n.startswith("run.")} | {"job.deleted"}
    assert wanted(["*"]) == set(KINDS)
    assert msgspec.structs.replace(WEBHOOK, types=("run.failed", "job.created")).kinds == 1 << 3 | 1 << 16


def test_jobs_and_tags_narrow_what_is_heard() -> None:
    plain = msgspec.structs.replace(WEBHOOK, types=("run.failed",))
    assert plain.hears(3, 1, ())
    assert not plain.hears(1, 1, ())
    narrow = msgspec.structs.replace(plain, jobs=(7,), tags=("billing",))
    assert narrow.hears(3, 7, ())
    assert narrow.hears(3, 8, ("x", "billing"))
    assert not narrow.hears(3, 8, ("x",))
    assert not msgspec.structs.replace(plain, enabled=False).hears(3, 1, ())


def test_a_call_is_repeated_by_the_schedule_and_then_given_up() -> None:
    delivery, at = DELIVERY, NOW
    waits = []
    while delivery.state is DeliveryState.PENDING:
        delivery = after_try(Tried(delivery=delivery, answer=failed(at)))
        waits.append(delivery.due_at - at)
        at = delivery.due_at
    assert tuple(waits[:-1]) == RETRIES_US
    assert (delivery.state, delivery.tries) == (DeliveryState.FAILED, len(RETRIES_US) + 1)
    assert sum(RETRIES_US) > 3 * DAY_US


def test_retry_after_is_honoured_up_to_a_bound() -> None:
    later = after_try(Tried(delivery=DELIVERY, answer=failed(retry_after_us=HOUR_US)))
    assert later.due_at == NOW + HOUR_US
    latest = after_try(Tried(delivery=DELIVERY, answer=failed(retry_after_us=400 * DAY_US)))
    assert latest.due_at == NOW + LONGEST_RETRY_AFTER_US
    webhook = after_calls(WEBHOOK, [failed(retry_after_us=HOUR_US)], NOW)
    assert webhook.health.rest_until == NOW + HOUR_US


def test_an_endpoint_that_fails_is_left_alone_for_longer_and_longer() -> None:
    webhook, rests = WEBHOOK, []
    for _ in range(12):
        webhook = after_calls(webhook, [failed()], NOW)
        rests.append(webhook.health.rest_until - NOW)
    assert rests[:3] == [5 * SECOND_US, 10 * SECOND_US, 20 * SECOND_US]
    assert rests[-1] == LONGEST_REST_US
    well = after_calls(webhook, [failed(), Answered(at=NOW, status=200)], NOW)
    assert (well.health.failures, well.health.failing_since, well.health.rest_until) == (0, None, NOW)


def test_one_that_fails_for_long_is_disabled_and_says_why() -> None:
    webhook, at = WEBHOOK, NOW
    while at - NOW < FAILING_US:
        webhook = after_calls(webhook, [failed(at)], at)
        assert webhook.enabled, at
        at += 12 * HOUR_US
    webhook = after_calls(webhook, [failed(at)], at)
    assert not webhook.enabled
    assert webhook.disabled_reason == "nothing was taken for 5d; the last error: it answered 500"
    again = enabled_anew(webhook, at)
    assert (again.enabled, again.disabled_reason, again.health.failing_since) == (True, None, None)
    assert after_calls(again, [failed(at + 1)], at + 1).enabled


def test_two_failures_with_nothing_in_between_are_not_five_days_of_failing() -> None:
    webhook = after_calls(WEBHOOK, [failed()], NOW)
    week_later = after_calls(webhook, [failed()], NOW + 7 * DAY_US)
    assert week_later.enabled
    assert week_later.health.failing_since == NOW + 7 * DAY_US


def test_one_that_is_gone_is_disabled_at_once() -> None:
    gone = after_calls(WEBHOOK, [Answered(at=NOW, status=200), failed(status=410)], NOW)
    assert (gone.enabled, gone.disabled_reason) == (False, "it answered 410 Gone")


def test_two_secrets_sign_while_one_is_replaced() -> None:
    first = rotated(WEBHOOK, "whsec_b", NOW)
    second = rotated(first, "whsec_c", NOW + MINUTE_US)
    assert first.signing_secrets(NOW) == ("whsec_b", "whsec_a")
    assert second.signing_secrets(NOW + MINUTE_US) == ("whsec_c", "whsec_b")
    assert second.signing_secrets(NOW + MINUTE_US + SECRET_OVERLAP_US) == ("whsec_c",)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"url": "ftp://example.com"}, "/url"),
        ({"url": "https://user:pass@example.com/"}, "/url"),
        ({"url": "https://user@example.com?a=b"}, "/url"),
        ({"types": ()}, "/types"),
        ({"types": ("run.progress",)}, "/types"),
        ({"types": ("run.exploded",)}, "/types"),
        ({"jobs": tuple(range(51))}, "/jobs"),
        ({"tags": ("",)}, "/tags"),
        ({"description": "x" * 501}, "/description"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, object], pointer: str) -> None:
    assert {fault.pointer for fault in webhook_faults(msgspec.structs.replace(WEBHOOK, **fields))} == {
        pointer
    }
    assert webhook_faults(WEBHOOK) == []


@pytest.mark.parametrize("rest", ["?@x", "?to=a@b", "/a@b", "#@x", ":8080?@x"])
def test_a_sign_behind_the_host_is_no_user(rest: str) -> None:
    webhook = msgspec.structs.replace(WEBHOOK, url=f"http://example.com{rest}")
    assert webhook_faults(webhook) == []


def test_ids_go_there_and_back() -> None:
    assert parse_webhook_id(format_webhook_id(12345)) == 12345
    with pytest.raises(ValueError, match="not a webhook id"):
        parse_webhook_id("J-0000000000000")
