"""How long attempts take and whether they fail, drawn from a seed: the same for the same run, whatever else happens.

Targets are never called; `ScriptedTarget` stands for all of them.
"""

import asyncio
import math
from collections.abc import Mapping
from hashlib import blake2b
from statistics import NormalDist

import msgspec

from hourhand.core.instant import SECOND_US
from hourhand.core.retry import Outcome
from hourhand.core.run import ClaimedRun
from hourhand.ports.target import OK, Result

_NORMAL = NormalDist()
_Z99 = _NORMAL.inv_cdf(0.99)
_MOMENT_US = 1
_FAILED = Result(outcome=Outcome.FAILED, detail={"error": "failed by the dice of this simulation"})


class Duration(msgspec.Struct, frozen=True, kw_only=True):
    """Half of all attempts take less than `p50_us`, one in a hundred more than `p99_us`; equal: all take that."""

    p50_us: int
    p99_us: int

    def draw(self, chance: float) -> int:
        """The duration at a place between 0 and 1 among all; log-normal, as the times of real work are."""
        if self.p50_us == self.p99_us:
            return self.p50_us
        spread = math.log(self.p99_us / self.p50_us) / _Z99
        return round(self.p50_us * math.exp(spread * _NORMAL.inv_cdf(min(max(chance, 1e-9), 1 - 1e-9))))


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """What attempts of a job are like. `number` names the job to the dice, the same whatever its id."""

    number: int
    duration: Duration = Duration(p50_us=SECOND_US, p99_us=SECOND_US)
    fails: float = 0.0  # how many of them, from 0 to 1


class Script:
    """The habits of each job, and the dice."""

    def __init__(self, habits: Mapping[int, Habits], seed: int) -> None:
        self._habits = habits
        self._seed = f"{seed}".encode()

    def drawn(self, job_id: int, scheduled_at: int, attempt: int) -> tuple[int, bool]:
        """How long an attempt takes, and whether it fails.

        An end takes a moment to be known: what ends in the very instant in which the next is due is still there.
        """
        habits = self._habits[job_id]
        duration = habits.duration
        took_us = duration.p50_us + _MOMENT_US
        if duration.p50_us != duration.p99_us:
            took_us = duration.draw(self._chance(b"took", habits.number, scheduled_at, attempt)) + _MOMENT_US
        if not habits.fails:
            return took_us, False
        return took_us, self._chance(b"fails", habits.number, scheduled_at, attempt) < habits.fails

    def _chance(self, what: bytes, number: int, scheduled_at: int, attempt: int) -> float:
        key = b"%b %b %d %d %d" % (self._seed, what, number, scheduled_at, attempt)
        return int.from_bytes(blake2b(key, digest_size=7).digest()) / (1 << 56)


class ScriptedTarget:
    """Takes as long as the script says, and fails when it says so."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def execute(self, run: ClaimedRun) -> Result:
        """One attempt, which calls nobody."""
        took_us, fails = self._script.drawn(run.job_id, run.scheduled_at, run.fence)
        await asyncio.sleep(took_us / SECOND_US)
        return _FAILED if fails else OK

    async def close(self) -> None:
        """Nothing to let go of."""
