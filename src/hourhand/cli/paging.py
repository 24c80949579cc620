"""The options of lists."""

from typing import Annotated

import typer

Limit = Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")]
Cursor = Annotated[str | None, typer.Option(metavar="CURSOR", help="Where to go on: from the page before.")]
OfJob = Annotated[str | None, typer.Option(metavar="JOB", help="Only of one job.")]
