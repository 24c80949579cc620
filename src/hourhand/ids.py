"""Makes the ids that cannot be computed: new jobs and new nodes.

A job id is 63 bits that grow with time: 41 of milliseconds since 2020, 6 of shard, 10 drawn at start
and 6 of a counter. Two processes may draw alike; the store refuses the second and the caller draws again.
"""

import random

from hourhand.clock import Clock

_EPOCH_MS = 1_577_836_800_000  # 2020-01-01
_COUNTER_BITS = 6
_NODE_BITS = 10
_SHARD_BITS = 6


class IdSource:
    """Hands out ids in growing order; borrows from coming milliseconds when asked for very many."""

    def __init__(self, clock: Clock, seed: int | None = None) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        self._node = self._random.getrandbits(_NODE_BITS)
        self._tick = 0  # milliseconds and counter as one number

    def job_id(self, shard: int = 0) -> int:
        """A new job id on a shard."""
        present = (self._clock.now() // 1000 - _EPOCH_MS) << _COUNTER_BITS
        self._tick = max(self._tick + 1, present)
        milliseconds, counter = divmod(self._tick, 1 << _COUNTER_BITS)
        return ((milliseconds << _SHARD_BITS | shard) << _NODE_BITS | self._node) << _COUNTER_BITS | counter

    def node_id(self) -> int:
        """A new node id; drawn, since a node is new at every start."""
        return self._random.getrandbits(62) | 1
