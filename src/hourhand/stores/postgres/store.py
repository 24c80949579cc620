"""The PostgreSQL store: how a database is opened, the hot verbs, and how others are told of changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from hourhand.clock import Clock as TimeSource
from hourhand.core.buckets import ShardIdentity, identity_in
from hourhand.core.identity import SEGMENTS, segment_of
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import Job
from hourhand.core.plan import ClockPlan
from hourhand.core.quota import Quota
from hourhand.core.run import Settlement
from hourhand.core.schedule import tzdata_version
from hourhand.errors import CannotStart, Unavailable
from hourhand.ids import new_key, process_name
from hourhand.ports import store as port
from hourhand.ports.acting import Actor, actor
from hourhand.ports.answers import harmless, promise
from hourhand.ports.upcoming import UpcomingPage, UpcomingQuery
from hourhand.stores.postgres import claims, partitions, planning, schema, settling, upkeep
from hourhand.stores.postgres.channel import HINTS, Channel
from hourhand.stores.postgres.engine import LONG_S, WRITE_S, PostgresEngine
from hourhand.stores.postgres.finished import finished_runs
from hourhand.stores.postgres.gathering import Gathering
from hourhand.stores.postgres.server_clock import ServerClock
from hourhand.stores.relational import jobs, nodes, upcoming
from hourhand.stores.relational.membership import Place, Settings, make_clocks
from hourhand.stores.relational.store import Hints, RelationalStore
from hourhand.stores.relational.tx import Tx
from hourhand.telemetry import logger

_MOST_KNOWN_CLOCKS = 200_000

_log = logger("hourhand.postgres")


class PostgresStore(RelationalStore):
    """One database, any number of processes; see `ports.store` for the contract of each verb."""

    _engine: PostgresEngine

    def __init__(
        self,
        engine: PostgresEngine,
        settings: Settings,
        hints: Hints,
        clock: TimeSource,
        channel: Channel,
    ) -> None:
        super().__init__(engine, settings, hints, finished_runs)
        self.clock = clock  # the server's time, for services
        self.channel = channel
        self._zones_are_old = False
        self._known_clocks: dict[Place, int] = {}  # clocks stay for ever
        self._creating = Gathering(self._create, most=jobs.MAX_TOGETHER)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        segments: int = SEGMENTS,
        lead_us: int = 2 * SECOND_US,
        keep_us: int = 30 * DAY_US,
        listen_url: str | None = None,
        clock: TimeSource | None = None,
        pool_size: int = 8,
        quota: Quota = Quota(),  # noqa: B008 - frozen
        databases: int = 1,
    ) -> "PostgresStore":
        """Connect to a database whose schema is up to date; CannotStart says why it cannot be used.

        `?pooler=transaction` in the URL says that a pooler is in between; then `listen_url` goes around it.
        """
        url, pooled = split_pooler(url)
        server_clock = ServerClock()
        hints = Hints()
        listen = listen_url or (None if pooled else url)

        def told(words: Iterable[str]) -> None:
            hints.publish(words)
            # children are told by who ended a run, unless that is a process without a node
            for_others = sorted(set(words) - ({port.Hint.GRAPHS} if hints.wakes else set()))
            if for_others:
                channel.notify(HINTS, " ".join(for_others))

        engine = PostgresEngine(
            url,
            pooled=pooled,
            clock=clock,
            server_clock=server_clock,
            notify=told,
            pool_size=pool_size,
        )

        async def say(name: str, payload: str) -> None:
            await engine.execute("SELECT pg_notify($1, $2)", name, payload)

        channel = Channel(listen_url=listen, execute_notify=say, publisher=process_name())
        channel.listen(
            HINTS, lambda words: hints.publish(_known(words)), lambda: hints.publish(list(port.Hint))
        )
        settings = Settings(
            segments=segments, lead_us=lead_us, keep_us=keep_us, quota=quota, databases=databases
        )
        store = cls(engine, settings, hints, clock or server_clock, channel)
        try:
            await store._prepare()
        except BaseException:
            await engine.close()
            raise
        await channel.start()
        return store

    @property
    def hints_arrive(self) -> bool:
        """Whether others' changes are heard of at once; while not, whoever waits for them polls."""
        return self.channel.listening

    async def now(self) -> int:
        async def ask(tx: Any) -> int:
            return tx.now_at  # type: ignore[no-any-return]

        return await self._engine.read(ask)

    async def close(self) -> None:
        await self.channel.close()
        await super().close()

    async def ping(self) -> None:
        async def look(tx: Tx) -> bool:
            return bool((await tx.one("is_read_only"))[0])

        if await self._engine.write(look):
            raise Unavailable("the database is read-only (a standby, or after a failover)")

    async def create_jobs(self, drafts: Sequence[port.JobDraft]) -> list[Job | port.Refused]:
        asks = actor()  # of several requests that share a transaction each has its own
        pairs = [(draft, asks) for draft in drafts]
        if promise() is None:
            return await self._creating.add(pairs)
        with harmless():  # a transaction of its own, with the promise's mark
            return await self._create(pairs)

    async def plan(self, plans: Sequence[ClockPlan]) -> int:
        return await self._engine.write(lambda tx: planning.plan(tx, plans), within_s=LONG_S)

    async def claim(self, request: port.ClaimRequest) -> port.Claim:
        return await self._engine.write(lambda tx: claims.claim(tx, request), hurried=True)

    async def upcoming(self, query: UpcomingQuery) -> UpcomingPage:
        segments = self._settings.segments
        return await self._engine.read(lambda tx: upcoming.upcoming(tx, query, segments, claims.look_ahead))

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settlement]:
        return await self._engine.write(lambda tx: settling.settle(tx, worker, settlements), timed=False)

    async def renew_node(self, node_id: int, kind: str, name: str, lease_us: int) -> None:
        await self._engine.write(
            lambda tx: nodes.renew_node(tx, node_id, kind, name, lease_us),
            within_s=_worth_waiting_s(lease_us),
        )

    async def hold_segments(self, node_id: int, kind: str, name: str, lease_us: int) -> Mapping[int, int]:
        if self._zones_are_old:  # alive, but not among those who plan
            await self.renew_node(node_id, f"{kind}, old zone data", name, lease_us)
            return {}
        segments = self._settings.segments
        return await self._engine.write(
            lambda tx: nodes.hold_segments(tx, segments, node_id, kind, name, lease_us),
            within_s=_worth_waiting_s(lease_us),
        )

    @property
    def plans(self) -> bool:
        """Whether nodes of this process may hold segments: not with older zone data than another process has."""
        return not self._zones_are_old

    async def hold_allotted(
        self, node_id: int, kind: str, name: str, lease_us: int, allotted: Mapping[int, int]
    ) -> Mapping[int, int]:
        if self._zones_are_old:
            return await self.hold_segments(node_id, kind, name, lease_us)
        return await self._engine.write(
            lambda tx: nodes.hold_allotted(tx, node_id, kind, name, lease_us, allotted),
            within_s=_worth_waiting_s(lease_us),
        )

    async def purge(self, history_before_at: int, dead_before_at: int, limit: int) -> bool:
        more = await super().purge(history_before_at, dead_before_at, limit)
        now_at = self.clock.now()
        await self._engine.on_connection(lambda connection: partitions.make_ahead(connection, now_at))
        dropped = await self._engine.on_connection(
            lambda connection: partitions.drop_old(connection, history_before_at),
            within_s=LONG_S,
            bare=True,
        )
        if dropped:
            _log.info("old history dropped", days=dropped)
        return more

    async def tidy(self) -> None:
        await self._engine.on_connection(upkeep.clean, within_s=LONG_S, bare=True)

    async def identity(self) -> ShardIdentity | None:
        """Which shard of which cluster this database is, once it was told."""
        try:
            return identity_in(await self._engine.on_connection(_read_meta))
        except ValueError as error:
            raise CannotStart(f"the database's note of its shard is damaged: {error}") from error

    async def write_identity(self, identity: ShardIdentity) -> None:
        """Tell the database which shard it is; only where that is not known, or to complete the same."""

        async def write(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute("SELECT 1 FROM meta WHERE key = 'schema' FOR UPDATE")
                known = identity_in(await _read_meta(connection))
                if known is None or msgspec.structs.replace(known, complete=True) == identity:
                    await connection.executemany(_SET_META, list(identity.as_meta().items()))

        await self._engine.on_connection(write)

    async def _create(self, asked: Sequence[tuple[port.JobDraft, Actor | None]]) -> list[Job | port.Refused]:
        drafts, actors = [draft for draft, _ in asked], [one for _, one in asked]
        known = await self._make_clocks(drafts)
        return await self._engine.write(
            lambda tx: jobs.create_jobs(tx, self._settings, drafts, known, actors=actors)
        )

    async def _make_clocks(self, drafts: Sequence[port.JobDraft]) -> Mapping[Place, int]:
        """Make the clocks of new rules in a commit of their own, so that importers do not wait for each other's jobs."""
        segments = self._settings.segments
        rules = {
            (rule.key, segment_of(draft.id, segments)): rule
            for draft in drafts
            if (rule := draft.spec.rule) is not None
        }
        new = {place: rule for place, rule in rules.items() if place not in self._known_clocks}
        if new:
            if len(self._known_clocks) + len(new) > _MOST_KNOWN_CLOCKS:
                self._known_clocks = {}
            self._known_clocks |= await self._engine.write(lambda tx: make_clocks(tx, new))
        return self._known_clocks

    async def _prepare(self) -> None:
        """Check whose database this is, and make what every process needs."""
        found = await self._engine.on_connection(schema.read_status)
        schema.check(found)
        meta = await self._engine.on_connection(self._introduce)
        if int(meta["segments"]) != self._settings.segments:
            raise CannotStart(
                f"the database was made with {meta['segments']} segments, the settings say"
                f" {self._settings.segments}; keep them alike"
            )
        self._report_key = bytes.fromhex(meta["report_key"])
        await self._look_at_zones(meta["tzdata"])
        segments = self._settings.segments

        async def make(connection: Any) -> None:
            await connection.execute(_ADD_SEGMENTS, segments)
            await partitions.make_ahead(connection, self.clock.now())

        async def mend() -> None:
            now_at = await self.now()
            await self._engine.on_connection(lambda connection: partitions.make_ahead(connection, now_at))

        await self.now()  # sets the clock
        await self._engine.on_connection(_warn_of_loss)
        self._engine.mend = mend
        await self._engine.on_connection(make)

    async def _introduce(self, connection: Any) -> dict[str, str]:
        """Say what the first process says of itself; answers what all go by."""
        own = [
            ("segments", str(self._settings.segments)),
            ("tzdata", tzdata_version()),
            ("report_key", new_key().hex()),
        ]
        await connection.executemany(_ADD_META, own)
        return await _read_meta(connection)

    async def _look_at_zones(self, newest: str) -> None:
        """Nodes with older zone data than another has must not plan: they would fire at other times."""
        own = tzdata_version()
        if own < newest:
            self._zones_are_old = True
            _log.error(
                "this node's zone data is older than another's: it does not plan", own=own, newest=newest
            )
        elif own > newest:

            async def tell(connection: Any) -> None:
                await connection.execute(
                    "UPDATE meta SET value = $1 WHERE key = 'tzdata' AND value < $1", own
                )

            await self._engine.on_connection(tell)


_ADD_META = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_SET_META = (
    "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_ADD_SEGMENTS = (
    "INSERT INTO segments (segment) SELECT generate_series(0, $1::integer - 1) ON CONFLICT DO NOTHING"
)


def split_pooler(url: str) -> tuple[str, bool]:
    """A URL without our own parameter, and whether a pooler shares connections between transactions."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query)
    pooler = dict(query).get("pooler")
    if pooler not in (None, "transaction", "none"):
        raise CannotStart(f"store.url: pooler={pooler} is not known; it can be transaction or none")
    rest = urlencode([(name, value) for name, value in query if name != "pooler"])
    return urlunsplit(parts._replace(query=rest)), pooler == "transaction"


def _worth_waiting_s(lease_us: int) -> float:
    """A renewal that is answered after the lease has run out is worth nothing; trying again may be."""
    return min(WRITE_S, lease_us / SECOND_US)


def _known(words: str) -> list[str]:
    known = set(port.Hint)
    return [word for word in words.split() if word in known]


async def _warn_of_loss(connection: Any) -> None:
    """What was answered must survive a crash of the server; two of its settings can take that away."""
    for name in ("fsync", "synchronous_commit"):
        if await connection.fetchval("SELECT current_setting($1)", name) == "off":
            _log.warning("the database may lose what it has confirmed: a setting is off", setting=name)


async def _read_meta(connection: Any) -> dict[str, str]:
    return dict(await connection.fetch("SELECT key, value FROM meta"))
