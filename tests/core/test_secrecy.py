"""Which secrets are none."""

import base64
import random

import pytest

from hourhand.core.secrecy import is_common_password, why_weak


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ("", "shorter"),
        ("secret", "shorter"),
        ("changeme", "shorter"),
        ("4fA9" * 7 + "xyz", "shorter"),
        ("x" * 64, "repeats"),
        ("ab" * 32, "repeats"),
        ("0123456789abcdef0123456789abcdef", "repeats"),
        ("abcdefghijklmnopqrstuvwxyz0123456789", "counts up"),
        ("9876543210zyxwvutsrqponmlkjihgfedcba", "counts up"),
        ("changemechangemechangemechangeme", "repeats"),
        ("changeme-secret-password-changeme-please", "well known words"),
        ("a-string-secret-at-least-256-bits-long", "well known words"),
        ("your-super-secret-jwt-token-with-at-least-32-characters-long", "well known words"),
        ("Your-256-Bit-Secret-Your-256-Bit-Secret-1", "well known words|repeats"),
        ("this is my super secret signing key, please change", "well known words"),
        ("-----BEGIN PUBLIC KEY----- MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A", "another algorithm"),
        ("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEApLetJkz5Xr", "another algorithm"),
        ("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEiZp+AekPKkU3nZHhcf", "another algorithm"),
        ("MCowBQYDK2VwAyEAc4apPFociqv68clNEiUWbdHxMd3hwZWxh1ikspa", "another algorithm"),
        ("your_jwt_secret_key_here_change_in_production", "well known words"),
        ("thisisaverysecretkeythatnobodyknows!", "well known words"),
        ("qwertyuiopasdfghjklzxcvbnm123456", "well known words"),
        ('{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM"}', "another algorithm"),
        ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7k3J9x1", "another algorithm"),
    ],
)
def test_what_is_no_secret(secret: str, words: str) -> None:
    found = why_weak(secret)
    assert found is not None
    assert any(one in found for one in words.split("|"))
    assert not secret or secret not in found


def test_what_is_random_passes() -> None:
    draws = random.Random(7)
    for _ in range(2_000):
        drawn = draws.randbytes(32)
        for text in (drawn.hex(), base64.b64encode(drawn).decode(), base64.urlsafe_b64encode(drawn).decode()):
            assert why_weak(text) is None, text


@pytest.mark.parametrize(
    ("password", "user", "common"),
    [
        ("postgres", "", True),
        ("Secret", "", True),
        ("ann", "ann", True),
        ("", "ann", True),
        ("4fA9-x2k", "ann", False),
    ],
)
def test_passwords_that_everybody_tries_first(password: str, user: str, common: bool) -> None:
    assert is_common_password(password, user) is common
