"""The verbs that only make sense within one database: planning, claiming, repair, leases.

Processes that plan or work run one node per shard on the shard's own store; asking for such a verb over all of
them is a mistake in wiring, and is said so.
"""

from collections.abc import Mapping, Sequence
from typing import Never

from hourhand.core.log import LogChunk
from hourhand.core.model import Job
from hourhand.core.operation import Operation
from hourhand.core.plan import ClockPlan
from hourhand.core.serving import Serves
from hourhand.core.webhooks import Tried, Webhook
from hourhand.ports import store as port
from hourhand.ports.backfills import Feeding
from hourhand.ports.upcoming import UpcomingPage, UpcomingQuery
from hourhand.ports.webhooks import CallBatch, Spread, Trimmed, WebhookWork


class PerShardVerb(RuntimeError):
    """A verb of one database was asked of all."""


class PerShardVerbs:
    """Refuses them all."""

    async def tend_jobs(self, limit: int) -> int | None:
        _refuse("tend_jobs")

    async def due_clocks(self, segments: Sequence[int], before_at: int, limit: int) -> list[port.Clock]:
        _refuse("due_clocks")

    async def next_clock_at(self, segments: Sequence[int]) -> int | None:
        _refuse("next_clock_at")

    async def plan(self, plans: Sequence[ClockPlan]) -> int:
        _refuse("plan")

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        _refuse("claim")

    async def upcoming(self, query: UpcomingQuery) -> UpcomingPage:
        _refuse("upcoming")

    async def read_jobs(self, ids: Sequence[int]) -> list[Job]:
        _refuse("read_jobs")

    async def held_runs(self, node_id: int) -> list[port.HeldRun]:
        _refuse("held_runs")

    async def cancel_asked(self, node_id: int) -> list[port.HeldRun]:
        _refuse("cancel_asked")

    async def stray_runs(self, slack_us: int, limit: int) -> list[port.StrayRun]:
        _refuse("stray_runs")

    async def judge_late(self, cursors: dict[int, port.Cursor], limit: int) -> port.LatePage:
        _refuse("judge_late")

    async def hand_on_slots(self, limit: int) -> int:
        _refuse("hand_on_slots")

    async def descend(self, limit: int) -> int:
        _refuse("descend")

    async def judge_waits(self, limit: int) -> int:
        _refuse("judge_waits")

    async def unfinished_backfills(self, after_id: int, limit: int) -> list[int]:
        _refuse("unfinished_backfills")

    async def feed_backfill(self, backfill_id: int) -> Feeding | None:
        _refuse("feed_backfill")

    async def unfinished_operations(self, after_id: int, limit: int) -> list[Operation]:
        _refuse("unfinished_operations")

    async def move_operation(self, operation: Operation) -> bool:
        _refuse("move_operation")

    async def end_skips(self, limit: int) -> int:
        _refuse("end_skips")

    async def webhook_work(self) -> WebhookWork:
        _refuse("webhook_work")

    async def spread_events(self, limit: int) -> Spread:
        _refuse("spread_events")

    async def take_calls(self, webhooks: int, each: int, lease_us: int) -> list[CallBatch]:
        _refuse("take_calls")

    async def record_calls(self, webhook_id: int, fence: int, tried: Sequence[Tried]) -> Webhook | None:
        _refuse("record_calls")

    async def webhook_ids(self, after_id: int, limit: int) -> list[int]:
        _refuse("webhook_ids")

    async def trim_webhooks(self, ids: Sequence[int]) -> Trimmed:
        _refuse("trim_webhooks")

    async def purge(self, history_before_at: int, dead_before_at: int, limit: int) -> bool:
        _refuse("purge")

    async def tidy(self) -> None:
        _refuse("tidy")

    async def append_log(self, chunks: Sequence[LogChunk]) -> None:
        _refuse("append_log")

    async def renew_node(self, node_id: int, kind: str, name: str, lease_us: int) -> None:
        _refuse("renew_node")

    async def end_node(self, node_id: int) -> None:
        _refuse("end_node")

    async def hold_segments(self, node_id: int, kind: str, name: str, lease_us: int) -> Mapping[int, int]:
        _refuse("hold_segments")

    async def hold_allotted(
        self, node_id: int, kind: str, name: str, lease_us: int, allotted: Mapping[int, int]
    ) -> Mapping[int, int]:
        _refuse("hold_allotted")

    async def tell_served(self, node_id: int, serves: Serves) -> None:
        _refuse("tell_served")


def _refuse(verb: str) -> Never:
    raise PerShardVerb(f"{verb} works within one database: run a node on each shard's own store")
