"""The topics: made where they are missing, and looked at by those who ask whether all is well.

Calls here block, so they are made from threads or commands. Offers and feeds also make what is missing; adding
partitions, which moves jobs to others, is left to `hourhand migrate up`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from hourhand.errors import Unavailable
from hourhand.queues.kafka.address import KafkaAddress

_PATIENCE_S = 10.0
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """What is there of one topic, and what of it is wrong."""

    name: str
    partitions: int  # 0: there is no such topic
    finding: str | None = None


def topic_states(address: KafkaAddress, patience_s: float = _PATIENCE_S) -> list[TopicState]:
    """Each topic as the servers see it; Unavailable while they do not answer."""
    return [_state(address, *pair) for pair in _partitions(_admin(address), address, patience_s).items()]


def ensure_topics(address: KafkaAddress, *, grow: bool = False, patience_s: float = _PATIENCE_S) -> list[str]:
    """Make what is missing, and with `grow` add partitions up to as many as were asked for; tells what it did."""
    admin = _admin(address)
    there = _partitions(admin, address, patience_s)
    done = _make(admin, address, [name for name, count in there.items() if count == 0], patience_s)
    few = {name: count for name, count in there.items() if 0 < count < address.partitions}
    return done + (_grow(admin, address, few, patience_s) if grow else [])


def away(address: KafkaAddress, error: Exception) -> Unavailable:
    """What people are told of a client's error."""
    detail = error.args[0] if error.args else error
    said = detail.str() if isinstance(detail, KafkaError) else str(detail)
    return Unavailable(f"Kafka at {address.servers}: {said}")


def _admin(address: KafkaAddress) -> AdminClient:
    return AdminClient(address.configuration())


def _partitions(admin: AdminClient, address: KafkaAddress, patience_s: float) -> dict[str, int]:
    """How many partitions each topic has."""
    found = {}
    for name in address.all_topics:
        try:
            topic = admin.list_topics(name, timeout=patience_s).topics[name]
        except KafkaException as error:
            raise away(address, error) from error
        missing = topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        if topic.error is not None and not missing:
            raise away(address, KafkaException(topic.error))
        found[name] = 0 if missing else len(topic.partitions)
    return found


def _state(address: KafkaAddress, name: str, count: int) -> TopicState:
    finding = None
    if count == 0:
        finding = f"the topic {name} does not exist: `hourhand migrate up` makes it"
    elif count < address.partitions:
        finding = f"{name} has {count} partitions, {address.partitions} are asked for: `hourhand migrate up` adds them"
    return TopicState(name=name, partitions=count, finding=finding)


def _make(admin: AdminClient, address: KafkaAddress, names: Sequence[str], patience_s: float) -> list[str]:
    if not names:
        return []
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(address.retention_hours * _HOUR_MS),
        "message.timestamp.type": "LogAppendTime",  # a window of time is then a window of the log
    }
    wanted = [
        NewTopic(
            name, address.partitions, -1 if address.replicas is None else address.replicas, config=config
        )
        for name in names
    ]
    made = []
    for name, answer in admin.create_topics(wanted, operation_timeout=patience_s).items():
        try:
            answer.result(patience_s)
            made.append(f"topic {name}")
        except (KafkaException, TimeoutError) as error:
            if not _is(error, KafkaError.TOPIC_ALREADY_EXISTS):  # somebody was quicker
                raise away(address, error) from error
    return made


def _grow(admin: AdminClient, address: KafkaAddress, few: dict[str, int], patience_s: float) -> list[str]:
    if not few:
        return []
    grown = []
    wanted = [NewPartitions(name, address.partitions) for name in few]
    for name, answer in admin.create_partitions(wanted, operation_timeout=patience_s).items():
        try:
            answer.result(patience_s)
        except (KafkaException, TimeoutError) as error:
            raise away(address, error) from error
        grown.append(f"topic {name}: {few[name]} to {address.partitions} partitions")
    return grown


def _is(error: Exception, code: int) -> bool:
    detail = error.args[0] if error.args else None
    return isinstance(detail, KafkaError) and detail.code() == code
