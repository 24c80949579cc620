"""Pages of several shards as one page, newest first: nothing twice, nothing lost from page to page. Pure.

Jobs and dead letters have one order over all shards, so one bound serves as everybody's cursor. Runs are in
each shard's own order, so their cursor is a place in each shard.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from hourhand.core.lifecycle import FINAL
from hourhand.core.quota import Use
from hourhand.core.run import DeadLetter, RunView
from hourhand.errors import Invalid
from hourhand.ports.quotas import TenantPage, TenantStanding
from hourhand.ports.reading import DeadGroup, RunPage

T = TypeVar("T")
K = TypeVar("K", int, tuple[int, int, int])

Place = tuple[int, ...] | None  # where a shard's list goes on; None: from its beginning
Places = dict[int, Place]  # of the shards that have more

_EXHAUSTED = -1


def merge_ordered(
    pages: Sequence[tuple[Sequence[T], K | None]], key: Callable[[T], K], limit: int
) -> tuple[tuple[T, ...], K | None]:
    """The newest of pages that all go by the same key, and where all of them go on.

    A shard has said everything down to its own bound only: what others have beyond it must wait, since the
    shard may have something in between.
    """
    bounds = [bound for _, bound in pages if bound is not None]
    floor = max(bounds, default=None)
    items = sorted((item for found, _ in pages for item in found), key=key, reverse=True)
    known = [item for item in items if floor is None or key(item) >= floor]
    if len(known) > limit:
        return tuple(known[:limit]), key(known[limit - 1])
    return tuple(known), floor


def merge_runs(pages: Mapping[int, RunPage], places: Places, limit: int) -> tuple[list[RunView], Places]:
    """The newest runs of pages in each shard's own order, and where each shard that has more goes on.

    `places` is where these pages began; shards without a page keep theirs.
    """
    taken: list[RunView] = []
    used = dict.fromkeys(pages, 0)
    while len(taken) < limit and (newest := _newest(pages, used)) is not None:
        taken.append(pages[newest].runs[used[newest]])
        used[newest] += 1
    onward = dict(places)
    for index, page in pages.items():
        if used[index] < len(page.runs):
            if used[index] and page.places:
                onward[index] = page.places[used[index] - 1]
        elif page.next_before is None:
            del onward[index]
        else:
            onward[index] = page.next_before
    return taken, onward


def write_places(places: Places, count: int) -> tuple[int, ...]:
    """Places in each shard as one place: for each shard how many numbers follow, and these."""
    numbers: list[int] = []
    for index in range(count):
        if index not in places:
            numbers.append(_EXHAUSTED)
        else:
            place = places[index] or ()
            numbers += [len(place), *place]
    return tuple(numbers)


def read_places(numbers: tuple[int, ...] | None, count: int) -> Places:
    """The way back; Invalid for what `write_places` does not write."""
    if numbers is None:
        return dict.fromkeys(range(count))
    places: Places = {}
    rest = list(numbers)
    for index in range(count):
        length = rest.pop(0) if rest else None
        if length is None or not _EXHAUSTED <= length <= len(rest):
            raise _other_cursor()
        if length != _EXHAUSTED:
            places[index] = tuple(rest[:length]) or None
            del rest[:length]
    if rest:
        raise _other_cursor()
    return places


def merge_groups(groups: Iterable[DeadGroup], by: str, limit: int) -> list[DeadGroup]:
    """Groups of the same cause or job counted together, the largest first; the newest letter is the sample."""
    merged: dict[str | int, DeadGroup] = {}
    for group in groups:
        name = group.sample.job_id if by == "job" else group.value  # jobs may be called the same
        other = merged.get(name)
        if other is not None:
            sample = max(other.sample, group.sample, key=letter_key)
            group = DeadGroup(value=group.value, count=group.count + other.count, sample=sample)
        merged[name] = group
    return sorted(merged.values(), key=lambda group: (-group.count, group.value))[:limit]


def merge_standings(found: Sequence[TenantStanding]) -> TenantStanding:
    """What a tenant has in all shards together; what it may have is the same in each."""
    use = Use()
    for one in found:
        use = use.plus(one.use)
    return msgspec.structs.replace(found[0], use=use)


def merge_tenants(pages: Sequence[TenantPage], limit: int) -> TenantPage:
    """Tenants by name, each with what it has in all shards; not beyond what every shard has told."""
    bounds = [page.next_after for page in pages if page.next_after is not None]
    last = min(bounds, default=None)
    known: dict[str, list[TenantStanding]] = {}
    for page in pages:
        for one in page.tenants:
            if last is None or one.tenant <= last:
                known.setdefault(one.tenant, []).append(one)
    names = sorted(known)
    onward = names[limit - 1] if len(names) > limit else last
    tenants = tuple(merge_standings(known[name]) for name in names[:limit])
    return TenantPage(tenants=tenants, next_after=onward)


def letter_key(letter: DeadLetter) -> tuple[int, int, int]:
    """What dead letters are sorted by."""
    return letter.failed_at, letter.job_id, letter.scheduled_at


def _newest(pages: Mapping[int, RunPage], used: Mapping[int, int]) -> int | None:
    """The shard whose next run is the newest of all; None when that cannot be known, or there is none."""
    heads: dict[int, int] = {}
    for index, page in pages.items():
        if used[index] < len(page.runs):
            heads[index] = _time_of(page.runs[used[index]])
        elif page.next_before is not None:
            return None  # it has more, which may be newer than what the others have
    return max(heads, key=lambda index: heads[index], default=None)


def _time_of(run: RunView) -> int:
    """When a finished run ended, or a live one is due: what its list is sorted by."""
    return run.attempts[-1].finished_at if run.state in FINAL and run.attempts else run.due_at


def _other_cursor() -> Invalid:
    return Invalid("cursor: expected the next_cursor of this list")
