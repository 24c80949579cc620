"""The table of all settings: key, default, range, and one line of help, as the fields of frozen records.

A field's name carries its unit; its key in files is `Key.name`. The key `horizon` of `[scheduler]` is
`HOURHAND_SCHEDULER_HORIZON` in the environment. Internal timings are constants elsewhere, not settings.
"""

import re
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from hourhand.config.kinds import (
    Duration,
    KeysPlace,
    Kind,
    LeasesUrl,
    Listen,
    OneOf,
    OptionalListen,
    Rate,
    RedisUrl,
    Secrets,
    SecretUrl,
    Size,
    StoreUrl,
    StoreUrls,
    Switch,
    Text,
    TokenSecrets,
    Whole,
    Words,
    is_network,
    split_listen,
)
from hourhand.core.bucket import Limit
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import DEFAULT_POOL, MAX_PAYLOAD_BYTES
from hourhand.core.plan import MAX_LEAD_US
from hourhand.core.quota import MOST, MOST_RUNS

ENVIRONMENT_PREFIX = "HOURHAND_"
CLIENT_VARIABLES = (
    "HOURHAND_URL",
    "HOURHAND_TOKEN",
    "HOURHAND_TENANT",
    "HOURHAND_DEBUG",
)  # read by client and CLI
AUTH_MODES = ("none", "tokens", "jwt")
LEAST_DEAD_KEEP_US = 30 * DAY_US
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_BROKER_URL = re.compile(r"(kafka|rediss?)://[^\s/?#]+([/?]\S*)?")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:.]+\](:\d{1,5})?")
_HTTP_URL = re.compile(r"https?://[^\s/]+(/\S*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What there is to know about one setting."""

    section: str
    name: str
    attribute: str
    kind: Kind
    default: object
    help: str
    secret: bool = False

    @property
    def path(self) -> str:
        """`section.name`."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"{ENVIRONMENT_PREFIX}{self.section}_{self.name}".upper()


def _setting(kind: Kind, default: object, help: str, *, key: str = "", secret: bool = False) -> Any:
    value = kind.parse(default)
    return field(
        default=value, repr=not secret, metadata={"kind": kind, "help": help, "key": key, "secret": secret}
    )


_BROKER = Text(
    allowed="empty, or a URL such as kafka://host:9092 or redis://host:6379",
    matches=lambda text: not text or _BROKER_URL.fullmatch(text) is not None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where the API and the page answer."""

    listen: str = _setting(Listen(), "127.0.0.1:7070", "address of the API; port 0 takes any free one")
    url: str = _setting(
        Text(
            allowed="empty, or a URL such as https://hourhand.example.com",
            matches=lambda text: not text or _HTTP_URL.fullmatch(text) is not None,
        ),
        "",
        "how targets reach the API, for reports; empty: http:// and the address",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        Words(allowed="addresses or networks, such as 10.1.2.3 or 10.1.0.0/16", matches=is_network),
        (),
        "proxies whose X-Forwarded-For and X-Forwarded-Proto are believed",
    )
    cors: tuple[str, ...] = _setting(
        Words(
            allowed="origins, such as https://console.example.com; none of them a star, a path or in capitals",
            matches=lambda word: _ORIGIN.fullmatch(word) is not None,
        ),
        (),
        "other sites whose pages may use the API; they send a token, cookies are never taken",
    )

    @property
    def host(self) -> str:
        """The host to bind, without brackets."""
        return split_listen(self.listen)[0]

    @property
    def port(self) -> int:
        """The port to bind."""
        return split_listen(self.listen)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where jobs and runs are kept."""

    url: str = _setting(
        StoreUrl(),
        "sqlite:///./hourhand.db",
        "the store; sqlite:/// and a path (a fourth slash: absolute) for `up`, postgres:// for a cluster",
        secret=True,
    )
    shards: tuple[str, ...] = _setting(
        StoreUrls(),
        (),
        "several PostgreSQL databases that share the jobs, instead of store.url; order and number stay",
        secret=True,
    )
    listen_url: tuple[str, ...] = _setting(
        StoreUrls(),
        (),
        "for LISTEN, where store.url is a pooler; one per database, in their order; empty: the same",
        secret=True,
    )

    @property
    def databases(self) -> tuple[str, ...]:
        """The URL of each database, in the order of the shards."""
        return self.shards or (self.url,)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """How workers hear of runs that are due."""

    url: str = _setting(
        _BROKER,
        "",
        "a broker that runs are offered through, kafka:// or redis://; empty: workers ask the store",
        secret=True,
    )
    fast_url: str = _setting(
        _BROKER, "", "another one, for jobs whose durability is fire_and_forget", secret=True
    )
    route: str = _setting(
        OneOf(words=("durability", "url", "fast_url")),
        "durability",
        "which of two brokers an offer goes through: as its job says, or all through one of them",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Who keeps the list of living schedulers."""

    url: str = _setting(
        LeasesUrl(),
        "",
        "redis:// or etcd://host:2379,host2:2379: where a cluster's schedulers share the segments; "
        "empty: in the store",
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """How runs are planned."""

    segments: int = _setting(
        Whole(low=1, high=4_096), 64, "parts the jobs are divided into; fixed for a store"
    )
    horizon_us: int = _setting(
        Duration(low_us=10 * SECOND_US, high_us=10 * MINUTE_US), "60s", "how far ahead runs are written"
    )
    lead_us: int = _setting(
        Duration(low_us=100_000, high_us=MAX_LEAD_US),
        "2s",
        "how long before its time a worker may take a run; edits take effect this much later",
    )
    lease_us: int = _setting(
        Duration(low_us=SECOND_US, high_us=MINUTE_US), "3s", "after how long a silent scheduler is replaced"
    )
    misfire_grace_us: int = _setting(
        Duration(low_us=0, high_us=DAY_US), "60s", "how late a run may be, for jobs that do not say"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How runs are executed."""

    concurrency: int = _setting(Whole(low=1, high=200_000), 1_000, "runs in hand at once")
    processes: int = _setting(
        Whole(low=1, high=64), 1, "processes of `hourhand worker`, each with that concurrency"
    )
    import_modules: tuple[str, ...] = _setting(
        Words(
            allowed="names of modules, such as app.tasks",
            matches=lambda word: _MODULE.fullmatch(word) is not None,
        ),
        (),
        "modules whose job functions this worker serves",
        key="import",
    )
    pools: tuple[str, ...] = _setting(
        Words(allowed="at least one name of a pool", matches=lambda word: 0 < len(word) <= 200, fewest=1),
        (DEFAULT_POOL,),
        "pools whose runs this worker takes",
    )
    drain_us: int = _setting(
        Duration(low_us=0, high_us=HOUR_US), "30s", "how long running runs may take to finish at a stop"
    )
    shell: bool = _setting(Switch(), False, "whether this worker runs commands (shell targets)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings:
    """How targets are called."""

    allow_hosts: tuple[str, ...] = _setting(
        Words(
            allowed="hosts, networks or host:port, such as intranet.example.com or 10.1.0.0/16",
            matches=lambda word: bool(word) and "://" not in word,
        ),
        (),
        "hosts that may be called although they are not public",
    )
    signing_secret: tuple[str, ...] = _setting(
        Secrets(), (), "signs HTTP calls; two while one replaces the other", secret=True
    )
    timeout_us: int = _setting(
        Duration(low_us=1_000, high_us=HOUR_US), "30s", "of one HTTP exchange, for targets that do not say"
    )


_NAME_OF_PARTY = Text(
    allowed="empty, or what the claim has to be, at most 500 characters",
    matches=lambda text: len(text) <= 500 and text.isprintable() and text == text.strip(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """How callers of the API are recognised."""

    mode: str = _setting(
        OneOf(words=AUTH_MODES),
        "none",
        "none: nobody is asked, for loopback only; tokens: by API tokens; jwt: by JWTs too",
    )
    secret: tuple[str, ...] = _setting(
        TokenSecrets(),
        (),
        "checks JWTs that are signed with HS256; two while one replaces the other",
        secret=True,
    )
    jwks: str = _setting(
        KeysPlace(), "", "the published keys that check JWTs signed with RS256, ES256 or EdDSA"
    )
    issuer: str = _setting(_NAME_OF_PARTY, "", "what the claim iss of a JWT has to be")
    audience: str = _setting(_NAME_OF_PARTY, "", "what the claim aud of a JWT has to be")

    @property
    def asks(self) -> bool:
        """Whether anybody is asked who they are."""
        return self.mode != "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What is refused."""

    payload_bytes: int = _setting(
        Size(low=0, high=16 << 20), MAX_PAYLOAD_BYTES, "largest payload of a job", key="payload"
    )
    min_interval_us: int = _setting(
        Duration(low_us=1_000, high_us=DAY_US), "1s", "shortest time between two runs of a job"
    )
    requests: Limit | None = _setting(  # noqa: RUF009 - a field like the others
        Rate(), "1000/10s", "requests of one user, where users are known; empty: no limit"
    )
    url: str = _setting(
        RedisUrl(), "", "who counts the requests for all API processes; empty: the store", secret=True
    )
    jobs_per_tenant: int = _setting(
        Whole(low=0, high=MOST), 0, "jobs of a tenant for which no quota is set; 0: no limit"
    )
    runs_per_minute: int = _setting(
        Whole(low=0, high=MOST_RUNS), 0, "runs a minute of such a tenant; 0: no limit"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """How long is remembered what happened."""

    keep_us: int = _setting(
        Duration(low_us=HOUR_US, high_us=3_660 * DAY_US), "30d", "how long finished runs are kept"
    )

    @property
    def dead_keep_us(self) -> int:
        """Dead letters wait for somebody, so a short history does not take them along."""
        return max(self.keep_us, LEAST_DEAD_KEEP_US)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """Who is told when something is wrong."""

    deadman_url: str = _setting(
        SecretUrl(
            allowed="empty, or a URL such as https://hc.example.com/ping/123",
            matches=lambda text: not text or _HTTP_URL.fullmatch(text) is not None,
        ),
        "",
        "asked by GET after each audit that finds nothing; silence means trouble; {shard}: which database",
        secret=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What is told about it."""

    log: str = _setting(
        OneOf(words=("debug", "info", "warning", "error")), "info", "the least serious line that is logged"
    )
    listen: str = _setting(
        OptionalListen(),
        "",
        "where a scheduler or worker tells /metrics, /healthz and /readyz; empty: nowhere",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator decides, read once."""

    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    queue: QueueSettings = QueueSettings()
    leases: LeaseSettings = LeaseSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    worker: WorkerSettings = WorkerSettings()
    targets: TargetSettings = TargetSettings()
    auth: AuthSettings = AuthSettings()
    limits: LimitSettings = LimitSettings()
    history: HistorySettings = HistorySettings()
    alerts: AlertSettings = AlertSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `up` is asked beyond the settings."""

    demo: bool = True
    open: bool = False


@cache
def keys() -> tuple[Key, ...]:
    """Every setting there is, in the order of the records."""
    found = []
    for section, record in _sections():
        for one in fields(record):
            kind: Kind = one.metadata["kind"]
            found.append(
                Key(
                    section=section,
                    name=one.metadata["key"] or one.name.removesuffix("_us"),
                    attribute=one.name,
                    kind=kind,
                    default=one.default,
                    help=one.metadata["help"],
                    secret=one.metadata["secret"],
                )
            )
    return tuple(found)


def build(values: dict[str, object]) -> Settings:
    """Settings from values by key path; what is missing has its default."""
    sections = {}
    for section, record in _sections():
        known = [key for key in keys() if key.section == section and key.path in values]
        sections[section] = record(**{key.attribute: values[key.path] for key in known})
    return Settings(**sections)


def sqlite_url(path: str) -> str:
    """The store URL of a file, as `--data FILE` means it."""
    return f"sqlite:///{path}"


def _sections() -> list[tuple[str, Any]]:
    return [(section.name, type(section.default)) for section in fields(Settings)]
