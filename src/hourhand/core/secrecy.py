"""Whether a secret is one: long enough, not from an example, not what people type first.

A guess at carelessness, not a measure of randomness: what passes may still be bad, what fails surely is.
"""

import re
from itertools import pairwise

MIN_KEY_BYTES = 32  # of a secret for HS256: as long as what it makes
FEWEST_DISTINCT = 8
_FEWEST_UNKNOWN = 16  # characters that are left when well known words are taken out
# Of documentation, examples and defaults, some of them long enough.
_WORDS = (
    "a-string-secret-at-least-256-bits-long",
    "your-super-secret-jwt-token-with-at-least-32-characters-long",
    "changeit",
    "changeme",
    "change",
    "characters",
    "asdfghjkl",
    "zxcvbnm",
    "production",
    "somebody",
    "everybody",
    "nobody",
    "knows",
    "known",
    "very",
    "here",
    "default",
    "example",
    "hourhand",
    "insecure",
    "letmein",
    "password",
    "passw0rd",
    "private",
    "qwertyuiop",
    "qwerty",
    "replace",
    "secret",
    "s3cr3t",
    "s3cret",
    "signing",
    "string",
    "super",
    "testing",
    "token",
    "admin",
    "least",
    "please",
    "your",
    "this",
    "long",
    "test",
    "bits",
    "jwt",
    "key",
)
_WORD = re.compile("|".join(map(re.escape, _WORDS)))
_NO_SECRET = ("-----begin", "ssh-", "ecdsa-", "{", "[")
# What every published RSA, P-256 and Ed25519 key has in it, where the line before it was left out.
_OF_PUBLIC_KEYS = ("BgkqhkiG9w0BAQ", "YIKoZIzj0DAQc", "MCowBQYDK2Vw")
_COMMON_PASSWORDS = frozenset(
    [
        "admin",
        "changeit",
        "changeme",
        "default",
        "hourhand",
        "letmein",
        "password",
        "passw0rd",
        "postgres",
        "redis",
        "root",
        "secret",
        "test",
        "123456",
        "12345678",
        "qwerty",
    ]
)


def why_weak(secret: str) -> str | None:
    """What is wrong with a secret that signs, in words that tell nothing of it; None where nothing is seen."""
    text = secret.lower()
    if len(secret.encode("utf-8", "replace")) < MIN_KEY_BYTES:
        return f"it is shorter than {MIN_KEY_BYTES} bytes"
    if text.startswith(_NO_SECRET) or any(mark in secret for mark in _OF_PUBLIC_KEYS):
        return "it is a key for another algorithm, or a document"
    if len(set(text)) < FEWEST_DISTINCT or _repeats(text) or _counts_up(text):
        return "it repeats itself or counts up"
    if len(re.sub(r"[\W_]", "", _WORD.sub("", text))) < _FEWEST_UNKNOWN:
        return "it is made of well known words"
    return None


def is_common_password(password: str, user: str = "") -> bool:
    """Whether whoever tries passwords tries this one first."""
    return not password or password.lower() in _COMMON_PASSWORDS or password == user


def _repeats(text: str) -> bool:
    """Whether it is one piece again and again."""
    pieces = (text[:length] for length in range(1, len(text) // 2 + 1))
    return any(text.startswith(piece * (len(text) // len(piece))) for piece in pieces)


def _counts_up(text: str) -> bool:
    """Whether most of it follows from the character before: abcdef, 987654, aaaa."""
    steps = [abs(ord(one) - ord(other)) <= 1 for one, other in pairwise(text)]
    return sum(steps) * 2 > len(steps)
