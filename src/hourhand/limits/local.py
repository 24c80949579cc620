"""Limits counted in this process: exact for one, and for several each its own part."""

from hourhand.clock import Clock
from hourhand.core.bucket import Limit, Verdict, take

MOST_KEYS = 100_000


class LocalLimits:
    """Buckets by key, those that are not full; with too many of them the fullest are forgotten."""

    def __init__(self, clock: Clock, most_keys: int = MOST_KEYS) -> None:
        self._clock = clock
        self._most_keys = most_keys
        self._full_at: dict[str, int] = {}

    async def take(self, key: str, limit: Limit, amount: int = 1) -> Verdict:
        """On this process's clock."""
        now_at = self._clock.now()
        self._full_at[key], verdict = take(self._full_at.get(key, 0), now_at, limit, amount)
        if len(self._full_at) > self._most_keys:
            self._forget(now_at)
        return verdict

    def _forget(self, now_at: int) -> None:
        used = {key: full_at for key, full_at in self._full_at.items() if full_at > now_at}
        if len(used) > self._most_keys // 2:
            emptiest = sorted(used, key=used.__getitem__)[-(self._most_keys // 2) :]
            used = {key: used[key] for key in emptiest}
        self._full_at = used
