"""A tenant that has everything: what walks over the route table need to fill in paths and bodies with things that exist.

Whoever adds a path parameter or a changing route adds a line here; until then the walks say so.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx2
from fastapi.routing import APIRoute

from hourhand.clock import ManualClock
from hourhand.core.identity import parse_job_id, parse_run_id, shard_of
from hourhand.core.instant import SECOND_US
from hourhand.core.log import LogChunk, Stream
from hourhand.ports.store import Store
from hourhand.web.routes import API
from tests.web import worker
from tests.web.test_jobs_routes import DAILY
from tests.web.test_route_table import CHANGING

FROM = "2027-01-10T00:00:00Z"
ROUTES = [route for route in API.routes if isinstance(route, APIRoute)]
CHANGES_WITHOUT_A_PERSON = {
    "report_run"
}  # the token of an attempt says who may; history keeps what became of it
CHANGED_BY_PEOPLE = [route for route in CHANGING if route.name not in CHANGES_WITHOUT_A_PERSON]


class Stage(NamedTuple):
    """What one tenant has."""

    tenant: str
    headers: dict[str, str]
    key: str  # of the job
    name: str  # of all its jobs
    job_id: str  # has runs, a dead letter, a backfill and a version or two
    child_id: str  # follows it
    other_id: str  # has none of these
    idle_id: str  # no worker serves it
    run_id: str  # waits, of the idle job
    dead_id: str
    done_id: str
    backfill_id: str
    operation_id: str
    token_id: str
    webhook_id: str
    event_id: str  # of a delivery to it

    @property
    def ids(self) -> tuple[str, ...]:
        """Everything that nobody else may see; runs carry the ids of their jobs."""
        return (
            self.job_id,
            self.child_id,
            self.other_id,
            self.idle_id,
            self.backfill_id,
            self.operation_id,
            self.token_id,
            self.webhook_id,
            self.event_id,
            self.name,
            self.key,
            self.tenant,
        )


async def set_stage(
    client: httpx2.AsyncClient,
    shards: Sequence[Store],
    clock: ManualClock,
    tenant: str,
    headers: dict[str, str],
) -> Stage:
    """Make all that a tenant can have, by requests of its own."""

    async def ask(method: str, path: str, body: Any = None) -> Any:
        answer = await client.request(method, f"/v1{path}", json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json()

    async def run(job_id: str) -> str:
        made = str((await ask("POST", f"/jobs/{job_id}/run"))["run_id"])
        clock.advance(SECOND_US)
        return made

    name, key = f"name-of-{tenant}", f"key/of-{tenant}"
    document = {**DAILY, "name": name, "payload": {"secret": name}}
    job_id = (await ask("POST", "/jobs", {**document, "key": key}))["job_id"]
    child_id = (await ask("POST", "/jobs", {**_without_times(document), "after": [job_id]}))["job_id"]
    other_id = (await ask("POST", "/jobs", document))["job_id"]
    idle_id = (await ask("POST", "/jobs", {**document, "pool": "idle"}))["job_id"]
    home = shards[shard_of(parse_job_id(job_id))]
    dead_id = await run(job_id)
    assert dead_id in await worker.fail(home, clock, f"broken for {name}")
    done_id = await run(job_id)
    assert done_id in await worker.succeed(home, clock)
    at = parse_run_id(done_id)
    said = LogChunk(
        job_id=at.job_id,
        scheduled_at=at.scheduled_at,
        attempt=1,
        seq=1,
        at=clock.now(),
        stream=Stream.LOG,
        text=f"said by {name}",
    )
    await home.append_log([said])
    run_id = await run(idle_id)
    backfill = await ask("POST", "/backfills", {"job": job_id, "from": FROM, "note": name})
    operation = await ask(
        "POST", "/operations", {"action": "resume", "filter": {"tag": "none"}, "note": name}
    )
    await ask("POST", f"/jobs/{other_id}/skip", {"note": name})
    token = await ask("POST", "/tokens", {"name": name})
    webhook = await ask("POST", "/webhooks", {"url": f"https://example.com/{name}", "description": name})
    delivery = await ask("POST", f"/webhooks/{webhook['webhook_id']}/test")
    return Stage(
        tenant=tenant,
        headers=headers,
        key=key,
        name=name,
        job_id=job_id,
        child_id=child_id,
        other_id=other_id,
        idle_id=idle_id,
        run_id=run_id,
        dead_id=dead_id,
        done_id=done_id,
        backfill_id=backfill["backfill_id"],
        operation_id=operation["operation_id"],
        token_id=token["token_id"],
        webhook_id=webhook["webhook_id"],
        event_id=delivery["event_id"],
    )


def path_of(route: APIRoute, stage: Stage) -> str:
    """A route's path with ids of a stage."""
    runs = {"rerun_run": stage.done_id, "read_log": stage.done_id, "read_dead_letter": stage.dead_id}
    named = {
        "job_id": stage.other_id if route.name == "delete_job" else stage.job_id,  # nobody follows that one
        "run_id": runs.get(route.name, stage.run_id),
        "backfill_id": stage.backfill_id,
        "operation_id": stage.operation_id,
        "token_id": stage.token_id,
        "webhook_id": stage.webhook_id,
        "event_id": stage.event_id,
        "tenant": stage.tenant,
        "key:path": stage.key,
    }
    parameters = re.findall(r"\{([\w:]+)\}", route.path)
    assert set(parameters) <= set(named), f"{route.path}: no stage has such a thing yet; add it"
    path = route.path
    for name in parameters:
        path = path.replace(f"{{{name}}}", named[name])
    return f"/v1{path}"


def bodies_of(stage: Stage) -> dict[str, Any]:
    """For each changing route a body that changes something of a stage."""
    return {
        "create_job": DAILY,
        "create_jobs": [DAILY, DAILY],
        "apply_jobs": [{**DAILY, "key": stage.key, "name": "new"}, {**DAILY, "key": "b"}],
        "upsert_job": {**DAILY, "name": "new", "key": None},
        "patch_job": {"name": "new"},
        "replace_job": {**DAILY, "name": "new"},
        "delete_job": None,
        "pause_job": {"note": "x"},
        "resume_job": None,
        "run_job": None,
        "skip_time": {"note": "x"},
        "clone_job": {"name": "copy"},
        "cancel_run": None,
        "rerun_run": None,
        "create_token": {"name": "ci", "role": "viewer"},
        "revoke_token": None,
        "create_webhook": {"url": "https://example.com/hook"},
        "patch_webhook": {"description": "new"},
        "delete_webhook": None,
        "rotate_webhook": None,
        "try_webhook": None,
        "redeliver_event": None,
        "set_quota": {"jobs": 1_000},
        "create_operation": {"action": "pause", "filter": {}},
        "cancel_operation": None,
        "create_backfill": {"job": stage.other_id, "from": FROM},
        "pause_backfill": None,
        "resume_backfill": None,
        "cancel_backfill": None,
        "requeue_dead_letters": {"ids": [stage.dead_id]},
        "discard_dead_letters": {"filter": {}},
    }


def _without_times(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "cron"}
