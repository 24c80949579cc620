"""Published keys: which are taken, from a real server that rotates, is away, hangs, floods and lies, and from a file."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from hourhand.clock import ManualClock
from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable, WrongToken
from hourhand.identity.jwks import (
    KEPT_US,
    LIFETIME_US,
    MAX_BYTES,
    REFETCH_US,
    FileSource,
    HttpSource,
    Keyring,
    Unreachable,
    fetch_key_set,
    source_of,
)
from hourhand.identity.jwt import JwtAuthenticator
from hourhand.identity.keys import MAX_KEYS, Unusable, read_key, read_key_set
from tests.identity.issuer import (
    ALL_KEYS,
    EC,
    ED,
    NOW_S,
    OTHER_RSA,
    RSA,
    authenticator,
    claims,
    document,
    jwk,
    signed,
)
from tests.identity.server import KeyServer

NEW = {"kid": "new"}
WAIT_S = 20.0


def with_new_key(**said: Any) -> str:
    return jwt.encode(claims(**said), OTHER_RSA, algorithm="RS256", headers=NEW)


@pytest.fixture
async def server() -> AsyncIterator[KeyServer]:
    started = await KeyServer().start()
    yield started
    await started.stop()


@pytest.fixture
def ring(server: KeyServer, clock: ManualClock) -> Keyring:
    return Keyring(HttpSource(server.url), clock)


@pytest.fixture
def people(ring: Keyring, clock: ManualClock) -> JwtAuthenticator:
    return authenticator(clock, ring=ring)


async def is_taken(people: JwtAuthenticator, token: str) -> bool:
    try:
        return await people.authenticate(token) is not None
    except WrongToken:
        return False


async def landed(ring: Keyring) -> None:
    """Wait for what is under way beside the requests."""
    async with asyncio.timeout(WAIT_S):
        while ring._flight is not None:
            await asyncio.wait([ring._flight])


# --- which keys are taken


def test_each_key_is_bound_to_its_algorithm() -> None:
    found = read_key_set(ALL_KEYS)
    assert [(key.algorithm, key.kid) for key in found.keys] == [
        ("RS256", "rs256"),
        ("ES256", "es256"),
        ("EdDSA", "eddsa"),
    ]
    bare = [
        {name: value for name, value in jwk(one).items() if name not in ("alg", "use", "kid", "key_ops")}
        for one in ("RS256", "ES256", "EdDSA")
    ]
    assert [(read_key(one).algorithm, read_key(one).kid) for one in bare] == [
        ("RS256", None),
        ("ES256", None),
        ("EdDSA", None),
    ]
    assert read_key(jwk("EdDSA", alg="Ed25519")).algorithm == "EdDSA"


def private(algorithm: str) -> dict[str, Any]:
    rules: Any = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}[algorithm]
    made: dict[str, Any] = rules.to_jwk({"RS256": RSA, "ES256": EC, "EdDSA": ED}[algorithm], as_dict=True)
    return {name: value for name, value in made.items() if name != "key_ops"}


SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)
P384 = ec.generate_private_key(ec.SECP384R1())
ED448 = ed448.Ed448PrivateKey.generate()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (None, "no JSON object"),
        ("rs256", "no JSON object"),
        ({}, "kty"),
        ({"kty": "oct", "k": "c2VjcmV0"}, "private part"),
        (jwk("RS256", k="c2VjcmV0"), "private part"),
        (private("RS256"), "private part"),
        (private("ES256"), "private part"),
        (private("EdDSA"), "private part"),
        (jwk("RS256", alg="HS256"), "another algorithm"),
        (jwk("RS256", alg="RS512"), "another algorithm"),
        (jwk("RS256", alg="none"), "another algorithm"),
        (jwk("RS256", alg=None), "another algorithm"),
        (jwk("RS256", alg=["RS256"]), "another algorithm"),
        (jwk("ES256", alg="RS256"), "another algorithm"),
        (jwk("EdDSA", alg="ES256"), "another algorithm"),
        (jwk("RS256", use="enc"), "not for signatures"),
        (jwk("RS256", key_ops=["encrypt"]), "not for signatures"),
        (jwk("RS256", key_ops="verify"), "not for signatures"),
        (jwk("RS256", SMALL), "1024 bits"),
        (jwk("RS256", e="AQ"), "make no key"),
        (jwk("RS256", e="A" * 170 + "AQAAAAAAAQ"), "make no key|exponent"),
        (jwk("RS256", n=""), "make no key|bits"),
        (jwk("RS256", n=7), "lacks one of n, e"),
        ({"kty": "RSA"}, "lacks one of n, e"),
        (jwk("ES256", crv="P-521"), "neither RSA"),
        (jwk("ES256", P384), "neither RSA|another algorithm"),
        (jwk("ES256", x=jwk("EdDSA")["x"]), "make no key"),
        (jwk("ES256", x="AAAA"), "make no key"),
        (jwk("EdDSA", ED448), "neither RSA"),
        (jwk("EdDSA", x="AAAA"), "make no key"),
        (jwk("EdDSA", crv="X25519"), "neither RSA"),
        (jwk("EdDSA", crv=1), "kty and crv"),
        (jwk("RS256", kid="../../etc"), "odd kid"),
        (jwk("RS256", kid=5), "odd kid"),
        (jwk("RS256", kty="RSA2"), "neither RSA"),
        (jwk("RS256", kty=["RSA"]), "kty"),
    ],
)
def test_keys_that_may_not_check_signatures_are_left_out_with_the_reason(key: object, words: str) -> None:
    with pytest.raises(Unusable, match=words):
        read_key(key)
    found = read_key_set(document(key, jwk("EdDSA")))
    assert [one.kid for one in found.keys] == ["eddsa"], "others are not harmed"
    assert found.left_out[0].startswith("key 1 ")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>sign in</html>",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [], "keys": []}',
        b"\xff",
        b"[" * 100_000,
        document(jwk("RS256", use="enc")),
    ],
)
def test_what_is_no_set_of_keys(text: bytes) -> None:
    with pytest.raises(Unusable):
        read_key_set(text)


def test_the_number_of_keys_is_bounded() -> None:
    keys = [jwk("EdDSA", kid=f"k{number}") for number in range(MAX_KEYS + 5)]
    found = read_key_set(document(*keys))
    assert len(found.keys) == MAX_KEYS
    assert found.left_out == (f"5 keys after the first {MAX_KEYS}",)


def test_no_material_of_a_key_is_shown() -> None:
    assert "material" not in repr(read_key_set(ALL_KEYS))


# --- a server


async def test_keys_are_fetched_once_for_many(people: JwtAuthenticator, server: KeyServer) -> None:
    tokens = [signed(one, claims(sub=f"ann {n}")) for n in range(5) for one in ("RS256", "ES256", "EdDSA")]
    assert all(await asyncio.gather(*(is_taken(people, token) for token in tokens)))
    assert server.asked == 1
    assert server.requests[0].startswith(b"GET /keys HTTP/1.1\r\n")
    assert b"User-Agent: hourhand/" in server.requests[0]


async def test_hs256_asks_nobody(people: JwtAuthenticator, server: KeyServer) -> None:
    assert await is_taken(people, signed("HS256"))
    assert server.asked == 0


async def test_a_new_key_is_found_when_a_token_names_it(
    people: JwtAuthenticator, server: KeyServer, clock: ManualClock
) -> None:
    assert await is_taken(people, signed())
    server.publish(document(jwk("RS256"), jwk("RS256", OTHER_RSA, **NEW)))
    clock.advance(REFETCH_US)
    assert await is_taken(people, with_new_key())
    assert await is_taken(people, signed())
    assert server.asked == 2


async def test_unknown_names_ask_the_server_at_most_every_so_often(
    people: JwtAuthenticator, server: KeyServer, clock: ManualClock
) -> None:
    assert await is_taken(people, signed())
    for _ in range(3):
        clock.advance(REFETCH_US)
        asked = server.asked
        unknown = [signed(kid=f"k{number}") for number in range(50)]
        assert not any(await asyncio.gather(*(is_taken(people, token) for token in unknown)))
        assert not await is_taken(people, signed(kid="another"))
        assert server.asked == asked + 1
    assert await is_taken(people, signed(said=claims(sub="bob")))


async def test_a_key_that_is_withdrawn_counts_no_longer_remembered_or_not(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock
) -> None:
    token = signed("EdDSA", claims(exp=NOW_S + 3_600))
    assert await is_taken(people, token)
    server.publish(document(jwk("RS256")))
    clock.advance(LIFETIME_US)
    assert await is_taken(people, signed(said=claims(exp=NOW_S + 3_600))), (
        "with those at hand, which are asked for anew"
    )
    await landed(ring)
    assert server.asked == 2
    assert not await is_taken(people, token)


async def test_withdrawing_a_key_forgets_who_was_proven_by_it(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock
) -> None:
    token = signed("EdDSA")
    assert await is_taken(people, token)
    clock.advance(REFETCH_US)
    assert await is_taken(people, token), "remembered"
    server.publish(document(jwk("RS256")))
    assert not await is_taken(people, signed(kid="unknown"))  # and so the keys are fetched
    assert not await is_taken(people, token)


async def test_an_empty_document_withdraws_all_keys(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock
) -> None:
    assert await is_taken(people, signed())
    for nothing in (b'{"keys": []}', document({"kty": "oct", "k": "c2VjcmV0"})):
        server.publish(nothing)
        clock.advance(REFETCH_US)
        assert not await is_taken(people, signed(kid="unknown"))  # and so the keys are fetched
        assert not await is_taken(people, signed())
        server.publish(ALL_KEYS)
        clock.advance(REFETCH_US)
        assert await is_taken(people, signed())


async def test_a_server_that_is_away_leaves_the_keys_as_they_are_for_a_day(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock
) -> None:
    assert await is_taken(people, signed())
    await server.stop()
    for _ in range(12):
        clock.advance(KEPT_US // 12 - 1)
        now_s = clock.now() // SECOND_US
        assert await is_taken(people, signed(said=claims(exp=now_s + 60)))
        await landed(ring)
    clock.advance(12)
    late = signed(said=claims(exp=clock.now() // SECOND_US + 60))
    with pytest.raises(Unavailable):
        await people.authenticate(late)
    await server.start()
    with pytest.raises(Unavailable):
        await people.authenticate(late)
    clock.advance(REFETCH_US)
    assert await is_taken(people, late)


async def test_without_any_key_yet_it_is_unavailable_and_not_wrong(
    people: JwtAuthenticator, server: KeyServer, clock: ManualClock
) -> None:
    await server.stop()
    for _ in range(3):
        with pytest.raises(Unavailable, match="cannot be had right now"):
            await people.authenticate(signed())
    assert await is_taken(people, signed("HS256")), "which needs no keys of others"
    await server.start()
    clock.advance(REFETCH_US)
    assert await is_taken(people, signed())
    assert server.asked == 1


async def test_a_clock_that_is_set_back_keeps_no_keys_for_longer(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock
) -> None:
    assert await is_taken(people, signed())
    clock.advance(-2 * LIFETIME_US)
    await is_taken(people, signed(said=claims(sub="bob")))
    await landed(ring)
    assert server.asked == 2


async def test_a_slow_server_holds_up_only_those_who_need_new_keys(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock
) -> None:
    assert await is_taken(people, signed())
    server.hang()
    server.came.clear()
    clock.advance(LIFETIME_US)
    now_s = clock.now() // SECOND_US
    async with asyncio.timeout(WAIT_S):
        for number in range(20):
            assert await is_taken(people, signed(said=claims(sub=f"ann {number}", exp=now_s + 60)))
        await server.came.wait()
        waiting = asyncio.create_task(is_taken(people, signed(kid="unknown")))
        gone = asyncio.create_task(is_taken(people, signed(kid="unknown2")))
        await asyncio.sleep(0)
        gone.cancel()  # whoever goes away takes nobody's keys along
        server.go_on.set()
        assert not await waiting
    assert server.asked == 2


@pytest.mark.parametrize("way", ["hang", "trickle"])
async def test_a_fetch_has_a_deadline(server: KeyServer, way: str) -> None:
    getattr(server, way)()
    with pytest.raises(Unreachable, match=r"no whole answer within 0\.2 s"):
        await fetch_key_set(HttpSource(server.url, timeout_s=0.2))


async def test_no_more_is_read_than_the_limit(server: KeyServer) -> None:
    server.flood()
    with pytest.raises(Unreachable, match="larger than 262,144 bytes"):
        await fetch_key_set(HttpSource(server.url))
    server.publish(ALL_KEYS + b" " * MAX_BYTES)
    with pytest.raises(Unreachable, match="larger than"):
        await fetch_key_set(HttpSource(server.url))


async def test_a_packed_answer_is_not_unpacked(server: KeyServer) -> None:
    import gzip

    server.publish(gzip.compress(b" " * 10_000_000), "Content-Encoding: gzip")
    with pytest.raises(Unusable):
        await fetch_key_set(HttpSource(server.url))


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "204 No Content", "401 Unauthorized"])
async def test_another_status_is_no_document(server: KeyServer, status: str) -> None:
    server.publish(ALL_KEYS if not status.startswith("204") else b"", status=status)
    with pytest.raises(Unreachable, match=f"status {status[:3]}"):
        await fetch_key_set(HttpSource(server.url))


async def test_redirects_are_not_followed(server: KeyServer) -> None:
    server.publish(b"", f"Location: {server.url}/elsewhere", status="302 Found")
    with pytest.raises(Unreachable, match="status 302"):
        await fetch_key_set(HttpSource(server.url))
    assert server.asked == 1


async def test_proxies_of_the_environment_are_not_used(
    server: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert len((await fetch_key_set(HttpSource(server.url))).keys) == 3


@pytest.mark.parametrize("text", [b"<html>sign in</html>", b"", b'{"keys": 5}', b'{"error": "busy"}'])
async def test_wrong_content_leaves_the_keys_as_they_are(
    people: JwtAuthenticator, ring: Keyring, server: KeyServer, clock: ManualClock, text: bytes
) -> None:
    assert await is_taken(people, signed())
    server.publish(text, "Content-Type: text/html")
    clock.advance(REFETCH_US)
    assert not await is_taken(people, signed(kid="unknown"))
    assert server.asked == 2
    clock.advance(LIFETIME_US)
    assert await is_taken(people, signed(said=claims(exp=clock.now() // SECOND_US + 60)))
    await landed(ring)


async def test_a_server_without_a_certificate_for_its_name_is_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "pem"
    pem.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await fetch_key_set(source_of(f"https://localhost:{port}/keys"))


# --- a file


async def test_keys_of_a_file_are_read_again_as_they_change(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(document(jwk("RS256")))
    for place in (str(file), f"file://{file}"):
        assert len((await fetch_key_set(source_of(place))).keys) == 1
    people = authenticator(clock, ring=Keyring(source_of(str(file)), clock))
    assert await is_taken(people, signed())
    file.write_bytes(document(jwk("RS256", OTHER_RSA, **NEW)))
    clock.advance(REFETCH_US)
    assert await is_taken(people, with_new_key())
    assert not await is_taken(people, signed())


async def test_what_is_no_file_of_keys(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b" " * (MAX_BYTES + 1))
    for name, words in (("absent", "no such file"), ("", "no such file"), ("large", "larger than")):
        with pytest.raises(Unreachable, match=words):
            await FileSource(tmp_path / name).load()
