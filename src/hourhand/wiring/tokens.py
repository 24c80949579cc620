"""`hourhand token create --direct`: a token into the store that the settings name, without a server."""

import asyncio
from typing import Any

from hourhand.clock import Clock, SystemClock
from hourhand.config import Settings, is_postgres
from hourhand.core.access import LOCAL
from hourhand.errors import AlreadyRuns, Unavailable
from hourhand.ids import IdSource
from hourhand.ports.acting import Actor, acting_for
from hourhand.ports.store import Store
from hourhand.services.tokens import Tokens, TokenWish
from hourhand.telemetry import configure_logging
from hourhand.web.routes.tokens import token_answer
from hourhand.wiring.parts import open_store


def create_token(settings: Settings, wish: TokenWish, *, dry_run: bool) -> dict[str, Any]:
    """Make it, and answer as the API would. A file must be nobody's at the time; a database may be in use."""
    configure_logging(settings.telemetry.log)
    if settings.store.shards or is_postgres(settings.store.url):
        return asyncio.run(_in_databases(settings, wish, dry_run))
    return asyncio.run(_in_file(settings, wish, dry_run))


async def _in_file(settings: Settings, wish: TokenWish, dry_run: bool) -> dict[str, Any]:
    clock = SystemClock()
    try:
        store = open_store(settings, clock)
    except AlreadyRuns as error:
        raise AlreadyRuns(
            "a process already runs on this file, and only that one may write to it: leave out --direct and "
            "ask it, with a token of an admin in HOURHAND_TOKEN; or stop it for a moment"
        ) from error
    try:
        return await _create(store, clock, wish, dry_run)
    finally:
        await store.close()


async def _in_databases(settings: Settings, wish: TokenWish, dry_run: bool) -> dict[str, Any]:
    from hourhand.wiring.databases import (
        Databases,
        require_postgres,
    )  # here, since its driver is for a cluster
    from hourhand.wiring.life import Ending

    require_postgres(settings, "token create --direct")
    databases = Databases(settings, Ending())
    try:
        if not await databases.open_once():
            raise Unavailable("the database cannot be reached")
        return await _create(databases.front, databases.clock, wish, dry_run)
    finally:
        await databases.close()


async def _create(store: Store, clock: Clock, wish: TokenWish, dry_run: bool) -> dict[str, Any]:
    tokens = Tokens(store=store, ids=IdSource(clock), clock=clock)
    with acting_for(Actor(subject=LOCAL.subject, via=LOCAL.via)):
        made = await tokens.create(LOCAL, wish, dry_run=dry_run)
    answer = {**token_answer(made.token, clock.now()), "token": made.text}
    return {**answer, "dry_run": True} if dry_run else answer
