"""Examples of the statements about those who ask: answers, deeds, tokens, quotas, operations, webhooks."""

import json

from hourhand.core.instant import HOUR_US, SECOND_US
from tests.stores.postgres_at_size import BIG, HEAVY_JOB, NOW_AT, SMALL, TODAY
from tests.stores.postgres_examples.shape import (
    FOREVER,
    JOB,
    JOB_IDS,
    PAGE,
    PLACES,
    Example,
)

_TURN = {"tenant": BIG, "key": "k77", "fence": 1, "since": 1, "lease_until": NOW_AT, "began_at": NOW_AT}

ANSWERS = {
    "add_answer": Example({**_TURN, "key": "new", "sum": b"sum"}),
    "lock_answer": Example((BIG, "k77")),
    "retake_answer": Example({**_TURN, "sum": b"sum"}),
    "finish_answer": Example((BIG, "k77", 1, 201, "{}", b"{}")),
    "abandon_answer": Example((BIG, "k77", 1, NOW_AT)),
    "mark_answer": Example(
        {"tenant": BIG, "key": "k77", "fence": 1, "since": 1, "applied": 1, "made_at": NOW_AT}
    ),
    "answer_applied": Example((BIG, "k77")),
    "add_answer_make": Example(([BIG], ["new"], [1], [0], [JOB], [NOW_AT])),
    "answer_makes_of": Example((BIG, "k77", 1)),
    "purge_answers": Example((NOW_AT, 100)),
    "purge_answer_marks": Example((NOW_AT, 100)),
    "purge_answer_makes": Example((NOW_AT, 100)),
}

_DEEDS = {"tenant": BIG, "from_at": 0, "to_at": FOREVER, "limit": PAGE}

_A_DEED = [
    [NOW_AT], [JOB], [None], [1], [None], [BIG], ["ann"], ["token"], ["job.create"], [None], [None], [None],
]  # fmt: skip

DEEDS = {
    "add_deed": Example(_A_DEED),
    "add_creations": Example(
        {
            "at": NOW_AT,
            "job_ids": JOB_IDS,
            "version": 1,
            "tenant": BIG,
            "subject": "ann",
            "via": "token",
            "action": "job.create",
            "request_id": None,
        }
    ),
    "deeds_page": Example({**_DEEDS, "before_at": NOW_AT - HOUR_US, "before_id": 5}),
    "deeds_page_of": Example(
        {**_DEEDS, "tenant": SMALL, "job_id": HEAVY_JOB, "before_at": NOW_AT, "before_id": 5}
    ),
    "makers_of": Example((SMALL, HEAVY_JOB)),
}

TOKENS = {
    "add_token": Example(
        {
            "id": 900_001,
            "tenant": BIG,
            "name": "ci",
            "role": "viewer",
            "digest": b"x" * 32,
            "created_at": NOW_AT,
            "created_by": "ann",
            "expires_at": None,
        }
    ),
    "count_live_tokens": Example((BIG, NOW_AT, 1_000), 1_000, "as many are counted"),
    "get_token": Example((1,)),
    "note_token_use": Example((PLACES, NOW_AT)),
    "purge_expired_tokens": Example((NOW_AT, 100)),
    "purge_revoked_tokens": Example((NOW_AT, 100)),
    "revoke_token": Example((6, NOW_AT)),
    "tokens_page": Example((BIG, FOREVER, PAGE)),
    "tokens_page_all": Example((FOREVER, PAGE)),
}

_OLD = {
    "ids": [HEAVY_JOB, *JOB_IDS[:49]],
    "before_at": NOW_AT - 60 * SECOND_US,
    "last_day": TODAY,
    "limit": 100,
}

_SOME_OF_EACH = "as many of each of 50 jobs as of all"

QUOTAS = {
    "history_days_of": Example(("tenant-7",)),
    "tenant_to_shorten": Example((NOW_AT,)),
    "jobs_to_shorten": Example((BIG, JOB, 500)),
    "old_history": Example(_OLD, 5_000, _SOME_OF_EACH),
    "drop_history": Example((TODAY, ["(1,1)", "(1,2)", "(2,1)"])),
    "old_log": Example(_OLD, 5_000, _SOME_OF_EACH),
    "drop_log": Example((TODAY, ["(1,1)", "(1,2)", "(2,1)"])),
    "shortened": Example((JOB, NOW_AT, "tenant-7")),
    "add_bucket": Example(("new",)),
    "fill_bucket": Example((NOW_AT, "bucket-7")),
    "lock_bucket": Example(("bucket-7",)),
    "read_bucket": Example(("bucket-7",)),
    "purge_buckets": Example((NOW_AT, 100)),
    "add_tenant": Example(("new",)),
    "put_quota": Example(
        {
            "tenant": SMALL,
            "jobs": 1,
            "runs_per_minute": None,
            "payload_bytes": None,
            "document_bytes": None,
            "history_days": 7,
            "set_at": NOW_AT,
        }
    ),
    "rate_job": Example((60, JOB)),
    "unrated_jobs": Example((100,)),
    "tenants_page": Example(("", PAGE)),
    "use_of": Example(([BIG, SMALL],)),
}

OPERATIONS = {
    "add_operation": Example((900_001, BIG, "{}")),
    "get_operation": Example((1, BIG)),
    "hold_operation": Example((1, BIG)),
    "operations_page": Example((BIG, FOREVER, PAGE)),
    "count_unfinished_operations": Example((BIG, 20)),
    "unfinished_operations": Example((0, 20)),
    "move_operation": Example({"id": 1, "revision": 0, "finished_at": None, "body": "{}"}),
    "purge_operations": Example((NOW_AT, 100)),
}

_WEBHOOK = {
    "url": "https://example.com/",
    "types": '["*"]',
    "jobs": "[]",
    "tags": "[]",
    "description": "",
    "enabled": 1,
    "disabled_reason": None,
    "secrets": "[]",
    "rotated_at": 0,
    "succeeded_at": None,
    "failed_at": None,
    "failing_since": None,
    "failures": 0,
    "rest_until": 0,
    "error": None,
    "updated_at": NOW_AT,
    "kinds": 2047,
}

_ONE_WEBHOOK = "what is kept of one webhook"
_TRIMMED = {"id": 1, "before": NOW_AT - 5_000 * SECOND_US, "most": 1_000}

WEBHOOKS = {
    "tell_endings": Example((json.dumps([[4, NOW_AT, one, NOW_AT, 1, 1, NOW_AT, None] for one in JOB_IDS]),)),
    "tell_jobs": Example((json.dumps([[4, NOW_AT, one, 1, BIG, "job", None] for one in JOB_IDS]),)),
    "take_webhook_events": Example((500,)),
    "tags_of": Example((JOB_IDS,)),
    "add_webhook": Example({**_WEBHOOK, "id": 900_001, "tenant": "new", "created_at": NOW_AT}),
    "put_webhook": Example({**_WEBHOOK, "id": 30}),
    "get_webhook": Example((1,)),
    "lock_webhook": Example((1,)),
    "webhooks_of": Example((BIG,)),
    "webhooks_hearing": Example(([BIG, "team-7"],)),
    "webhook_backlogs": Example(([1, 2],), 5_000, _ONE_WEBHOOK),
    "drop_webhook": Example((50,)),
    "drop_deliveries_of": Example((51,)),
    "wake_webhooks": Example({"now": NOW_AT, "ids": list(range(60, 80))}),
    "add_delivery": Example(
        ([60] * 100, [f"new-{n}" for n in PLACES], [3] * 100, [NOW_AT] * 100, [NOW_AT] * 100, ["{}"] * 100)
    ),
    "get_delivery": Example((1, "e8")),
    "deliveries_page": Example((1, NOW_AT, FOREVER, PAGE)),
    "deliveries_page_in": Example((1, NOW_AT, FOREVER, 0, PAGE)),
    "deliver_again": Example((NOW_AT, 1, "e8")),
    "take_webhooks": Example({"now": NOW_AT, "until": NOW_AT, "limit": 64}),
    "due_deliveries": Example({"ids": [1, 2, 3], "now": NOW_AT, "each": 16}),
    "webhook_work": Example(()),
    "put_deliveries": Example(
        (json.dumps([[n, 1, 1, NOW_AT, NOW_AT, 200, None, 5] for n in range(20_001, 20_017)]),)
    ),
    "let_go_webhook": Example((1,)),
    "webhook_ids": Example((100, 50)),
    "drop_waiting_deliveries": Example(_TRIMMED, 20_000, _ONE_WEBHOOK),
    "drop_ended_deliveries": Example(_TRIMMED, 20_000, _ONE_WEBHOOK),
    "count_dropped": Example((5, 1)),
}
