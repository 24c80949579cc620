"""The options of commands that wait for a run, and what comes of a run that such a command has made."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.options import Call
from hourhand.cli.run_view import watch

Wait = Annotated[bool, typer.Option("--wait", help="Until it is done; exit 7 if it does not succeed.")]
Timeout = Annotated[str | None, typer.Option(metavar="30s", help="How long to wait at most; then exit 9.")]


def made_run(
    call: Call, answer: Mapping[str, Any], words: str, *, wait: bool, timeout_s: float | None
) -> int | None:
    """Say what run was made, or wait until it has ended; the exit code."""
    if wait and not call.dry_run:
        return watch(call, answer["run_id"], timeout_s)
    call.out.document(answer, answer["run_id"], lambda: call.out.line(words))
    return None
