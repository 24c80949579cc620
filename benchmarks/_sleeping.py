"""A job function that holds its run until an instant, for `concurrent_runs`."""

import asyncio
import time

from hourhand.functions import Hourhand

hh = Hourhand()


@hh.function
async def sleep_until(until_s: float) -> None:
    """Sleep until a time since the epoch."""
    await asyncio.sleep(max(0.0, until_s - time.time()))


SLEEP_UNTIL = sleep_until.function_name
MODULE = __name__
