"""`hourhand migrate`: the schema of each database by the store's own migrations, and the topics of a Kafka."""

import asyncio
from collections.abc import Callable, Sequence

from hourhand.cli.launch import SchemaState
from hourhand.config import Settings
from hourhand.core.url import masked_store_url
from hourhand.errors import HourhandError
from hourhand.stores.postgres import schema
from hourhand.stores.postgres.store import split_pooler
from hourhand.wiring.databases import require_postgres
from hourhand.wiring.kafka import make_topics, topic_schemas


def migrations(settings: Settings) -> Sequence[SchemaState]:
    """How far each database is, and Kafka's topics where runs go through one; all of them must answer."""
    require_postgres(settings, "migrate")
    return [*asyncio.run(_states(settings.store.databases)), *topic_schemas(settings)]


def migrate(settings: Settings, applied: Callable[[str, str], None]) -> None:
    """Bring each up to date, one after the other."""
    require_postgres(settings, "migrate")
    asyncio.run(_up(settings.store.databases, applied))
    make_topics(settings, applied)


async def _states(urls: Sequence[str]) -> list[SchemaState]:
    states = []
    for url in urls:
        name = masked_store_url(url)
        try:
            status = await schema.status(split_pooler(url)[0])
        except HourhandError as error:
            raise _named(name, error) from error
        states.append(
            SchemaState(database=name, version=status.version, newest=status.newest, pending=status.pending)
        )
    return states


async def _up(urls: Sequence[str], applied: Callable[[str, str], None]) -> None:
    for url in urls:
        name = masked_store_url(url)
        try:
            for step in await schema.up(split_pooler(url)[0]):
                applied(name, step)
        except HourhandError as error:
            raise _named(name, error) from error


def _named(database: str, error: HourhandError) -> HourhandError:
    """The same error, saying which database."""
    return type(error)(f"{database}: {error.message}")
