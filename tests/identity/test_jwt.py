"""Which JWTs are taken, and every way of cheating that is not; line by line what RELIABILITY.md promises of them."""

import json
import re
from typing import Any

import jwt
import pytest

from hourhand.clock import ManualClock
from hourhand.core.access import EVERY_TENANT, MAX_TOKEN, Principal, Role, Via
from hourhand.core.claims import LEEWAY_US
from hourhand.core.instant import SECOND_US
from hourhand.errors import WrongToken
from hourhand.identity import jwt as module
from hourhand.identity.jwks import Keyring
from hourhand.identity.jwt import MOST_REMEMBERED, REMEMBERED_US, JwtAuthenticator
from hourhand.identity.keys import Unusable, secret_key
from tests.identity.issuer import (
    NOW_S,
    OTHER_RSA,
    OTHER_SECRET,
    PRIVATE,
    PUBLIC_PEM,
    SECRET,
    Published,
    authenticator,
    by_hand,
    claims,
    document,
    jwk,
    part,
    signed,
)

ANN = Principal(
    subject="ann@example.com",
    tenant="acme",
    role=Role.EDITOR,
    via=Via.JWT,
    expires_at=(NOW_S + 600) * SECOND_US,
)
HS256 = {"alg": "HS256", "typ": "JWT"}


async def refusal(people: JwtAuthenticator, token: str) -> str:
    """Why a token is refused; the words hold no part of it."""
    with pytest.raises(WrongToken) as caught:
        await people.authenticate(token)
    for piece in re.findall(r"[\w-]{12,}", token):
        assert piece not in caught.value.message
    return caught.value.message


# --- what is taken


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256", "EdDSA"])
async def test_a_token_of_each_algorithm_says_who_somebody_is(
    people: JwtAuthenticator, algorithm: str
) -> None:
    assert await people.authenticate(signed(algorithm)) == ANN


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_a_token_need_not_name_its_key(people: JwtAuthenticator, algorithm: str) -> None:
    token = jwt.encode(claims(), PRIVATE[algorithm], algorithm=algorithm)
    assert await people.authenticate(token) == ANN


@pytest.mark.parametrize("role", Role)
async def test_each_role(people: JwtAuthenticator, role: Role) -> None:
    found = await people.authenticate(signed(said=claims(role=role.value)))
    assert found is not None
    assert found.role is role


async def test_a_star_runs_the_system(people: JwtAuthenticator) -> None:
    found = await people.authenticate(signed(said=claims(tenant=EVERY_TENANT, role="admin")))
    assert found is not None
    assert found.runs_the_system


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
async def test_types_of_access_tokens(people: JwtAuthenticator, typ: str) -> None:
    assert await people.authenticate(signed(typ=typ)) == ANN


async def test_one_audience_in_a_list_is_that_audience(people: JwtAuthenticator) -> None:
    assert await people.authenticate(signed(said=claims(aud=["hourhand"]))) == ANN


async def test_header_members_that_mean_nothing_to_us_are_left_alone(people: JwtAuthenticator) -> None:
    assert await people.authenticate(signed(x5t="abc", nonce="1")) == ANN


async def test_fractions_of_seconds_are_times(people: JwtAuthenticator) -> None:
    found = await people.authenticate(signed(said=claims(exp=NOW_S + 1.5, nbf=NOW_S - 0.5)))
    assert found is not None
    assert found.expires_at == NOW_S * SECOND_US + 1_500_000


@pytest.mark.parametrize("token", ["hh_abcdef", "x" * 500, "", "Bearer"])
async def test_other_kinds_of_tokens_are_for_others(people: JwtAuthenticator, token: str) -> None:
    assert await people.authenticate(token) is None


async def test_two_secrets_hold_while_one_replaces_the_other(clock: ManualClock) -> None:
    both = authenticator(clock, secrets=(OTHER_SECRET, SECRET))
    new = by_hand(HS256, claims(), OTHER_SECRET.encode())
    assert await both.authenticate(signed("HS256")) == ANN
    assert await both.authenticate(new) == ANN
    after = authenticator(clock, secrets=(OTHER_SECRET,))
    assert await after.authenticate(new) == ANN
    assert "not signed by a key" in await refusal(after, signed("HS256"))


# --- algorithms and keys


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", "none ", None, 0, ["HS256"], {}])
async def test_none_is_no_algorithm(people: JwtAuthenticator, name: Any) -> None:
    for signature in ("", part(b"x"), part(b"\0" * 32)):
        token = f"{part({'alg': name, 'typ': 'JWT'})}.{part(claims())}.{signature}"
        assert re.search("algorithm is none of|base64url", await refusal(people, token))


async def test_an_algorithm_must_be_said(people: JwtAuthenticator) -> None:
    assert "algorithm" in await refusal(people, by_hand({"typ": "JWT"}, claims()))


@pytest.mark.parametrize(
    "name", ["HS384", "HS512", "RS384", "RS512", "PS256", "ES384", "ES256K", "hs256", "Rs256"]
)
async def test_other_algorithms_are_refused(people: JwtAuthenticator, name: str) -> None:
    assert "algorithm" in await refusal(people, by_hand({"alg": name, "kid": "rs256"}, claims()))


@pytest.mark.parametrize("secrets", [(), (SECRET,)], ids=["keys only", "keys and a secret"])
async def test_a_public_key_is_no_secret(clock: ManualClock, secrets: tuple[str, ...]) -> None:
    people = authenticator(clock, secrets=secrets, ring=Keyring(Published(), clock))
    entry = jwk("RS256")
    guesses = [
        PUBLIC_PEM,
        PUBLIC_PEM.strip(),
        json.dumps(entry).encode(),
        entry["n"].encode(),
        document(entry),
        b"",
    ]
    for secret in guesses:
        for header in (HS256, {**HS256, "kid": "rs256"}):
            assert "not signed by a key" in await refusal(people, by_hand(header, claims(), secret))


async def test_a_public_key_cannot_be_configured_as_a_secret() -> None:
    with pytest.raises(Unusable):
        secret_key(PUBLIC_PEM.decode())


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_a_signature_counts_only_under_its_keys_algorithm(
    people: JwtAuthenticator, algorithm: str
) -> None:
    """The right key under another's name, and the right name with another key's signature."""
    for other in {"rs256", "es256", "eddsa"} - {algorithm.lower()}:
        assert "not signed by a key" in await refusal(people, signed(algorithm, kid=other))
    _, said, signature = signed(algorithm).split(".")
    for other in {"HS256", "RS256", "ES256", "EdDSA"} - {algorithm}:
        for kid in (algorithm.lower(), other.lower()):
            token = f"{part({'alg': other, 'kid': kid})}.{said}.{signature}"
            assert "not signed by a key" in await refusal(people, token)


async def test_keys_of_others_prove_nothing(people: JwtAuthenticator) -> None:
    token = jwt.encode(claims(), OTHER_RSA, algorithm="RS256", headers={"kid": "rs256"})
    assert "not signed by a key" in await refusal(people, token)


async def test_without_published_keys_only_the_secret_counts(clock: ManualClock) -> None:
    people = authenticator(clock)
    for algorithm in ("RS256", "ES256", "EdDSA"):
        assert "not signed by a key" in await refusal(people, signed(algorithm))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jku", "https://evil.example/jwks.json"),
        ("x5u", "https://evil.example/cert.pem"),
        ("x5c", ["MIIB"]),
        ("jwk", jwk("RS256", OTHER_RSA)),
        ("crit", ["exp"]),
        ("crit", []),
        ("b64", False),
        ("b64", True),
        ("zip", "DEF"),
        ("enc", "A256GCM"),
        ("jku", None),
    ],
)
async def test_a_token_cannot_choose_how_it_is_checked(
    people: JwtAuthenticator, published: Published, name: str, value: Any
) -> None:
    """Neither by a right signature of ours, nor by one of the key that it brings along."""
    assert f"has {name}, which is not taken" in await refusal(
        people, by_hand({**HS256, name: value}, claims())
    )
    if name in ("jwk", "jku"):
        token = jwt.encode(claims(), OTHER_RSA, algorithm="RS256", headers={"kid": "rs256", name: value})
        assert f"has {name}" in await refusal(people, token)
    assert published.asked == 0


@pytest.mark.parametrize(
    "kid",
    [
        "../../../../dev/null",
        "..",
        "/dev/null/../x",
        "' OR '1'='1",
        "x'; DROP TABLE jobs; --",
        "rs256\n",
        "rs256\0",
        " rs256",
        "rs 256",
        "",
        "k" * 201,
        "ключ",
        "$(id)",
        "|id",
        7,
        None,
        True,
        ["rs256"],
        {"kid": "rs256"},
    ],
)
async def test_odd_names_of_keys_are_refused(
    people: JwtAuthenticator, published: Published, kid: Any
) -> None:
    for algorithm in ("HS256", "RS256"):
        token = by_hand({"alg": algorithm, "kid": kid}, claims())
        assert "kid is not the name of a key" in await refusal(people, token)
    assert published.asked == 0, "and nobody is asked for them"


@pytest.mark.parametrize("typ", ["JWE", "dpop+jwt", "logout+jwt", "", None, 1, ["JWT"]])
async def test_tokens_of_another_type_are_refused(people: JwtAuthenticator, typ: Any) -> None:
    assert "another type" in await refusal(people, by_hand({"alg": "HS256", "typ": typ}, claims()))


# --- the text of a token


async def test_only_the_compact_form_with_one_signature_is_read(people: JwtAuthenticator) -> None:
    token = signed("HS256")
    head, said, signature = token.split(".")
    flat = {"protected": head, "payload": said, "signature": signature}
    both = {"payload": said, "signatures": [{"protected": head, "signature": signature}] * 2}
    for text in (
        json.dumps(flat),
        json.dumps(both),
        json.dumps(flat, separators=(",", ":")),
        f"{token}.{signature}",
        f"{token}.",
        f"{head}.{said}",
        f"{head}..{signature}",
        f".{said}.{signature}",
        f"{head}.{said}.",
        "..",
        ".",
        f"{token}.{head}.{said}",
    ):
        assert re.search("three parts|base64url", await refusal(people, text))


@pytest.mark.parametrize("size", [MAX_TOKEN, 200_000, 2_000_000])
async def test_huge_tokens_are_refused_before_they_are_read(people: JwtAuthenticator, size: int) -> None:
    token = by_hand(HS256, claims(more="x" * size))
    assert "longer than 8,192" in await refusal(people, token)


@pytest.mark.parametrize(
    "text",
    [
        b'{"alg":"none","alg":"HS256"}',
        b'{"alg":"HS256","alg":"HS256"}',
        b'{"alg":"HS256","\\u0061lg":"none"}',
        b'{"alg":"HS256","x":{"a":1,"a":2}}',
        b'["HS256"]',
        b'"HS256"',
        b"null",
        b"",
        b"{",
        b'{"alg":"HS256"} ',
        b'{"alg":"HS256"}{}',
        b'{"alg":"HS256","x":NaN}',
        b'\xff{"alg":"HS256"}',
        b"[" * 3_000,
        b'{"alg":"HS256","x":' + b"1" * 5_000 + b"}",
    ],
)
async def test_a_header_that_can_be_read_in_two_ways_is_refused(
    people: JwtAuthenticator, text: bytes
) -> None:
    if text == b'{"alg":"HS256"} ':  # spaces are JSON
        assert await people.authenticate(by_hand(text, claims())) == ANN
        return
    assert re.search("header is not a JSON object|base64url", await refusal(people, by_hand(text, claims())))


async def test_claims_that_stand_twice_are_refused_although_signed(people: JwtAuthenticator) -> None:
    good = json.dumps(claims()).encode()
    for more in (b'"tenant":"globex"', b'"exp":1', b'"role":"admin"', b'"\\u0072ole":"admin"'):
        token = by_hand(HS256, good[:-1] + b"," + more + b"}")
        assert "each member once" in await refusal(people, token)


@pytest.mark.parametrize("said", [b"[]", b"null", b'"x"', b"{", b"\xff\xfe", b"[" * 2_000, b'{"exp":NaN}'])
async def test_what_says_nothing_is_refused_although_signed(people: JwtAuthenticator, said: bytes) -> None:
    assert "not a JSON object" in await refusal(people, by_hand(HS256, said))


async def test_the_same_bytes_in_another_spelling_are_another_token(people: JwtAuthenticator) -> None:
    head, said, signature = signed("HS256").split(".")
    last = signature[-1]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = alphabet[alphabet.index(last) ^ 1]
    for other in (signature[:-1] + twin, signature + "=", signature + "\n", " " + signature):
        assert "base64url" in await refusal(people, f"{head}.{said}.{other}")


@pytest.mark.parametrize("token", ["é.é.é", "eyJ.\u0660.x", "\ud800.a.b", "a.b.c\x00"])
async def test_what_is_no_plain_text_is_refused(people: JwtAuthenticator, token: str) -> None:
    await refusal(people, token)


# --- claims


@pytest.mark.parametrize("name", ["exp", "iss", "aud", "tenant", "sub", "role"])
async def test_each_claim_is_required(people: JwtAuthenticator, name: str) -> None:
    assert f"lacks the claim {name}" in await refusal(people, signed(said=claims(**{name: None})))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"exp": NOW_S - 31}, "has expired"),
        ({"exp": 0}, "has expired"),
        ({"nbf": NOW_S + 31}, "later time"),
        ({"iat": NOW_S + 31}, "later time"),
        ({"exp": str(NOW_S + 600)}, "claim exp: expected a time"),
        ({"exp": True}, "claim exp: expected a time"),
        ({"exp": -1}, "claim exp: expected a time"),
        ({"exp": 1e300}, "claim exp: expected a time"),
        ({"exp": 10**30}, "claim exp: expected a time"),
        ({"exp": [NOW_S + 600]}, "claim exp: expected a time"),
        ({"exp": {}}, "claim exp: expected a time"),
        ({"nbf": "soon"}, "claim nbf: expected a time"),
        ({"iat": False}, "claim iat: expected a time"),
        ({"iss": "https://id.example.com/"}, "another issuer"),
        ({"iss": "https://ID.example.com"}, "another issuer"),
        ({"iss": ["https://id.example.com"]}, "claim iss: expected a text"),
        ({"iss": ""}, "another issuer"),
        ({"aud": "hourhand2"}, "another audience"),
        ({"aud": ""}, "another audience"),
        ({"aud": []}, "not a list of several"),
        ({"aud": ["hourhand", "other"]}, "not a list of several"),
        ({"aud": ["other"]}, "another audience"),
        ({"aud": [["hourhand"]]}, "claim aud: expected a text"),
        ({"aud": {"hourhand": 1}}, "claim aud: expected a text"),
        ({"tenant": ""}, "claim tenant"),
        ({"tenant": "Acme"}, "claim tenant"),
        ({"tenant": "**"}, "claim tenant"),
        ({"tenant": "* "}, "claim tenant"),
        ({"tenant": "acme/../globex"}, "claim tenant"),
        ({"tenant": ["*"]}, "claim tenant: expected a text"),
        ({"tenant": "acme\n"}, "claim tenant"),
        ({"sub": ""}, "claim sub"),
        ({"sub": " "}, "claim sub"),
        ({"sub": "a" * 201}, "claim sub"),
        ({"sub": "ann\nbob"}, "claim sub"),
        ({"sub": "ann\x00"}, "claim sub"),
        ({"sub": "\u202eann"}, "claim sub"),
        ({"sub": 7}, "claim sub: expected a text"),
        ({"role": "king"}, "claim role"),
        ({"role": "Admin"}, "claim role"),
        ({"role": ""}, "claim role"),
        ({"role": ["admin"]}, "claim role: expected a text"),
    ],
)
async def test_claims_that_are_not_for_us_not_now_or_not_right(
    people: JwtAuthenticator, changed: dict[str, Any], words: str
) -> None:
    assert words in await refusal(people, by_hand(HS256, claims(**changed)))


async def test_half_a_character_is_no_subject(people: JwtAuthenticator) -> None:
    said = json.dumps(claims(sub="x")).replace('"sub": "x"', '"sub": "\\ud800"').encode()
    assert "claim sub" in await refusal(people, by_hand(HS256, said))


async def test_clocks_may_differ_by_the_leeway_and_no_more(
    people: JwtAuthenticator, clock: ManualClock
) -> None:
    early = signed(said=claims(nbf=NOW_S + 30, iat=NOW_S + 30))
    assert await people.authenticate(early) == ANN
    brief = signed(said=claims(exp=NOW_S + 10))
    clock.advance(10 * SECOND_US + LEEWAY_US - 1)
    assert await people.authenticate(brief) is not None
    clock.advance(1)
    assert "has expired" in await refusal(people, brief)


async def test_of_a_token_with_a_wrong_signature_nothing_else_is_told(people: JwtAuthenticator) -> None:
    token = by_hand(HS256, claims(iss="other", exp=1), b"x" * 32)
    assert await refusal(people, token) == "the token is not signed by a key that this server knows"


# --- what is remembered


class Counting(JwtAuthenticator):
    proven = 0

    async def _proven(self, token: str):  # type: ignore[no-untyped-def]
        self.proven += 1
        return await super()._proven(token)


@pytest.fixture
def counting(clock: ManualClock, published: Published) -> Counting:
    return Counting(
        expected=module.Expected(issuer="https://id.example.com", audience="hourhand"),
        secrets=[secret_key(SECRET)],
        ring=Keyring(published, clock),
        clock=clock,
    )


async def test_a_token_is_checked_once_in_a_while(counting: Counting, clock: ManualClock) -> None:
    token = signed()
    for _ in range(5):
        assert await counting.authenticate(token) == ANN
    assert counting.proven == 1
    clock.advance(REMEMBERED_US)
    assert await counting.authenticate(token) == ANN
    assert counting.proven == 2


async def test_a_token_is_never_remembered_beyond_its_end(counting: Counting, clock: ManualClock) -> None:
    token = signed(said=claims(exp=NOW_S + 5))
    assert await counting.authenticate(token) is not None
    clock.advance(5 * SECOND_US)
    assert await counting.authenticate(token) is not None, "within the leeway, but checked again"
    assert counting.proven == 2
    clock.advance(LEEWAY_US)
    await refusal(counting, token)


async def test_what_is_refused_is_not_remembered(counting: Counting) -> None:
    for _ in range(2):
        await refusal(counting, signed(said=claims(role="king")))
    assert counting.proven == 2
    assert not counting._remembered


async def test_a_bounded_number_is_remembered_the_last_used_first(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_REMEMBERED <= 100_000
    monkeypatch.setattr(module, "MOST_REMEMBERED", 3)
    first, *others = [signed("HS256", claims(sub=f"ann {number}")) for number in range(5)]
    for token in others[:2]:
        await counting.authenticate(first)
        await counting.authenticate(token)
    for token in others[2:]:
        await counting.authenticate(first)
        await counting.authenticate(token)
    assert len(counting._remembered) == 3
    assert counting.proven == 5, "the one in use was kept"


async def test_nothing_of_a_token_is_kept(counting: Counting) -> None:
    token = signed()
    await counting.authenticate(token)
    kept = repr(counting._remembered)
    assert not any(piece in kept for piece in token.split("."))
