"""A plan as people see it: whom a job follows is told by key, and nothing secret is told."""

import pytest

from hourhand.cli.files.changing import Plan
from hourhand.cli.files.documents import FileJob
from hourhand.cli.files.plan_view import _shown, by_key


def test_whom_a_job_follows_is_told_by_key() -> None:
    job = FileJob(key="c", document={"key": "c", "after": ["a", "b"]}, file="f", line=1)
    change = {"field": "after", "before": ["J-1", "J-9"], "after": ["J-1", "J-2"]}
    other = {"field": "timeout", "before": "5m", "after": "1m"}
    results = {
        "a": {"action": "unchanged", "job_id": "J-1"},
        "b": {"action": "created", "job_id": None},
        "c": {"action": "changed", "schedule_in_words": "after J-1 and J-2", "changes": [change, other]},
    }
    told = by_key(job, Plan(groups=[[job]], results=results))
    assert told["schedule_in_words"] == "after a, b"
    assert told["changes"] == [{"field": "after", "before": ["a", "J-9"], "after": ["a", "b"]}, other]
    plain = FileJob(key="a", document={"key": "a", "cron": "0 9 * * *"}, file="f", line=1)
    assert by_key(plain, Plan(groups=[[plain]], results=results)) == results["a"]


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("target.headers.X-Api-Key", "canary", "***"),
        ("target.headers", {"X-Api-Key": "canary"}, "***"),
        ("target.env.KEY", "canary", "***"),
        ("target.env.KEY", None, "–"),
        ("target.url", "https://ann:canary@a.example/", "https://ann:***@a.example/"),
        ("retry.max", 5, "5"),
    ],
)
def test_nothing_secret_is_told(field: str, value: object, shown: str) -> None:
    assert _shown(field, value) == shown
