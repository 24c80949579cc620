"""What `kafka://` URLs say: servers, account, the name of the topics, how they are made, and the client's settings.

    kafka://user:password@host:9092,host:9092/job-triggers?partitions=12&replicas=3&security.protocol=SASL_SSL

Settings of the client that are passed on are those about security and its name; what delivery rests on is not for
a URL to change.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from hourhand.core.model import Priority
from hourhand.errors import Invalid

DEFAULT_TOPICS = "job-triggers"
DEFAULT_PARTITIONS = 12
DEFAULT_RETENTION_HOURS = 24

_PORT = 9_092
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_PASSED_ON = re.compile(r"(ssl|sasl)\.[a-z.]+|security\.protocol|client\.(id|rack)")
_NUMBERS = {"partitions": (1, 10_000), "replicas": (1, 100), "retention_hours": (1, 24 * 366)}
_FULL_MESSAGES = "full_messages"
_SHAPE = "kafka://host:9092/job-triggers"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAddress:
    """Where the topics are."""

    servers: str
    topics: str = DEFAULT_TOPICS
    partitions: int = DEFAULT_PARTITIONS
    replicas: int | None = None  # the servers' own default
    retention_hours: int = DEFAULT_RETENTION_HOURS
    full_messages: bool = False  # whether messages tell target and payload too, for others who read them
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def topic(self, run_class: int) -> str:
        """The topic of a class of runs."""
        return f"{self.topics}.{Priority(run_class).name.lower()}"

    @property
    def all_topics(self) -> dict[str, int]:
        """Each topic with its class."""
        return {self.topic(run_class): int(run_class) for run_class in Priority}

    def group(self, run_class: int, pool: str) -> str:
        """The consumer group of a pool's workers for a class."""
        return f"{self.topic(run_class)}.{pool}"

    def configuration(self) -> dict[str, str | int | float | bool]:
        """What every client needs to connect."""
        return {
            "bootstrap.servers": self.servers,
            "client.id": "hourhand",
            "log_level": 0,  # what matters comes as an error; the rest would go to stderr
            "allow.auto.create.topics": False,
            "socket.timeout.ms": 3_000,
            "socket.keepalive.enable": True,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "topic.metadata.refresh.interval.ms": 10_000,
            **self.client,
        }


def parse_address(url: str) -> KafkaAddress:
    """The address that a URL names; Invalid says what is wrong, and never a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Invalid(f"a Kafka URL looks like {_SHAPE}") from None
    if parts.scheme != "kafka":
        raise Invalid(f"a Kafka URL begins with kafka://, such as {_SHAPE}")
    account, _, hosts = parts.netloc.rpartition("@")
    topics = parts.path.strip("/") or DEFAULT_TOPICS
    if not _NAME.fullmatch(topics):
        raise Invalid(
            "the topics' name in a Kafka URL consists of letters, digits, dots, dashes and underscores"
        )
    own, client = _options(parts.query)
    return KafkaAddress(servers=_servers(hosts), topics=topics, client={**_account(account), **client}, **own)


def _servers(hosts: str) -> str:
    found = [host for host in hosts.split(",") if host]
    if not found:
        raise Invalid(f"a Kafka URL names its servers, such as {_SHAPE}")
    return ",".join(host if re.search(r":\d+$", host) else f"{host}:{_PORT}" for host in found)


def _account(text: str) -> dict[str, str]:
    if not text:
        return {}
    user, _, password = text.partition(":")
    return {
        "sasl.username": unquote(user),
        "sasl.password": unquote(password),
        "sasl.mechanism": "PLAIN",
        "security.protocol": "SASL_SSL",
    }


def _options(query: str) -> tuple[dict[str, Any], dict[str, str]]:
    own: dict[str, Any] = {}
    client: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _NUMBERS:
            low, high = _NUMBERS[name]
            if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
                raise Invalid(f"{name} in a Kafka URL is a number from {low} to {high:,}")
            own[name] = int(value)
        elif name == _FULL_MESSAGES:
            if value not in ("true", "false"):
                raise Invalid(f"{name} in a Kafka URL is true or false")
            own[name] = value == "true"
        elif _PASSED_ON.fullmatch(name):
            client[name] = value
        else:
            known = f"{', '.join(_NUMBERS)}, {_FULL_MESSAGES}, security.protocol, client.id, client.rack, ssl.… and sasl.…"
            raise Invalid(f"{name[:80]!r} is not an option of a Kafka URL; there are {known}")
    return own, client
