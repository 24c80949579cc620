"""Job functions that behave badly, for `--import tests.chaos.functions`; and one that behaves."""

import asyncio
import os
import threading
from pathlib import Path

from hourhand.functions import Hourhand, Run

hh = Hourhand()


@hh.job()
async def well() -> str:
    return "well"


@hh.job()
def never_returns() -> None:
    threading.Event().wait()


@hh.job()
def spins() -> None:
    while True:
        pass


@hh.job()
async def swallows_cancellation() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@hh.job()
def poison(ctx: Run, path: str) -> None:
    """Takes the whole process with it, every time; leaves a line per try."""
    with Path(path).open("a") as file:
        file.write(f"{ctx.run_id} {ctx.attempt}\n")
        file.flush()
        os.fsync(file.fileno())
    os._exit(66)


@hh.job()
def takes_a_while(ctx: Run, path: str, seconds: float) -> str:
    """Leaves a line at its beginning and one at its end."""
    with Path(path).open("a") as file:
        file.write(f"began {ctx.attempt}\n")
    threading.Event().wait(seconds)
    with Path(path).open("a") as file:
        file.write(f"ended {ctx.attempt}\n")
    return "done"
