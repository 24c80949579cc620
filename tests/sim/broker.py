"""A broker between the machines that loses, repeats, reorders and delays messages, is away now and then, and forgets.

When it is away and when it was emptied follow from the seed and the time alone, so that a story with some items left out
meets the same broker.
"""

import random
from dataclasses import dataclass
from typing import Any

from hourhand.core.instant import SECOND_US
from hourhand.queues.brokered import BrokerQueue
from hourhand.services.dispatcher import Dispatcher
from hourhand.wiring.nodes import Nodes
from tests.queues.memory_broker import Faults, MemoryBroker
from tests.sim.machine import SimLoop

_SPELL_US = 4 * SECOND_US
_AWAY, _EMPTIED = 0.15, 0.3  # of all spells


class SimBroker(MemoryBroker):
    """One broker for all machines of a story."""

    def __init__(self, loop: SimLoop, seed: int) -> None:
        draw = random.Random(f"broker {seed}")
        faults = Faults(
            lose=draw.choice((0.0, 0.1, 0.5)),
            repeat=draw.choice((0.0, 0.1, 0.5)),
            delay=draw.choice((0.0, 0.1, 0.5)),
            reorder=draw.random() < 0.5,
        )
        super().__init__(loop.microseconds, seed=seed, faults=faults)
        self._seed = seed
        self._spell = 0

    def check(self) -> None:
        """It is away for whole spells of time, and comes back empty from others."""
        spell = self._now() // _SPELL_US
        fate = random.Random(f"spell {self._seed} {spell}").random()
        if spell != self._spell and fate < _EMPTIED:
            self.empty()
        self._spell = spell
        self.away = fate < _AWAY
        super().check()


@dataclass(frozen=True, kw_only=True)
class BrokeredNodes(Nodes):
    """Processes as the product builds them, but for the broker."""

    broker: SimBroker

    @property
    def _brokers(self) -> Any:
        return _SimBrokers(self)


class _SimBrokers:
    """Both sides of it, as `wiring.queues` would build them."""

    def __init__(self, nodes: BrokeredNodes) -> None:
        self._nodes = nodes

    def queue(self, store: Any, clock: Any, shard: int) -> BrokerQueue:
        feeds = [self._nodes.broker.feed(*self._nodes.settings.worker.pools)]
        return BrokerQueue(store=store, feeds=feeds, clock=clock, telemetry=self._nodes.telemetry)

    def dispatcher(self, store: Any, leases: Any, shard: int) -> Dispatcher:
        return Dispatcher(
            store=store,
            leases=leases,
            offers=self._nodes.broker.offers(),
            telemetry=self._nodes.telemetry,
            lead_us=self._nodes.settings.scheduler.lead_us,
        )
