"""`export`: what it writes, `apply` takes back without a change, whatever the jobs are."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourhand.cli.files.listing import all_jobs
from hourhand.client import Client
from hourhand.errors import Unavailable

pytestmark = pytest.mark.usefixtures("server")
_numbers = itertools.count()

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
DURATION = st.integers(1, 86_400_000).map(lambda ms: f"{ms}ms")
SCHEDULES = (
    st.fixed_dictionaries(
        {"cron": st.sampled_from(["0 9 * * *", "*/5 * * * mon-fri", "@daily", "0 0 29 2 *", "5 4 L * *"])},
        optional={
            "tz": st.sampled_from(["Europe/Berlin", "UTC", "America/New_York"]),
            "dst": st.fixed_dictionaries({}, optional={"gap": st.just("skip"), "fold": st.just("both")}),
        },
    )
    | st.fixed_dictionaries(
        {"every": st.sampled_from(["90m", "1h", 3600, "1d12h"])},
        optional={"phase": st.just("2026-11-16T00:00:01Z")},
    )
    | st.fixed_dictionaries({"at": st.sampled_from(["2030-01-01T00:00:00Z", "2029-06-01T00:00:00.5+02:00"])})
)
TARGETS = st.sampled_from(
    [
        "https://example.com/x?a=1#f",
        {"type": "http", "url": "https://example.com", "method": "PUT"},
        {"url": "http://example.com", "headers": {"X-A": "yes", "X-B": "1"}, "timeout": "1500ms"},
        {"type": "python", "function": "app.tasks:daily"},
        {"type": "shell", "argv": ["/bin/sh", "-c", "{ a\n} <<'E'\nb\nE\n"]},
        {"argv": ["a", ""], "env": {"A": "", "B": "yes"}, "cwd": "/srv", "success_codes": [0, 3]},
        {"argv": ["a"], "no_retry_codes": []},
    ]
)
DOCUMENTS = st.tuples(
    SCHEDULES,
    st.fixed_dictionaries(
        {"target": TARGETS},
        optional={
            "name": TEXT.filter(lambda text: not text.isspace()),
            "tags": st.lists(TEXT, max_size=3),
            "payload": JSON,
            "priority": st.sampled_from(["HIGH", "LOW", "medium"]),
            "pool": st.sampled_from(["default", "slow"]),
            "timeout": DURATION,
            "delivery": st.sampled_from(["at_least_once", "at_most_once"]),
            "retry": st.fixed_dictionaries(
                {},
                optional={
                    "max": st.integers(0, 9),
                    "first": DURATION,
                    "factor": st.floats(1, 9),
                    "max_delay": DURATION,
                },
            ),
            "concurrency": st.sampled_from([1, 5, "unlimited"]),
            "overlap": st.sampled_from(["queue", "skip", "queue_one"]),
            "misfire": st.fixed_dictionaries(
                {}, optional={"policy": st.just("catch_up"), "grace": DURATION, "limit": st.integers(1, 9)}
            ),
            "jitter": st.sampled_from(["0s", "10s"]),
            "paused": st.booleans(),
            "note": TEXT,
            "max_runs": st.integers(1, 99),
            "ends_at": st.just("2031-01-01T00:00:00Z"),
            "starts_at": st.just("2026-01-01T00:00:00Z"),
            "shard_key": st.just("together"),
        },
    ),
).map(lambda parts: parts[0] | parts[1])


def dependents(roots: list[Any], waits: list[Any]) -> list[Any]:
    """A chain below the first job, each of them also after the one above it."""
    found: list[Any] = []
    for number, wait in enumerate(waits):
        after = [roots[0]["key"], *([found[-1]["key"]] if found else [])]
        common = {"key": f"{roots[0]['key']}-then-{number}", "set": roots[0]["set"], "after": after}
        found.append({**common, "target": "https://example.com", **({"wait": wait} if wait else {})})
    return found


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=st.lists(DOCUMENTS, min_size=1, max_size=30),
    waits=st.lists(st.sampled_from([None, "24h", "90m"]), max_size=4),
    form=st.sampled_from(["yaml", "json"]),
)
def test_a_round_trip_changes_nothing(
    hourhand: Any, server: str, tmp_path: Path, documents: list[Any], waits: list[Any], form: str
) -> None:
    name, file = f"round{next(_numbers)}", tmp_path / f"jobs.{form}"
    documents = [{**one, "key": f"{name}/{n}", "set": name} for n, one in enumerate(documents)]
    documents += dependents(documents, waits)
    with Client(server) as client:
        answer = client.jobs.apply(documents)
    assert answer["failed"] == 0, answer
    done = hourhand("export", "--set", name, "-o", str(file), "--format", form)
    assert done.code == 0, done.err
    plan = hourhand("plan", "-f", str(file), "--prune", "--exit-code")
    assert (plan.code, plan.out) == (
        0,
        f"no changes: created 0, changed 0, unchanged {len(documents)}, pruned 0\n",
    ), (file.read_text(), plan.out, plan.err)
    hourhand("apply", "-f", str(file), "--prune", "-y")
    before = file.read_text()
    hourhand("export", "--set", name, "-o", str(file), "--format", form)
    assert file.read_text() == before


def test_only_what_is_not_the_default_in_a_stable_order(hourhand: Any, server: str) -> None:
    with Client(server) as client:
        client.jobs.apply(
            [
                {
                    "key": f"order/{key}",
                    "set": "order",
                    "cron": "0 9 * * *",
                    "target": "https://example.com",
                    **more,
                }
                for key, more in (("c", {}), ("a", {"retry": {"max": 5}}), ("b", {"tz": "Europe/Berlin"}))
            ]
        )
    assert hourhand("export", "--set", "order").out == (
        "set: order\njobs:\n"
        "- key: order/a\n  cron: 0 9 * * *\n  target: https://example.com\n  retry:\n    max: 5\n"
        "- key: order/b\n  cron: 0 9 * * *\n  tz: Europe/Berlin\n  target: https://example.com\n"
        "- key: order/c\n  cron: 0 9 * * *\n  target: https://example.com\n"
    )
    listed = msgspec.json.decode(hourhand("export", "--set", "order", "--format", "json").out)
    assert [(one["key"], one["set"]) for one in listed] == [(f"order/{key}", "order") for key in "abc"]


def test_sets_are_documents_and_tags_choose(hourhand: Any, server: str, tmp_path: Path) -> None:
    base = {"cron": "0 9 * * *", "target": "https://example.com", "tags": ["chosen"]}
    with Client(server) as client:
        client.jobs.apply([{**base, "key": f"tag/{name}", "set": name} for name in ("tag-one", "tag-two")])
        client.jobs.apply([{**base, "key": "tag/none"}])
    text = hourhand("export", "--tag", "chosen").out
    assert [line for line in text.splitlines() if line.startswith(("set", "---", "- key"))] == [
        "- key: tag/none",
        "---",
        "set: tag-one",
        "- key: tag/tag-one",
        "---",
        "set: tag-two",
        "- key: tag/tag-two",
    ]
    (tmp_path / "jobs.yaml").write_text(text)
    assert hourhand("plan", str(tmp_path / "jobs.yaml"), "--prune", "--exit-code").code == 0


def test_jobs_without_a_key_are_named_and_may_get_one(hourhand: Any, server: str) -> None:
    base = {"cron": "0 9 * * *", "target": "https://example.com", "tags": ["keyless"]}
    with Client(server) as client:
        ids = [
            client.jobs.create({**base, "name": name})["job_id"]
            for name in ("Daily report", "Daily report", "")
        ]
    done = hourhand("export", "--tag", "keyless")
    assert (done.code, done.out) == (8, "")
    assert "left out: 3 jobs without a key" in done.err
    assert all(job_id in done.err for job_id in ids)
    assert hourhand("export", "--tag", "keyless", "--assign-keys", "--dry-run").code == 8
    done = hourhand("export", "--tag", "keyless", "--assign-keys", "--format", "json")
    keys = {one["key"] for one in msgspec.json.decode(done.out)}
    assert (done.code, len(keys), "Daily-report" in keys, f"job-{ids[2]}" in keys) == (0, 3, True, True)


def test_json_by_either_option_and_a_set_that_is_not_there(hourhand: Any, server: str) -> None:
    with Client(server) as client:
        client.jobs.apply(
            [{"key": "j/a", "cron": "0 9 * * *", "target": "https://example.com", "set": "as-json"}]
        )
    done = hourhand("export", "--set", "as-json", "--json")
    assert [one["key"] for one in done.json] == ["j/a"]
    assert done.out == hourhand("export", "--set", "as-json", "--format", "json").out
    assert hourhand("export", "--set", "as-json", "--json", "--format", "yaml").out.startswith("set: as-json")
    none = hourhand("export", "--set", "nosuch")
    assert (none.code, none.out, none.err) == (3, "", "error: no job belongs to the set 'nosuch'\n")


def test_a_database_that_is_away_is_no_empty_export() -> None:
    pages = iter([{"data": [{"key": "a"}], "next_cursor": "x"}, {"data": [], "partial": ["shard 1"]}])
    client: Any = SimpleNamespace(jobs=SimpleNamespace(page=lambda **query: next(pages)))
    with pytest.raises(Unavailable, match="shard 1 did not answer"):
        list(all_jobs(client))


def test_a_file_is_whole_or_not_there(hourhand: Any, server: str, tmp_path: Path) -> None:
    done = hourhand("export", "--tag", "nobody", "-o", str(tmp_path / "no" / "jobs.yaml"))
    assert (done.code, "cannot write" in done.err) == (2, True)
    assert hourhand("export", "--tag", "nobody", "-o", str(tmp_path / "jobs.yaml")).code == 0
    assert (tmp_path / "jobs.yaml").read_text() == ""
    assert hourhand("export", "--tag", "nobody", "--format", "json").out == "[]\n"
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.yaml"]
    assert hourhand("export", "--format", "toml").code == 2
    assert hourhand("export", "--all", "--tag", "x").code == 2


def test_lines_and_ids(hourhand: Any, server: str, tmp_path: Path) -> None:
    base = {"cron": "0 9 * * *", "target": "https://example.com", "set": "in-forms"}
    with Client(server) as client:
        client.jobs.apply([{**base, "key": "forms/b"}, {**base, "key": "forms/a"}])
        ids = [client.jobs.resolve(key)["job_id"] for key in ("forms/a", "forms/b")]
    lines = hourhand("export", "--set", "in-forms", "--jsonl").out
    assert [msgspec.json.decode(line) for line in lines.splitlines()] == [
        {**base, "key": "forms/a"},
        {**base, "key": "forms/b"},
    ]
    assert hourhand("export", "--set", "in-forms", "--format", "jsonl").out == lines
    assert hourhand("export", "--set", "in-forms", "-q").out.split() == ids
    file = tmp_path / "jobs.yaml"
    assert hourhand("export", "--set", "in-forms", "-q", "-o", str(file)).out == ""
    assert file.read_text().startswith("set: in-forms")
