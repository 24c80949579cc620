"""Jobs that follow others which are yet to be created: asked about on a schedule of their own, told as they are."""

from typing import Any

import pytest

from hourhand.cli.files.documents import FileJob
from hourhand.cli.files.newcomers import awaits_new, with_parents, without_parents


@pytest.mark.parametrize(
    ("after", "awaits"),
    [
        (["new"], True),
        (["old", "new"], True),
        (["old"], False),
        (["J-elsewhere"], False),
        (None, False),
        ("new", False),
    ],
)
def test_who_awaits_whom(after: Any, awaits: bool) -> None:
    job = FileJob(key="a", document={"key": "a", "after": after}, file="f", line=1)
    results = {"new": {"action": "created"}, "old": {"action": "changed"}}
    assert awaits_new(job, results) is awaits


def test_two_schedules_are_for_the_server_to_refuse() -> None:
    job = FileJob(key="a", document={"after": ["new"], "cron": "0 9 * * *"}, file="f", line=1)
    assert not awaits_new(job, {"new": {"action": "created"}})


def test_what_is_asked() -> None:
    document = {"key": "a", "after": ["b"], "wait": "1h", "timeout": "1m"}
    assert without_parents(document) == {"key": "a", "cron": "@yearly", "timeout": "1m"}


def test_what_is_told() -> None:
    document = {"key": "a", "after": ["b", "c"]}
    created = with_parents(
        document, {"action": "created", "schedule_in_words": "yearly", "next_after": ["x"]}
    )
    assert created == {
        "action": "created",
        "schedule_in_words": "after b, c",
        "next_after": [],
        "fires": None,
    }
    changes = [
        {"field": "after", "before": ["J-1"], "after": None},
        {"field": "cron", "before": None, "after": "@yearly"},
        {"field": "dst.gap", "before": None, "after": "after"},
        {"field": "retry.max", "before": 3, "after": 5},
    ]
    changed = with_parents(document, {"action": "changed", "changes": changes})
    assert changed["changes"] == [
        {"field": "after", "before": ["J-1"], "after": ["b", "c"]},
        {"field": "retry.max", "before": 3, "after": 5},
    ]
    failed = {"action": "failed", "error": {}}
    assert with_parents(document, failed) is failed
