"""What every SQL store says of values that it cannot keep."""

from hourhand.errors import Invalid


def unkeepable() -> Invalid:
    """The error of a text or number that no column holds. It should have been refused before; says nothing of the value."""
    return Invalid(
        "a text or a number that the store cannot keep: expected texts without NUL (U+0000) and half characters, "
        "and whole numbers within 64 bits"
    )
