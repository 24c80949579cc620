"""Makes the ids that cannot be computed: new jobs and new nodes. The only place that draws at random.

A job id grows with time; its layout is `core.identity`'s. Two processes may draw alike; the store refuses
the second and the caller draws again.
"""

import base64
import random
import secrets

from hourhand.clock import Clock
from hourhand.core.identity import ID_COUNTER_BITS, ID_EPOCH_MS, ID_NODE_BITS, compose_job_id

_drawing = random.Random()


def draw() -> float:
    """At least 0 and below 1: spreads what processes would do at the same moment. Keeps no secret."""
    return _drawing.random()


def process_name() -> str:
    """A word that no other process has."""
    return secrets.token_hex(8)


def new_key() -> bytes:
    """A key for what only this cluster may sign."""
    return secrets.token_bytes(32)


def new_secret(size_bytes: int) -> str:
    """A secret as hexadecimal digits, for somebody to keep."""
    return secrets.token_hex(size_bytes)


def new_signing_secret() -> str:
    """A secret of Standard Webhooks, for one endpoint."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


class IdSource:
    """Hands out ids in growing order; borrows from coming milliseconds when asked for very many."""

    def __init__(self, clock: Clock, seed: int | None = None) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        self._node = self._random.getrandbits(ID_NODE_BITS)
        self._tick = 0  # milliseconds and counter as one number

    def job_id(self, shard: int = 0) -> int:
        """A new job id on a shard."""
        present = (self._clock.now() // 1000 - ID_EPOCH_MS) << ID_COUNTER_BITS
        self._tick = max(self._tick + 1, present)
        milliseconds, counter = divmod(self._tick, 1 << ID_COUNTER_BITS)
        return compose_job_id(milliseconds, shard, self._node, counter)

    def node_id(self) -> int:
        """A new node id; drawn, since a node is new at every start."""
        return self._random.getrandbits(62) | 1
