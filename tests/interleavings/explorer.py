"""Goes through the interleavings of two operations, each from a fresh beginning.

An interleaving is a word of L and R: whose step is next wherever both could go on. Of orders that differ only in steps
that cannot get in each other's way one is enough (sleep sets), so a search that comes to its end has seen all that can
happen. With a budget it sees as many as that, drawn from all over the tree by a fixed seed.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.interleavings.footprints import are_independent
from tests.interleavings.stepper import DEADLINE_S, Observer, Side

Sides = tuple[Side, Side]


@dataclass
class Passage:
    """What happened in one interleaving."""

    word: str = ""  # whose steps, in order
    branches: list[tuple[str, frozenset[str]]] = field(default_factory=list)  # not gone: prefix, who sleeps
    redundant: bool = False  # the same as another one, but for steps that do not matter to each other
    waited: bool = False  # somebody waited for a lock
    story: list[str] = field(default_factory=list)


@dataclass
class Account:
    """What a search has seen."""

    explored: int = 0
    redundant: int = 0
    waited: int = 0
    left_out: int = 0  # branches beyond the budget

    @property
    def is_complete(self) -> bool:
        """Whether there was nothing left to see."""
        return self.left_out == 0

    def __str__(self) -> str:
        rest = "all of them" if self.is_complete else f"{self.left_out} branches left out"
        return f"{self.explored} interleavings, {self.waited} with waiting for a lock, {rest}"


async def explore(
    pass_once: Callable[[str, frozenset[str]], Awaitable[Passage]], budget: int | None, seed: int = 1
) -> Account:
    """Pass through interleavings until all have been seen, or as many as the budget allows."""
    draw = random.Random(seed)
    frontier: list[tuple[str, frozenset[str]]] = [("", frozenset())]
    account = Account()
    seen: set[str] = set()
    while frontier:
        if budget is not None and account.explored + account.redundant >= budget:
            account.left_out = len(frontier)
            break
        place = draw.randrange(len(frontier)) if budget is not None else -1
        prefix, asleep = frontier.pop(place)
        passage = await pass_once(prefix, asleep)
        frontier += passage.branches
        if passage.redundant or passage.word in seen:
            account.redundant += 1
        else:
            seen.add(passage.word)
            account.explored += 1
            account.waited += passage.waited
    return account


async def interleave(
    sides: Sides,
    observer: Observer | None,
    passage: Passage,
    prefix: Sequence[str] = "",
    asleep: frozenset[str] = frozenset(),
) -> None:
    """Let two operations go on in the order of the prefix, then as they come.

    Both are over afterwards, unless it turns out that the rest was seen already.
    """
    async with asyncio.timeout(DEADLINE_S):
        while True:
            waiting = await _come_to_rest(sides, observer)
            passage.waited |= bool(waiting)
            able = [side for side in sides if side.stands]
            if not able:
                return
            side = _chosen(able, prefix, passage)
            if side is None:
                awake = [one for one in able if one.letter not in asleep]
                if not awake:
                    passage.redundant = True
                    return
                side, *others = awake
                _branch(passage, side, others, able, asleep)
            if len(passage.word) >= len(prefix):
                asleep = _still_asleep(asleep, able, side)
            passage.word += side.letter
            passage.story.append(f"{side.letter} {side.text}")
            side.let_go()


def _chosen(able: Sequence[Side], prefix: Sequence[str], passage: Passage) -> Side | None:
    """Who is next by the prefix; None beyond it."""
    at = len(passage.word)
    if at >= len(prefix):
        return None
    wanted = [side for side in able if side.letter == prefix[at]]
    return wanted[0] if wanted else able[0]  # a lock was waited for longer or shorter than the last time


def _branch(
    passage: Passage, side: Side, others: Sequence[Side], able: Sequence[Side], asleep: frozenset[str]
) -> None:
    for other in others:
        sleepers = _still_asleep(asleep | {side.letter}, able, other)
        passage.branches.append((passage.word + other.letter, sleepers))


def _still_asleep(asleep: frozenset[str], able: Sequence[Side], next_side: Side) -> frozenset[str]:
    """Whoever's step is the same before and after this one need not be gone on with."""
    return frozenset(
        one.letter
        for one in able
        if one is not next_side and one.letter in asleep and are_independent(one.step, next_side.step)
    )


async def _come_to_rest(sides: Sides, observer: Observer | None) -> list[Side]:
    """Until each side stands, is over, or waits for the other; two that wait for each other are parted by the server."""
    while True:
        waiting = [side for side in sides if await side.come_to_rest(observer)]
        if len(waiting) < 2 and not (waiting and all(side.is_over for side in sides if side not in waiting)):
            return waiting


async def ended(side: Side) -> Any:
    """What an operation answered."""
    assert side.task is not None
    return await side.task
