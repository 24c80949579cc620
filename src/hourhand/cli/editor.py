"""A job's document in the person's editor, and back."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hourhand.errors import Invalid

_ONLY_READ = (
    "job_id", "state", "version", "paused_until", "created_at", "updated_at",
    "next_fire_time", "schedule_in_words", "effective_from",
)  # fmt: skip


def edited(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """The document after the person closed the editor; None if it is the same."""
    before = {name: value for name, value in job.items() if name not in _ONLY_READ}
    with tempfile.NamedTemporaryFile("wb", prefix="hourhand-", suffix=".json", delete=False) as file:
        file.write(msgspec.json.format(msgspec.json.encode(before), indent=2) + b"\n")
    path = Path(file.name)
    _open(path)
    try:
        after = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"what you wrote is not JSON: {error}; it is kept in {path}") from None
    if not isinstance(after, dict):
        raise Invalid(f"a job is a JSON object; what you wrote is kept in {path}")
    path.unlink()
    return None if after == before else after


def _open(path: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603 -- the person's own
    except OSError as error:
        raise Invalid(f"cannot start the editor {editor!r}: {error.strerror}; set EDITOR") from None
    if ended.returncode:
        raise Invalid(f"the editor {editor!r} ended with {ended.returncode}; nothing was changed")
