"""The route that targets call: who may, what a body may say, and what every answer is."""

from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.identity import RunKey
from hourhand.core.lifecycle import Event
from hourhand.core.report import report_token
from hourhand.core.run import ClaimedRun
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.runs import ReportAnswer, RunAnswer
from tests.web import worker
from tests.web.test_jobs_routes import create

OK = {"attempt": 1, "outcome": "succeeded"}
NO_SUCH_RUN = "J-0000000000123@20261116T080000Z"


class Target:
    """A target that answered 202."""

    def __init__(self, client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> None:
        self.client, self.store, self.clock = client, store, clock

    async def accept(self) -> ClaimedRun:
        job_id = await create(self.client, timeout="1m", retry={"max": 0})
        await self.client.post(f"/v1/jobs/{job_id}/run")
        self.clock.advance(1_000_000)
        [run] = await worker.take(self.store)
        await worker.end(self.store, self.clock, run, Event.REPORT_LATER, {})
        return run

    async def token(self, run_id: str, attempt: int = 1) -> str:
        key = await self.store.report_key(0)
        assert key is not None
        return report_token(key, run_id, attempt)

    async def report(self, run_id: str, body: Any, query: str = "", **headers: str) -> httpx2.Response:
        given = {"Authorization": f"Bearer {await self.token(run_id)}", **headers}
        return await self.client.post(f"/api/v1/runs/{run_id}/report{query}", json=body, headers=given)

    async def run(self, run_id: str) -> RunAnswer:
        return RunAnswer.model_validate((await self.client.get(f"/v1/runs/{run_id}")).json())


@pytest.fixture
def target(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> Target:
    return Target(client, store, clock)


async def test_from_accepted_over_progress_to_the_end(target: Target) -> None:
    run_id = (await target.accept()).run_id
    run = await target.run(run_id)
    assert (run.status, run.awaits_report, run.worker, run.progress) == ("RUNNING", True, None, None)
    body = {"attempt": 1, "outcome": "progress", "progress": 0.4, "message": "loading", "extend_s": 90}
    answer = await target.report(run_id, body)
    told = ReportAnswer.model_validate(answer.json())
    assert (answer.status_code, told.status, told.repeated) == (200, "RUNNING", False)
    run = await target.run(run_id)
    assert run.progress is not None
    assert (run.progress.fraction, run.progress.message) == (0.4, "loading")
    assert run.deadline_at == told.deadline_at
    done = {**OK, "result": {"rows": 3}}
    told = ReportAnswer.model_validate((await target.report(run_id, done)).json())
    assert (told.status, told.deadline_at, told.repeated) == ("SUCCEEDED", None, False)
    run = await target.run(run_id)
    assert (run.status, run.response, run.awaits_report) == ("SUCCEEDED", {"value": {"rows": 3}}, False)
    again = await target.report(run_id, done)
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    other = await target.report(run_id, {**OK, "outcome": "failed", "error": "no"})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


async def test_a_failure_has_its_error_and_its_dead_letter(target: Target) -> None:
    run_id = (await target.accept()).run_id
    answer = await target.report(run_id, {"attempt": 1, "outcome": "failed", "error": "no disk"})
    assert answer.json()["status"] == "FAILED"
    letters = (await target.client.get("/v1/dead-letters")).json()["data"]
    assert [(letter["run_id"], letter["error"]) for letter in letters] == [(run_id, "no disk")]


async def test_past_the_deadline_is_gone(target: Target) -> None:
    run = await target.accept()
    target.clock.advance(60_000_000)
    answer = await target.report(run.run_id, OK)
    assert (answer.status_code, answer.json()["code"]) == (410, "too_late")
    assert (await target.run(run.run_id)).status == "RUNNING"


async def test_a_dry_run_says_what_would_be_and_changes_nothing(target: Target) -> None:
    run_id = (await target.accept()).run_id
    before = await target.run(run_id)
    for body, status in ((OK, "SUCCEEDED"), ({"attempt": 1, "outcome": "progress"}, "RUNNING")):
        answer = (await target.report(run_id, body, "?dry_run=true")).json()
        assert (answer["status"], answer["dry_run"]) == (status, True)
    assert await target.run(run_id) == before


async def test_without_its_token_nobody_learns_whether_there_is_such_a_run(target: Target) -> None:
    run_id = (await target.accept()).run_id
    bodies = []
    for name in (run_id, NO_SUCH_RUN):
        for header in ("", "Bearer", "Bearer x", f"Basic {await target.token(name)}", "Bearer " + "x" * 300):
            answer = await target.report(name, OK, Authorization=header)
            assert (answer.status_code, answer.json()["code"]) == (401, "wrong_token"), header
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            bodies.append(answer.json()["detail"])
        other = await target.token(name, 2)
        assert (await target.report(name, OK, Authorization=f"Bearer {other}")).status_code == 401
    assert len(set(bodies)) == 2, "one for no token and one for a wrong one, whatever the run"
    assert (await target.report(NO_SUCH_RUN, OK)).status_code == 409, "a token that nobody was given"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/attempt"),
        ({"attempt": 1}, "/outcome"),
        ({"attempt": 0, "outcome": "succeeded"}, "/attempt"),
        ({"attempt": True, "outcome": "succeeded"}, "/attempt"),
        ({"attempt": 1 << 31, "outcome": "succeeded"}, "/attempt"),
        ({"attempt": 1, "outcome": "done"}, "/outcome"),
        ({**OK, "outcom": 1}, "/outcom"),
        ({**OK, "error": "x"}, "/error"),
        ({**OK, "progress": 0.5}, "/progress"),
        ({"attempt": 1, "outcome": "failed", "result": 1}, "/result"),
        ({"attempt": 1, "outcome": "failed", "retryable": "no"}, "/retryable"),
        ({"attempt": 1, "outcome": "progress", "progress": 1.1}, "/progress"),
        ({"attempt": 1, "outcome": "progress", "progress": -1}, "/progress"),
        ({"attempt": 1, "outcome": "progress", "extend_s": 0}, "/extend_s"),
        ({"attempt": 1, "outcome": "progress", "message": 5}, "/message"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_changes(
    target: Target, body: dict[str, Any], pointer: str
) -> None:
    run_id = (await target.accept()).run_id
    answer = await target.report(run_id, body)
    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert (await target.run(run_id)).status == "RUNNING"


async def test_a_body_is_limited_and_long_results_are_cut(target: Target) -> None:
    run_id = (await target.accept()).run_id
    assert (await target.report(run_id, {**OK, "result": "x" * 70_000})).status_code == 413
    assert (await target.report(run_id, {**OK, "result": "x" * 50_000})).status_code == 200
    response = (await target.run(run_id)).response
    assert response["truncated"] is True
    assert len(response["text"]) == 4096


async def test_a_message_of_any_characters_is_kept_as_text(target: Target) -> None:
    run = await target.accept()
    body = {"attempt": 1, "outcome": "progress", "message": "<b>\0" + "ü" * 500}
    assert (await target.report(run.run_id, body)).status_code == 200
    view = await target.store.get_run("default", RunKey(*run.key))
    assert view is not None
    assert view.progress is not None
    assert view.progress.message == ("<b>\N{REPLACEMENT CHARACTER}" + "ü" * 500)[:200]
