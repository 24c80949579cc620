"""API tokens: how one is written, what of it is kept, and whether it still proves anything. Pure.

`hh_<id>_<secret>`: the id says where to look, the secret is known to its owner alone. Only a plain SHA-256 of
the secret is kept. That is enough, and right: the secret is 256 drawn bits, so there is nothing to guess that a
slow hash with a salt (which is for passwords that people choose) would make dearer, and every request pays for it.
"""

import re
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

import msgspec

from hourhand.core.access import Principal, Role, Via
from hourhand.core.identity import format_job_id, parse_job_id

MAX_TOKEN_NAME = 100
MAX_TOKENS = 1_000  # of a tenant that are neither revoked nor expired, in one database
SECRET_BYTES = 32
PREFIX = "hh_"
_TOKEN = re.compile(rf"{PREFIX}([0-9a-z]{{13}})_([0-9a-f]{{{SECRET_BYTES * 2}}})")


class ApiToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is kept; whoever has it is known by its name and id."""

    id: int
    tenant: str  # "*": of those who run the system
    name: str
    role: Role
    digest: bytes
    created_at: int
    created_by: str | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None  # true to a minute

    @property
    def principal(self) -> Principal:
        """Who its owner is. The id keeps apart those whose names are alike."""
        return Principal(
            subject=f"{self.name}:{format_token_id(self.id)}",
            tenant=self.tenant,
            role=self.role,
            via=Via.TOKEN,
            expires_at=self.expires_at,
        )

    def is_live(self, now_at: int) -> bool:
        """Whether it was neither revoked nor has expired."""
        return self.revoked_at is None and (self.expires_at is None or now_at < self.expires_at)

    def is_proven_by(self, secret: str) -> bool:
        """Whether this is its secret; takes the same time whatever is wrong with it."""
        return compare_digest(self.digest, digest_of(secret))


class TokenText(NamedTuple):
    """The two parts of a token's text."""

    id: int
    secret: str


def write_token(token_id: int, secret: str) -> str:
    """The text that its owner gets, once."""
    return f"{PREFIX}{format_job_id(token_id)[2:]}_{secret}"


def read_token(text: str) -> TokenText | None:
    """The parts of a token's text; None where it is none."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    try:
        return TokenText(parse_job_id(f"J-{found[1]}"), found[2])
    except ValueError:
        return None


def digest_of(secret: str) -> bytes:
    """What is kept of a secret."""
    return sha256(secret.encode()).digest()


def format_token_id(token_id: int) -> str:
    """`T-` and 13 letters, made like a job's."""
    return f"T-{format_job_id(token_id)[2:]}"


def parse_token_id(text: str) -> int:
    """The number behind a public token id; ValueError where it is not one."""
    try:
        if text.startswith(("T-", "t-")):
            return parse_job_id(f"J-{text[2:]}")
    except ValueError:
        pass
    # Whoever sends a whole token by mistake must not find it in an error.
    raise ValueError("not a token id (expected T- and 13 letters or digits, as the list of tokens shows)")
