"""Which transitions and faults have met: what must not stay at zero, and what cannot meet and why."""

from collections import Counter

from hourhand.core.lifecycle import TRANSITIONS, Event, State
from tests.sim.script import Fault
from tests.sim.watch import Transition

Pair = tuple[Transition, Fault]

# Pairs that cannot meet, each with the reason.
CANNOT_MEET: dict[Pair, str] = {}


def unmet(pairs: Counter[Pair]) -> list[Pair]:
    """Pairs that could have met and have not."""
    return [
        (transition, fault)
        for transition in TRANSITIONS
        for fault in Fault
        if not pairs[transition, fault] and (transition, fault) not in CANNOT_MEET
    ]


def name_of(pair: Pair) -> str:
    """For people, and as the key of a count in JSON."""
    (state, event), fault = pair
    return f"{state} {event} / {fault}"


def pair_named(name: str) -> Pair:
    """The inverse."""
    words, _, fault = name.partition(" / ")
    state, event = words.split(" ")
    return (State(state), Event(event)), Fault(fault)
