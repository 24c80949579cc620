"""What `hourhand doctor` says of who may come in: keys of JWTs, passwords of servers, and where targets report to."""

from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from hourhand.cli.launch import Examined
from hourhand.cli.text import plural
from hourhand.clock import monotonic_us
from hourhand.config import Settings
from hourhand.config.kinds import is_loopback
from hourhand.core.secrecy import is_common_password
from hourhand.core.signature import parse_secret
from hourhand.core.url import masked_store_url
from hourhand.errors import CannotStart
from hourhand.wiring.identity import check_identity, jwt_adapter


async def examine_auth(settings: Settings) -> list[Examined]:
    """How callers would be recognised; nothing where nobody is asked."""
    found = list(_report_address(settings))
    if settings.auth.mode != "jwt":
        return found
    if settings.auth.secret:
        count = plural(len(settings.auth.secret), "secret")
        found.append(
            Examined(what="auth", where="auth.secret", seen=f"HS256, {count} without an obvious weakness")
        )
    return [*found, await _published_keys(settings)] if settings.auth.jwks else found


def examine_passwords(settings: Settings) -> Iterator[Examined]:
    """Servers on other machines whose password is one that everybody tries first."""
    given = [("store", url) for url in settings.store.databases]
    given += [
        ("queue", settings.queue.url),
        ("queue", settings.queue.fast_url),
        ("leases", settings.leases.url),
    ]
    for what, url in given:
        if _has_common_password(url):
            yield Examined(
                what=what,
                where=masked_store_url(url),
                finding="its password is one that everybody tries first",
                fix="give the server another, such as `openssl rand -hex 24` prints, and change the URL",
            )


def examine_secrets(settings: Settings) -> Iterator[Examined]:
    """Secrets that sign requests; the settings themselves refuse those that are short or well known."""
    secrets = settings.targets.signing_secret
    if not secrets:
        return
    weakness = next(filter(None, map(_why_guessed, secrets)), None)
    if any(secret in settings.auth.secret for secret in secrets):
        weakness = "one is auth.secret too: whoever checks a signature could make tokens"
    if weakness is None:
        seen = f"{plural(len(secrets), 'secret')} without an obvious weakness"
        yield Examined(what="targets", where="targets.signing_secret", seen=seen)
        return
    fix = "draw another: echo whsec_$(openssl rand -base64 32), beside the old one until receivers have it"
    yield Examined(what="targets", where="targets.signing_secret", finding=weakness, fix=fix)


def _why_guessed(secret: str) -> str | None:
    """What is wrong with a signing secret; of what is drawn, no 24 bytes are all letters and digits."""
    key = parse_secret(secret)
    if key.isascii() and key.decode().isprintable():
        return "one spells a text: somebody typed it, and somebody may guess it"
    if any(key.startswith(key[:size] * (len(key) // size)) for size in range(1, len(key) // 2 + 1)):
        return "one repeats itself"
    return None


async def _published_keys(settings: Settings) -> Examined:
    place = settings.auth.jwks
    try:
        keys, jwks = jwt_adapter("keys"), jwt_adapter("jwks")
        check_identity(settings)
    except CannotStart as error:
        return Examined(what="auth", where=place, finding=error.message, fix="see the message")
    source, began_us = jwks.source_of(place), monotonic_us()
    try:
        found = await jwks.fetch_key_set(source)
    except jwks.Unreachable as error:
        fix = "check auth.jwks, or start the server; until then only known keys and API tokens are taken"
        return Examined(what="auth", where=source.shown, finding=f"no keys of JWTs: {error}", fix=fix)
    except keys.Unusable as error:
        fix = "let it publish an RSA key of 2,048 bits or more, an EC key on P-256 or an Ed25519 key, for signatures"
        return Examined(what="auth", where=source.shown, finding=f"no keys of JWTs: {error}", fix=fix)
    kinds = Counter(key.algorithm for key in found.keys)
    words = ", ".join(f"{count} for {algorithm}" for algorithm, count in sorted(kinds.items()))
    left_out = f"; left out: {'; '.join(found.left_out[:3])}" if found.left_out else ""
    took_ms = (monotonic_us() - began_us) / 1000
    return Examined(
        what="auth",
        where=source.shown,
        seen=f"{plural(len(found.keys), 'key')} ({words}) in {took_ms:.0f} ms{left_out}",
    )


def _report_address(settings: Settings) -> Iterator[Examined]:
    host = settings.server.host
    if settings.server.url or not _is_unspecified(host):
        return
    yield Examined(
        what="server",
        where=settings.server.listen,
        finding=f"targets that answer 202 would report to {host}, which is no address of anybody",
        fix="set server.url to where they reach the API",
    )


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _has_common_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.password is None or is_loopback(parts.hostname or "localhost"):
        return False
    return is_common_password(unquote(parts.password), unquote(parts.username or ""))
