"""A plan as people see it: whom a job follows is told by key."""

from hourhand.cli.files.changing import Plan
from hourhand.cli.files.documents import FileJob
from hourhand.cli.files.plan_view import by_key


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
