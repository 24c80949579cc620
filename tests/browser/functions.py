"""Job functions for the page's tests, for `--import tests.browser.functions`: they do what their payload says."""

import asyncio

from hourhand.functions import GiveUp, Hourhand, Run

hh = Hourhand()


@hh.job()
async def well(text: str = "well") -> str:
    return text


@hh.job()
async def breaks(text: str = "it broke") -> None:
    raise GiveUp(text)


@hh.job()
async def logs(ctx: Run, lines: int = 3) -> None:
    for number in range(lines):
        ctx.log.info(f"<b>line</b> {number}")


@hh.job()
async def hangs(ctx: Run) -> None:
    ctx.progress(0.4, "waiting for the end")
    await asyncio.Event().wait()
