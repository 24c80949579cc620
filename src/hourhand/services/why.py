"""Why a nominal time of a job ran, waits, was skipped or is none: gathers what is known and lets `core.why` judge.

The facts about a time are one snapshot of the store; who lives is read beside it, and decides nothing but words.
"""

from enum import StrEnum

import msgspec

from hourhand.clock import Clock
from hourhand.core.fault import Fault
from hourhand.core.identity import RunKey, format_job_id
from hourhand.core.model import AfterTiming, Version
from hourhand.core.why import LiveWorker, RunFacts, Serving, Verdict, judge, nearest_times
from hourhand.errors import Invalid, NotFound
from hourhand.ports.store import NodeInfo, Store

_WORKS = frozenset({"worker", "up"})
_PLANS = frozenset({"scheduler", "up"})
_ALONE = "up"  # the one process of a file


class Which(StrEnum):
    """A time that people mean without naming it."""

    LAST = "last"  # the newest that is due
    NEXT = "next"  # the first that is not


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict about one nominal time, with what it was judged by."""

    facts: RunFacts
    verdict: Verdict

    @property
    def version(self) -> Version:
        """What the job was, as far as the verdict is about it."""
        versions = self.facts.versions
        return next((one for one in versions if one.version == self.verdict.version), versions[-1])


class Why:
    """Reads over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, clock: Clock, horizon_us: int) -> None:
        self._store = store
        self._clock = clock
        self._horizon_us = horizon_us

    async def explain(self, tenant: str, job_id: int, at: int | Which = Which.LAST) -> Explanation:
        """The verdict about a nominal time of a job, also of a deleted one; NotFound where there was none."""
        if isinstance(at, Which):
            at = await self._time(tenant, job_id, at)
        facts = await self._store.run_facts(tenant, RunKey(job_id, at))
        if facts is None:
            raise _no_job(job_id)
        if any(one.paused for one in facts.versions):
            makers = await self._store.makers(tenant, job_id)
            facts = msgspec.structs.replace(facts, makers=makers)
        serving = self._serving(await self._store.nodes(), facts.now_at)
        return Explanation(facts=facts, verdict=judge(facts, serving))

    async def _time(self, tenant: str, job_id: int, which: Which) -> int:
        """The time that is meant: of a job that follows others the newest run, since they decide its times."""
        versions = await self._store.versions(tenant, job_id)
        if not versions:
            raise _no_job(job_id)
        last_at, next_at = nearest_times(versions, self._clock.now() + 1)
        if isinstance(versions[-1].spec.timing, AfterTiming):
            runs = await self._store.job_runs(tenant, job_id, [], None, 1)
            last_at = runs[0].scheduled_at if runs else last_at
        if next_at is None:
            next_at = _if_resumed(versions[-1], self._clock.now())
        wanted = (last_at, next_at) if which is Which.LAST else (next_at,)
        at = next((one for one in wanted if one is not None), None)
        if at is None:
            fault = Fault(pointer="?at", expected="a time, such as 2026-11-16T08:00:00Z", got=which.value)
            raise Invalid(
                f"the job has no {which.value} time by its schedule; name the time you mean", [fault]
            )
        return at

    def _serving(self, nodes: list[NodeInfo], now_at: int) -> Serving:
        alive = [node for node in nodes if node.lease_until > now_at]
        return Serving(
            workers=tuple(
                LiveWorker(name=node.name, serves=node.serves) for node in alive if node.kind in _WORKS
            ),
            schedulers=tuple(node.name for node in alive if node.kind in _PLANS),
            horizon_us=self._horizon_us,
            alone=any(node.kind == _ALONE for node in alive),
        )


def _if_resumed(version: Version, now_at: int) -> int | None:
    """The time that a paused job would have next: who asks about it wants to hear of the pause."""
    rule = version.spec.rule
    return rule.next(now_at) if rule is not None and version.paused and not version.deleted else None


def _no_job(job_id: int) -> NotFound:
    return NotFound(f"there is no job {format_job_id(job_id)}")
