"""The part of `peers` that runs inside APScheduler's own environment: knows nothing of hourhand.

python _apscheduler.py add|fire memory|FILE COUNT     prints one JSON object
"""

import json
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import apscheduler
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

THREADS = 10  # the default
PATIENCE_S = 300.0
PROBES = 50
ADD_S = 20.0  # a slow store is not waited for longer
starts_s = []
all_started = threading.Event()
expected = 0


def note_start():
    """The function of every job."""
    starts_s.append(time.time())
    if len(starts_s) == expected:
        all_started.set()


def note_nothing():
    """The function of jobs that are not due."""


def scheduler(place):
    """A scheduler on memory or on a SQLite file, which never skips a job for being late."""
    store = MemoryJobStore() if place == "memory" else SQLAlchemyJobStore(url=f"sqlite:///{place}")
    return BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(THREADS)},
        job_defaults={"misfire_grace_time": None},
        timezone=UTC,
    )


def add(place, count):
    """Jobs a second that one caller adds to a running scheduler, one after another, as its API has it."""
    running = scheduler(place)
    running.start()
    daily = IntervalTrigger(days=1, start_date=datetime.now(UTC) + timedelta(hours=12))
    began_s = time.perf_counter()
    added = 0
    while added < count and time.perf_counter() - began_s < ADD_S:
        running.add_job("_apscheduler:note_nothing", daily)
        added += 1
    took_s = time.perf_counter() - began_s
    running.shutdown(wait=False)
    return {"rate": added / took_s, "added": added}


def fire(place, count):
    """How late jobs that are due at the same instant start, in milliseconds."""
    global expected
    expected = count
    running = scheduler(place)
    running.start(paused=True)  # spares it a wake-up at each job that is added
    due = datetime.now(UTC) + timedelta(seconds=3 + 2 * count * seconds_to_add(running))
    for _ in range(count):
        running.add_job("_apscheduler:note_start", IntervalTrigger(days=1, start_date=due))
    wait_s = (due - datetime.now(UTC)).total_seconds()
    if wait_s < 1:
        return {"error": "adding the jobs took longer than foreseen"}
    running.resume()
    all_started.wait(wait_s + PATIENCE_S)
    running.shutdown(wait=False)
    lags_ms = sorted((start_s - due.timestamp()) * 1000 for start_s in starts_s)
    if len(lags_ms) < count:
        return {"error": f"only {len(lags_ms)} of {count} started within {PATIENCE_S:g} s"}
    return {"p50": lags_ms[count // 2], "p99": lags_ms[int(count * 0.99)], "most": lags_ms[-1]}


def seconds_to_add(running):
    """How long one job takes, so that the due time can lie after the last."""
    far = datetime.now(UTC) + timedelta(days=2)
    began_s = time.perf_counter()
    for _ in range(PROBES):
        running.add_job("_apscheduler:note_nothing", IntervalTrigger(days=1, start_date=far))
    took_s = time.perf_counter() - began_s
    running.remove_all_jobs()
    return took_s / PROBES


if __name__ == "__main__":
    # As a module of its own name, so that a stored reference to a function means the same list.
    import _apscheduler

    what, where, number = sys.argv[1:]
    found = getattr(_apscheduler, what)(where, int(number))
    print(json.dumps({"version": apscheduler.__version__, **found}))
