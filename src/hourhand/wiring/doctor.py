"""`hourhand doctor`: connects to every server that the settings name, and says of each how it is and what would help.

Changes nothing but a lease of its own, which it gives back. A look that fails is a finding, not an error, so that one
server's absence does not hide another's.
"""

import asyncio

from hourhand.cli.launch import Examined
from hourhand.clock import SystemClock, monotonic_us
from hourhand.config import Settings
from hourhand.core.url import masked_store_url
from hourhand.errors import CannotStart, HourhandError
from hourhand.ids import IdSource
from hourhand.leases.board import Away, Forgotten
from hourhand.ports.store import LeaseLost
from hourhand.wiring.auth_doctor import examine_auth, examine_passwords, examine_secrets
from hourhand.wiring.leasing import LeaseServer
from hourhand.wiring.limiting import RequestCounter
from hourhand.wiring.queues import broker_urls, redis_address, refuse_broker, scheme_of
from hourhand.wiring.store_doctor import examine_databases, examine_file


def examine(settings: Settings) -> list[Examined]:
    """One line for each server, in the order of the settings."""
    return asyncio.run(_examine(settings))


async def _examine(settings: Settings) -> list[Examined]:
    return [
        *await _servers(settings),
        *examine_passwords(settings),
        *examine_secrets(settings),
        *await examine_auth(settings),
    ]


async def _servers(settings: Settings) -> list[Examined]:
    if not settings.store.databases[0].startswith("postgres"):
        return [*await examine_file(settings), *_needless_broker(settings), *await _limits(settings)]
    found = await examine_databases(settings)
    try:
        found += [await _broker(url, settings) for url in broker_urls(settings)]
    except CannotStart as error:
        found.append(Examined(what="queue", where="", finding=error.message, fix="see the message"))
    if settings.leases.url:
        found.append(await _leases(settings))
    return [*found, *await _limits(settings)]


def _needless_broker(settings: Settings) -> list[Examined]:
    try:
        refuse_broker(settings)
    except CannotStart as error:
        fix = "leave queue.url out, or set store.url to a postgres:// URL"
        return [Examined(what="queue", where="", finding=error.message, fix=fix)]
    return []


async def _broker(url: str, settings: Settings) -> Examined:
    shown = masked_store_url(url)
    try:
        if scheme_of(url) == "kafka":
            return await _kafka(shown, settings)
        from hourhand.queues.redis import check

        seen = await check(redis_address(url, settings, 0))
        return Examined(what="queue", where=shown, seen=seen)
    except HourhandError as error:
        fix = "check the address, or start the server; until then runs come late by up to two seconds"
        return Examined(what="queue", where=shown, finding=error.message, fix=fix)


async def _kafka(shown: str, settings: Settings) -> Examined:
    from hourhand.wiring.kafka import topic_findings

    findings = await asyncio.to_thread(topic_findings, settings)
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        return Examined(what="queue", where=shown, finding=f"{findings[0]}{more}", fix="hourhand migrate up")
    return Examined(what="queue", where=shown, seen="topics as they should be")


async def _leases(settings: Settings) -> Examined:
    """Take a lease and give it back, on a board that no cluster has and all doctors share."""
    shown = masked_store_url(settings.leases.url)
    try:
        server = LeaseServer(settings)
    except CannotStart as error:
        return Examined(what="leases", where=shown, finding=error.message, fix="see the message")
    try:
        says = await server.ask()
        board, node_id, began_us = server.board("doctor"), IdSource(SystemClock()).node_id(), monotonic_us()
        await board.enter(node_id, ())
        await board.renew(node_id)
        await board.leave(node_id)
    except Away as error:
        fix = "check the address, or start the server; until then the store keeps the leases"
        return Examined(what="leases", where=shown, finding=str(error), fix=fix)
    except (Forgotten, LeaseLost):
        fix = "see whether it evicts keys, was emptied, or is too slow for scheduler.lease"
        return Examined(what="leases", where=shown, finding="it gave a lease and lost it at once", fix=fix)
    finally:
        await server.close()
    took_ms = (monotonic_us() - began_us) / 1000
    return Examined(what="leases", where=shown, seen=f"{says}, a lease and back in {took_ms:.0f} ms")


async def _limits(settings: Settings) -> list[Examined]:
    """Count once where requests are counted, if not in the store."""
    if not settings.limits.url:
        return []
    shown = masked_store_url(settings.limits.url)
    try:
        counter = RequestCounter(settings)
    except CannotStart as error:
        return [Examined(what="limits", where=shown, finding=error.message, fix="see the message")]
    try:
        return [Examined(what="limits", where=shown, seen=await counter.ask())]
    except HourhandError as error:
        fix = "check the address, or start the server; until then requests are not limited"
        return [Examined(what="limits", where=shown, finding=error.message, fix=fix)]
    finally:
        await counter.close()
