"""Graphs over HTTP: parents by id and key, what is refused and where, runs down a graph, and the graph itself."""

from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.batches import ApplyAnswer, BulkAnswer
from hourhand.web.shapes.graphs import GraphAnswer
from hourhand.web.shapes.jobs import JobAnswer
from hourhand.web.shapes.runs import RunAnswer, RunList
from tests.web import worker

URL = "https://example.com/hook"
HOURLY = {"cron": "0 * * * *", "callback_url": URL}
WHOLE = {"Prefer": "return=representation"}


async def create(client: httpx2.AsyncClient, name: str, **fields: Any) -> JobAnswer:
    schedule = {} if {"after", "cron", "every", "at"} & fields.keys() else {"cron": "0 * * * *"}
    document = {"name": name, "key": name, "callback_url": URL, **schedule, **fields}
    answer = await client.post("/v1/jobs", json=document, headers=WHOLE)
    assert answer.status_code == 201, answer.text
    return JobAnswer.model_validate(answer.json())


async def refused(client: httpx2.AsyncClient, document: dict[str, Any], query: str = "") -> dict[str, Any]:
    answer = await client.post(f"/v1/jobs{query}", json={"callback_url": URL, **document})
    assert answer.status_code == 422, answer.text
    problem: dict[str, Any] = answer.json()
    return problem


async def diamond(client: httpx2.AsyncClient) -> list[JobAnswer]:
    top = await create(client, "top")
    left, right = await create(client, "left", after=["top"]), await create(client, "right", after=["top"])
    return [top, left, right, await create(client, "join", after=["left", "right"])]


async def test_parents_are_named_by_id_and_by_key(client: httpx2.AsyncClient) -> None:
    top, left, _, join = await diamond(client)
    assert left.after == [top.job_id]
    assert (left.wait, left.next_fire_time, left.schedule_in_words) == ("1d", None, "after top")
    assert join.schedule_in_words == "after left and right"
    same = await create(client, "other", after=[str(top.job_id), "top", "left"], wait="2h")
    assert (same.after, same.wait) == ([top.job_id, left.job_id], "2h")


async def test_a_dependents_document_reads_back_as_itself(client: httpx2.AsyncClient) -> None:
    *_, join = await diamond(client)
    whole = join.model_dump(exclude_none=True)
    answer = await client.put("/v1/jobs/by-key/join", json=whole)
    assert (answer.status_code, answer.json()["version"]) == (200, 1)
    again = await client.put(f"/v1/jobs/{join.job_id}", json=whole)
    assert again.json()["after"] == join.after


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_what_is_unknown_is_named_where_it_stands(client: httpx2.AsyncClient, query: str) -> None:
    await create(client, "a")
    problem = await refused(client, {"after": ["a", "nobody"]}, query)
    assert problem["errors"] == [
        {
            "pointer": "/after/1",
            "expected": "the id or the key of a job that there is",
            "got": "'nobody'",
            "hint": None,
        }
    ]
    gone = await refused(client, {"after": ["J-0000000000007"]}, query)
    assert gone["errors"][0]["pointer"] == "/after/0"


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_circles_and_mixed_roots_are_refused(client: httpx2.AsyncClient, query: str) -> None:
    a = await create(client, "a")
    await create(client, "b", after=["a"])
    circle = await client.patch(f"/v1/jobs/{a.job_id}{query}", json={"after": ["b"]})
    assert circle.status_code == 422
    assert (
        circle.json()["detail"] == "these jobs would follow each other in a circle: 'a' after 'b' after 'a'"
    )
    await create(client, "daily", cron="0 9 * * *")
    mixed = await refused(client, {"after": ["a", "daily"]}, query)
    assert "'a' has '0 * * * *' in UTC, 'daily' has '0 9 * * *' in UTC" in mixed["detail"]
    itself = await client.patch(f"/v1/jobs/{a.job_id}{query}", json={"after": ["a"]})
    assert itself.json()["detail"] == "'a' cannot follow itself"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"after": []}, "/after"),
        ({"after": "a"}, "/after"),
        ({"after": [5]}, "/after/0"),
        ({"after": ["a"] * 101}, "/after"),
        ({"after": ["a"], "cron": "0 * * * *"}, "/after"),
        ({"after": ["a"], "wait": "0s"}, "/wait"),
        ({"after": ["a"], "max_runs": 3}, "/max_runs"),
        ({"after": ["a"], "starts_at": "2027-02-01T00:00:00Z"}, "/starts_at"),
        ({"every": "1h", "wait": "2h"}, "/wait"),
    ],
)
async def test_faults_of_after(client: httpx2.AsyncClient, fields: dict[str, Any], pointer: str) -> None:
    await create(client, "a")
    assert (await refused(client, fields))["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_one_of_several_roots_alone_keeps_its_times(client: httpx2.AsyncClient, query: str) -> None:
    a, b = await create(client, "a"), await create(client, "b")
    await create(client, "c", after=["a", "b"])
    alone = await client.patch(f"/v1/jobs/{a.job_id}{query}", json={"cron": "30 * * * *"})
    assert alone.status_code == 422
    assert "'a' has '30 * * * *' in UTC, 'b' has '0 * * * *' in UTC" in alone.json()["detail"]
    assert "with_roots=true" in alone.json()["errors"][0]["hint"]
    assert (await client.get(f"/v1/jobs/{b.job_id}")).json()["version"] == 1


async def test_all_roots_change_at_once(client: httpx2.AsyncClient) -> None:
    a, b = await create(client, "a"), await create(client, "b")
    c = await create(client, "c", after=["a", "b"])
    path, patch = f"/v1/jobs/{a.job_id}?with_roots=true", {"cron": "30 * * * *"}
    tried = await client.patch(f"{path}&dry_run=true", json=patch)
    assert (tried.status_code, tried.json()["cron"]) == (200, "30 * * * *")
    assert (await client.get(f"/v1/jobs/{b.job_id}")).json()["cron"] == "0 * * * *"
    assert (await client.patch(path, json=patch)).status_code == 200
    assert (await client.get(f"/v1/jobs/{b.job_id}")).json()["cron"] == "30 * * * *"
    wrong = await client.patch(f"/v1/jobs/{c.job_id}?with_roots=true&dry_run=true", json={"wait": "1h"})
    assert wrong.status_code == 422


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_a_parent_stays_while_it_has_children(client: httpx2.AsyncClient, query: str) -> None:
    top, left, right, join = await diamond(client)
    answer = await client.delete(f"/v1/jobs/{top.job_id}{query}")
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("'left', 'right' would follow nobody")
    for job in (join, right, left, top):
        assert (await client.delete(f"/v1/jobs/{job.job_id}")).status_code == 200


# --- many at once


def chain(*names: str) -> list[dict[str, Any]]:
    documents = []
    for before, name in zip((None, *names), names, strict=False):
        schedule = {"after": [before]} if before else {"cron": "0 * * * *"}
        documents.append({"name": name, "key": name, "callback_url": URL, **schedule})
    return documents


@pytest.mark.parametrize("query", ["?dry_run=true", ""])
async def test_in_bulk_one_may_follow_what_comes_before_it(client: httpx2.AsyncClient, query: str) -> None:
    documents = [
        *chain("a", "b", "c"),
        {**HOURLY, "key": "d"},
        {"key": "e", "after": ["later"], "target": URL},
    ]
    bulk = BulkAnswer.model_validate((await client.post(f"/v1/jobs/bulk{query}", json=documents)).json())
    assert [one.status for one in bulk.results] == [201] * 4 + [422]
    error = bulk.results[4].error
    assert error is not None
    assert error.errors[0].pointer == "/after/0"
    if not query:
        c = (await client.get("/v1/jobs/resolve?ref=c")).json()
        assert c["after"] == [bulk.results[1].job_id]


async def test_a_dry_run_in_bulk_sees_mixed_roots(client: httpx2.AsyncClient) -> None:
    documents = [*chain("a", "b"), {**HOURLY, "key": "x", "cron": "5 * * * *"}]
    documents += [{"key": "y", "after": ["b", "x"], "target": URL}]
    answer = await client.post("/v1/jobs/bulk?dry_run=true", json=documents)
    assert [one["status"] for one in answer.json()["results"]] == [201, 201, 201, 422]
    assert "all roots of a graph" in answer.json()["results"][3]["error"]["detail"]


async def apply(
    client: httpx2.AsyncClient, documents: Sequence[dict[str, Any]], query: str = ""
) -> ApplyAnswer:
    answer = await client.post(f"/v1/jobs/apply{query}", json=documents)
    assert answer.status_code == 200, answer.text
    return ApplyAnswer.model_validate(answer.json())


async def test_documents_are_applied_parents_first_in_whatever_order(client: httpx2.AsyncClient) -> None:
    documents = chain("a", "b", "c", "d")[::-1]
    tried = await apply(client, documents, "?dry_run=true")
    assert (tried.created, tried.failed) == (4, 0)
    done = await apply(client, documents)
    assert (done.created, done.failed) == (4, 0)
    assert (await apply(client, documents)).unchanged == 4
    assert [one.schedule_in_words for one in done.results][:1] == ["after c"]


@pytest.mark.parametrize("query", ["?dry_run=true", ""])
async def test_applied_circles_are_refused_and_harm_no_other(client: httpx2.AsyncClient, query: str) -> None:
    documents = [
        *chain("a", "b"),
        *({**one, "after": ["y" if one["key"] == "x" else "x"]} for one in chain("x", "y")),
    ]
    for one in documents[2:]:
        one.pop("cron", None)
    answer = await apply(client, documents, query)
    assert [one.action for one in answer.results] == ["created", "created", "failed", "failed"]


@pytest.mark.parametrize("schedule", [{"cron": "30 * * * *"}, {"every": "20m"}])
async def test_roots_that_change_alike_change_at_once(
    client: httpx2.AsyncClient, schedule: dict[str, Any]
) -> None:
    before: dict[str, Any] = {"cron": "0 * * * *"} if "cron" in schedule else {"every": "10m"}
    roots = [{"key": key, "callback_url": URL} for key in "abc"]
    child = {"key": "d", "callback_url": URL, "after": ["a", "b", "c"]}
    if "every" in schedule:
        before["phase"] = "2027-01-01T00:00:00Z"
    await apply(client, [*({**root, **before} for root in roots), child])
    wanted = [*({**root, **schedule} for root in roots), child]
    tried = await apply(client, wanted, "?dry_run=true")
    assert (tried.changed, tried.unchanged, tried.failed) == (3, 1, 0)
    done = await apply(client, wanted)
    assert (done.changed, done.unchanged, done.failed) == (3, 1, 0)
    assert (await apply(client, wanted)).unchanged == 4
    alone = await apply(client, [{**roots[0], "cron": "1 * * * *"}])
    assert alone.failed == 1
    apart = [{**root, "cron": f"{minute} * * * *"} for minute, root in enumerate(roots)]
    assert (await apply(client, apart)).failed == 3


async def test_what_follows_a_one_time_job_passes_with_it(client: httpx2.AsyncClient) -> None:
    once = {"key": "once", "at": "2027-01-15T07:00:00Z", "callback_url": URL}
    documents = [{"key": "then", "after": ["once"], "callback_url": URL}, once]
    assert [one.action for one in (await apply(client, documents)).results] == ["passed", "passed"]


# --- runs down a graph


async def descend(store: SqliteStore) -> None:
    while await store.descend(100):
        pass


async def end_all(store: SqliteStore, clock: ManualClock, event: Event, detail: dict[str, Any]) -> None:
    for run in await worker.take(store):
        await worker.end(store, clock, run, event, detail, tries=1)
    await descend(store)


async def history(client: httpx2.AsyncClient, job: JobAnswer) -> list[RunAnswer]:
    answer = await client.get(f"/v1/jobs/{job.job_id}/history")
    return RunList.model_validate(answer.json()).data


async def test_a_run_by_hand_goes_down_when_asked(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    top, left, _, join = await diamond(client)
    path = f"/v1/jobs/{top.job_id}/run"
    tried = await client.post(f"{path}?dry_run=true", json={"downstream": True})
    assert tried.json() == {"run_id": None, "followed_by": 3, "dry_run": True}
    assert (await client.post(path, json={"downstraem": True})).status_code == 422
    sent = await client.post(path, json={"downstream": True}, headers={"Idempotency-Key": "k"})
    again = await client.post(path, json={"downstream": True}, headers={"Idempotency-Key": "k"})
    assert sent.status_code == 202
    assert sent.json() == again.json()
    assert sent.json()["followed_by"] == 3
    [waiting] = await history(client, left)
    assert waiting.status == "PENDING"
    assert [(one.job_id, one.name) for one in waiting.waits_for] == [(top.job_id, "top")]
    assert waiting.wait_until == "2027-01-16T08:00:00Z"
    for _ in range(3):
        await end_all(store, clock, Event.SUCCEED, {})
    [done] = await history(client, join)
    assert (done.status, done.waits_for, done.wait_until) == ("SUCCEEDED", [], None)
    graph = GraphAnswer.model_validate((await client.get(f"/v1/jobs/{join.job_id}/graph")).json())
    assert {one.status for one in graph.jobs} == {"SUCCEEDED"}


async def test_a_failure_goes_down_and_what_is_sent_back_too(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    top, left, _, join = await diamond(client)
    run_id = (await client.post(f"/v1/jobs/{top.job_id}/run", json={"downstream": True})).json()["run_id"]
    await end_all(store, clock, Event.EXHAUST, {"error": "it broke"})
    [skipped] = await history(client, left)
    assert (skipped.status, skipped.reason) == ("SKIPPED", "upstream")
    assert skipped.upstream is not None
    assert skipped.upstream.model_dump() == {"job_id": top.job_id, "name": "top", "outcome": "FAILED"}
    requeued = await client.post("/v1/dead-letters/requeue", json={"ids": [run_id], "downstream": True})
    assert requeued.json()["count"] == 1
    for _ in range(3):
        await end_all(store, clock, Event.SUCCEED, {})
    [done] = await history(client, join)
    assert (done.status, done.trigger) == ("SUCCEEDED", "requeued")
    wrong = await client.post("/v1/dead-letters/discard", json={"ids": [run_id], "downstream": True})
    assert wrong.status_code == 422


# --- the graph itself


async def graph_of(client: httpx2.AsyncClient, job: JobAnswer, query: str = "") -> GraphAnswer:
    answer = await client.get(f"/v1/jobs/{job.job_id}/graph{query}")
    assert answer.status_code == 200, answer.text
    return GraphAnswer.model_validate(answer.json())


async def test_a_graph_has_its_jobs_by_level_and_its_edges(client: httpx2.AsyncClient) -> None:
    top, left, right, join = await diamond(client)
    await create(client, "apart")
    for job in (top, join):
        graph = await graph_of(client, job)
        assert [(one.name, one.level) for one in graph.jobs] == [
            ("top", 0),
            ("left", 1),
            ("right", 1),
            ("join", 2),
        ]
        ids = [[top, left], [top, right], [left, join], [right, join]]
        assert graph.edges == [[one.job_id for one in edge] for edge in ids]
        assert (graph.job_id, graph.truncated, graph.at) == (job.job_id, False, None)
    assert {one.status for one in graph.jobs} == {None}
    missing = await client.get("/v1/jobs/J-0000000000007/graph")
    assert missing.status_code == 404


async def test_a_job_alone_is_a_graph(client: httpx2.AsyncClient) -> None:
    job = await create(client, "alone")
    await client.post(f"/v1/jobs/{job.job_id}/pause")
    graph = await graph_of(client, job)
    assert [(one.job_id, one.state, one.after) for one in graph.jobs] == [(job.job_id, "paused", [])]
    assert graph.edges == []


async def test_a_graph_shows_the_runs_of_one_time(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    top, left, _, _ = await diamond(client)
    await client.post(f"/v1/jobs/{left.job_id}/run")
    await end_all(store, clock, Event.SUCCEED, {})
    clock.advance(SECOND_US)
    await client.post(f"/v1/jobs/{top.job_id}/run", json={"downstream": True})
    await end_all(store, clock, Event.EXHAUST, {"error": "it broke"})
    latest = await graph_of(client, top, "?at=latest")
    assert latest.at is not None
    assert [one.status for one in latest.jobs] == ["FAILED", "SKIPPED", "SKIPPED", "SKIPPED"]
    assert {one.scheduled_at for one in latest.jobs} == {latest.at}
    before = await graph_of(client, top, "?at=2027-01-15T00:00:00Z")
    assert {one.status for one in before.jobs} == {None}
    assert (await client.get(f"/v1/jobs/{top.job_id}/graph?at=soon")).status_code == 422


async def test_a_large_graph_shows_what_is_nearest(client: httpx2.AsyncClient) -> None:
    documents = [{"key": "top", **HOURLY}]
    documents += [{"key": f"n{index}", "target": URL, "after": ["top"]} for index in range(1_010)]
    for start in (0, 900):
        await client.post("/v1/jobs/bulk", json=documents[start : start + 900])
    top = (await client.get("/v1/jobs/resolve?ref=top")).json()
    graph = await graph_of(client, JobAnswer.model_validate(top))
    assert (len(graph.jobs), graph.truncated) == (1_000, True)
    assert graph.jobs[0].key == "top"
