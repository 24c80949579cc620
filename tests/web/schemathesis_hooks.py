"""What schemathesis cannot know by itself: how lines of JSON are written."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """One document per line."""
    documents = value if isinstance(value, list) else [value]
    return b"\n".join(json.dumps(one).encode() for one in documents)
