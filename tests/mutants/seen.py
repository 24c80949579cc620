"""What noticed each mutant when `make mutants ARGS=--record` was run last: the seed, and what was said."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).with_name("seen.json")


class Sight(NamedTuple):
    """How a mutant was noticed."""

    seed: int | None  # of the simulation, where it was that
    said: str


def read_seen() -> dict[str, Sight]:
    """By the mutants' names."""
    kept = json.loads(_FILE.read_text("utf-8")) if _FILE.exists() else {}
    return {name: Sight(**sight) for name, sight in kept.items()}


def write_seen(seen: Mapping[str, Sight]) -> None:
    """Keep it, a line each."""
    lines = [
        f"  {json.dumps(name)}: {json.dumps(sight._asdict(), ensure_ascii=False)}"
        for name, sight in seen.items()
    ]
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
