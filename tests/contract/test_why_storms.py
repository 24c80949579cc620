"""Whatever people, outages and crashes do to jobs, every time has an answer that agrees with the tables; none is lost.

And the other way round: a row that somebody takes away behind the store's back is said to be lost.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import AfterTiming, Job, OnceTiming, Version
from hourhand.core.why import Cause, Word
from hourhand.services.why import Explanation, Why
from tests.contract.checker import expected_nominals
from tests.contract.graph_storm import GraphStorm
from tests.contract.harness import Harness, SqliteMemoryHarness
from tests.contract.scene import Scene
from tests.contract.storm import Storm
from tests.contract.test_why import forget, why_of

MOST_TIMES = 60  # of each job
WORDS = {
    State.SUCCEEDED: Word.RAN,
    State.FAILED: Word.RAN,
    State.SKIPPED: Word.SKIPPED,
    State.CANCELLED: Word.CANCELLED,
    State.RUNNING: Word.RUNNING,
    State.RETRYING: Word.WAITING,
    State.PENDING: Word.WAITING,
}
UNRUN = {Word.WAITING, Word.SKIPPED, Word.UNKNOWN}


def promised(versions: Sequence[Version], until_at: int) -> set[int]:
    """What versions promise by themselves; the times of those that follow others are their parents'."""
    return expected_nominals(
        [one for one in versions if not isinstance(one.spec.timing, AfterTiming)], until_at
    )


def agrees(explanation: Explanation, expected: bool) -> bool:
    """Whether a verdict says the same as the snapshot it was made from, and as the versions."""
    run, verdict = explanation.facts.run, explanation.verdict
    if run is not None:
        return verdict.word is WORDS[run.state]
    if expected:
        return verdict.word in UNRUN
    return verdict.word is Word.NOT_EXPECTED or verdict.cause in (Cause.PAUSED, Cause.PARENT, Cause.RETENTION)


class Asker:
    """Asks why, of every job at many times, and remembers which answers there were."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.random = random.Random(seed)
        self.why: Why = why_of(scene)
        self.words: Counter[Word] = Counter()

    async def ask(self, job: Job, at: int) -> Explanation:
        explanation = await self.why.explain(job.tenant, job.id, at)
        verdict = explanation.verdict
        assert verdict.word is not Word.LOST, (job, at, explanation)
        expected = at in promised(explanation.facts.versions, max(at, self.scene.now))
        assert agrees(explanation, expected), (at, expected, explanation)
        assert verdict.change
        assert verdict.summary
        self.words[verdict.word] += 1
        return explanation

    async def ask_all(self, jobs: Iterable[Job]) -> list[Explanation]:
        """Nothing happens meanwhile, so answers also agree with the run as it is read otherwise."""
        found = []
        for job in jobs:
            for at in await self._times(job):
                explanation = await self.ask(job, at)
                seen = await self.scene.store.get_run(job.tenant, RunKey(job.id, at))
                if explanation.facts.job is not None:
                    assert explanation.verdict.state == (None if seen is None else seen.state)
                found.append(explanation)
        return found

    async def while_it_rages(self, storm: Storm, raging: "asyncio.Task[None]") -> None:
        while not raging.done():
            await asyncio.sleep(0)
            jobs = list(storm._jobs.values())
            if jobs:
                job = self.random.choice(jobs)
                times = await self._times(job)
                await self.ask(job, self.random.choice(times))

    async def _times(self, job: Job) -> list[int]:
        """Times that the versions promise, up to some minutes ahead, and some that they do not."""
        now_at = self.scene.now
        versions = await self.scene.store.versions(job.tenant, job.id)
        coming = sorted(promised(versions, now_at + 3 * MINUTE_US))
        chosen = self.random.sample(coming, min(len(coming), MOST_TIMES))
        others = [now_at, now_at - MINUTE_US, now_at // MINUTE_US * MINUTE_US, job.created_at - SECOND_US]
        return [*chosen, *(at + self.random.randrange(SECOND_US) for at in others[:2]), *others]


async def storm_of_questions(harness: Harness, seed: int, *, clock_jumps: bool = False) -> Counter[Word]:
    storm, asker = Storm(harness, seed, clock_jumps), Asker(Scene(harness), seed)
    steps = 15 if harness.threaded else 40  # each write goes to the disk there
    raging = asyncio.create_task(storm.rage(steps))
    await asyncio.gather(raging, asker.while_it_rages(storm, raging))
    jobs = list(storm._jobs.values())
    await asker.ask_all(jobs)
    await storm.calm()
    explained = await asker.ask_all(jobs)
    await lose_one(asker, explained)
    return asker.words


def waits_for_resume(present: Version, at: int) -> bool:
    """Whether a paused job is to run at a time only: without a run that one is still to come, so nobody misses it."""
    return present.paused and not present.deleted and present.spec.timing == OnceTiming(at=at)


async def lose_one(asker: Asker, explained: list[Explanation]) -> None:
    """Take a run away that a living job's schedule promised, outside every outage: it is missed."""
    candidates = [
        one.facts
        for one in explained
        if one.facts.run is not None
        and one.facts.gap is None
        and one.facts.run.state is State.SUCCEEDED
        and one.facts.at in promised(one.facts.versions, one.facts.at)
        and not waits_for_resume(one.facts.versions[-1], one.facts.at)
    ]
    assert candidates
    facts = asker.random.choice(candidates)
    await forget(asker.scene.harness, facts.job_id, facts.at)
    tenant = facts.run.tenant if facts.run is not None else ""
    assert (await asker.why.explain(tenant, facts.job_id, facts.at)).verdict.word is Word.LOST


async def test_no_storm_loses_a_time_and_every_answer_is_met() -> None:
    words: Counter[Word] = Counter()
    for seed in range(2_000, 2_006):
        harness = SqliteMemoryHarness()
        words += await storm_of_questions(harness, seed, clock_jumps=seed % 3 == 0)
        await harness.close()
    assert set(words) >= set(Word) - {Word.LOST, Word.UNKNOWN}, words


async def test_a_storm_on_each_store(store_harness: Harness) -> None:
    await storm_of_questions(store_harness, 2_100)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3_000, 3_200))
async def test_many_storms(seed: int) -> None:
    harness = SqliteMemoryHarness()
    await storm_of_questions(harness, seed, clock_jumps=seed % 2 == 0)
    await harness.close()


class QuestionedGraph(GraphStorm):
    """A storm over graphs in which somebody asks why, in the middle and at the end."""

    def __init__(self, scene: Scene, seed: int) -> None:
        super().__init__(scene, seed)
        self.asker = Asker(scene, seed)

    async def pass_time(self) -> None:
        await super().pass_time()
        await self._ask()

    async def come_to_rest(self) -> None:
        await super().come_to_rest()
        await self._ask()

    async def _ask(self) -> None:
        now_at = self.scene.now
        roots = {one.job.id: one.job for one in self.known.values()}
        times = {at for one in self.known.values() for at in one.started}
        nominals = self.asker.random.sample(sorted(times), min(len(times), 8))
        for job in roots.values():
            for at in [*nominals, now_at, now_at // MINUTE_US * MINUTE_US]:
                await self.asker.ask(job, at)


@pytest.mark.parametrize("seed", range(6))
async def test_no_graph_loses_a_time(seed: int) -> None:
    harness = SqliteMemoryHarness()
    storm = QuestionedGraph(Scene(harness), seed)
    await storm.run(200)
    assert storm.asker.words[Word.RAN]
    await harness.close()
