"""Runs offered through Kafka: a topic for each class, keyed by job, and a consumer group for each pool."""

from hourhand.errors import CannotStart

try:
    import confluent_kafka  # noqa: F401 - only to say in words that it is missing
except ModuleNotFoundError as error:
    raise CannotStart(
        "a kafka:// queue needs a client that is not installed: pip install 'hourhand[kafka]'"
    ) from error

from hourhand.queues.kafka.address import KafkaAddress, parse_address
from hourhand.queues.kafka.feed import KafkaFeed
from hourhand.queues.kafka.offers import KafkaOffers
from hourhand.queues.kafka.topics import TopicState, ensure_topics, topic_states
from hourhand.queues.kafka.window import WindowPage, read_window

__all__ = [
    "KafkaAddress",
    "KafkaFeed",
    "KafkaOffers",
    "TopicState",
    "WindowPage",
    "ensure_topics",
    "parse_address",
    "read_window",
    "topic_states",
]
