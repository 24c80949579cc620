"""The pure parts of the Kafka queue: what URLs say, and how far a partition may be committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.errors import Invalid
from hourhand.queues.kafka import offsets, parse_address
from hourhand.queues.kafka.offsets import Offsets


def test_a_short_url_has_our_defaults() -> None:
    address = parse_address("kafka://broker")
    assert address.servers == "broker:9092"
    assert address.all_topics == {"job-triggers.high": 0, "job-triggers.medium": 1, "job-triggers.low": 2}
    assert address.group(0, "gpu") == "job-triggers.high.gpu"
    assert address.replicas is None


def test_a_long_url_says_everything() -> None:
    address = parse_address(
        "kafka://me:p%40ss@a:1,b,[::1]:3/team.jobs?partitions=5&replicas=2&retention_hours=3&full_messages=true&sasl.mechanism=SCRAM-SHA-512"
    )
    assert address.servers == "a:1,b:9092,[::1]:3"
    assert address.topic(2) == "team.jobs.low"
    assert (address.partitions, address.replicas, address.retention_hours) == (5, 2, 3)
    assert address.full_messages
    configuration = address.configuration()
    assert configuration["sasl.username"] == "me"
    assert configuration["sasl.password"] == "p@ss"
    assert configuration["sasl.mechanism"] == "SCRAM-SHA-512"
    assert configuration["security.protocol"] == "SASL_SSL"
    assert "p@ss" not in repr(address)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://broker", "begins with kafka://"),
        ("kafka://", "names its servers"),
        ("kafka://broker/a b", "letters, digits"),
        ("kafka://broker?partitions=0", "partitions in a Kafka URL is a number from 1"),
        ("kafka://broker?replicas=two", "replicas in a Kafka URL is a number from 1"),
        ("kafka://broker?full_messages=some", "full_messages in a Kafka URL is true or false"),
        ("kafka://broker?acks=0", "'acks' is not an option"),
        ("kafka://me:secret@broker?enable.idempotence=false", "'enable.idempotence' is not an option"),
        ("kafka://[::1", "looks like kafka://host:9092/job-triggers"),
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_password(url: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as raised:
        parse_address(url)
    assert "secret" not in raised.value.message


@given(st.lists(st.booleans(), max_size=30), st.randoms(use_true_random=False))
def test_what_is_committed_leaves_nothing_out(concerns: list[bool], random: object) -> None:
    """After acks in any order: everything before the position is done, and it is as far as it can be."""
    tracked = Offsets()
    held = set()
    for offset, ours in enumerate(concerns, start=100):
        tracked.read(offset, done=not ours)
        if ours:
            held.add(offset)
    acks = sorted(held)
    random.shuffle(acks)  # type: ignore[attr-defined]
    position = tracked.position()
    for offset in acks:
        tracked.ack(offset)
        held.discard(offset)
        position = tracked.position() or position
        assert position == min(held, default=100 + len(concerns))


def test_a_position_is_told_once() -> None:
    tracked = Offsets()
    assert tracked.position() is None
    tracked.read(5)
    assert tracked.position() == 5
    assert tracked.position() is None
    tracked.ack(5)
    tracked.ack(5)
    assert tracked.position() == 6


def test_a_message_that_nobody_acknowledges_does_not_hold_the_rest_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offsets, "MOST_BEHIND", 10)
    tracked = Offsets()
    for offset in range(30):
        tracked.read(offset)
        if offset:
            tracked.ack(offset)
    assert tracked.position() == 30
