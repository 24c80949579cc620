"""The restless user itself: what it does with a key that somebody who died still holds."""

import random
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tests.chaos.api import Answer, Api, now
from tests.chaos.ledger import Every, JobLife
from tests.chaos.load import KINDS, Load
from tests.chaos.process import SinkProcess

HELD = 3  # times that the key is said to be in flight


class Prepared:
    """An API whose first manual run is in flight for a while; everything else is done at once."""

    def __init__(self, code: str = "in_flight", retry_after: str = "0") -> None:
        self.code, self.retry_after = code, retry_after
        self.keys: list[str] = []
        self.others = 0

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        if not path.endswith("/run"):
            self.others += 1
            done = {"job_id": f"J-{self.others}", "effective_from": "2026-11-16T08:00:00Z"}
            return self._answer(200, done)
        self.keys.append((headers or {})["Idempotency-Key"])
        if len(self.keys) <= HELD:
            return self._answer(
                409, {"code": self.code, "retryable": True}, {"retry-after": self.retry_after}
            )
        return self._answer(202, {"run_id": "J-1@20261116T080000Z"})

    def _answer(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return Answer(status=status, body=body, headers=headers or {}, sent_at=now(), answered_at=now())


class NoSink:
    def url(self, behaviour: str) -> str:
        return f"http://sink/{behaviour}"


def load_with_a_job(api: Prepared) -> tuple[Load, JobLife]:
    load = Load(random.Random(1), [cast(Api, api)], cast(SinkProcess, NoSink()))
    load.create(KINDS[0], Every(1_000_000))
    load.settle_all()
    return load, load.jobs[0]


def test_a_key_in_flight_is_sent_again_until_it_is_answered() -> None:
    api = Prepared()
    load, life = load_with_a_job(api)
    load._run_now(life)
    load.settle_all()
    assert life.manual == {"J-1@20261116T080000Z"}
    assert (len(api.keys), len(set(api.keys)), load.refused) == (HELD + 1, 1, HELD)


def test_meanwhile_it_asks_for_other_things_and_leaves_that_job_alone() -> None:
    api = Prepared(retry_after="3600")
    load, life = load_with_a_job(api)
    load._run_now(life)
    versions = list(life.versions)
    for _ in range(200):
        load.act()
        assert life.versions == versions
        assert not life.deleted
    assert api.keys.count(api.keys[0]) == 1
    assert api.others > 100


def test_any_other_conflict_is_a_failure() -> None:
    load, life = load_with_a_job(api := Prepared(code="conflict"))
    load._run_now(life)
    with pytest.raises(AssertionError, match="conflict"):
        load.settle_all()
    assert len(api.keys) == 1
