"""One thing that is wrong with what somebody wrote: where, what was expected, what came."""

import msgspec


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of one field; the edges turn it into problem+json or a line for people."""

    pointer: str  # JSON pointer, "" for the whole document
    expected: str
    got: str | None = None
    hint: str | None = None
