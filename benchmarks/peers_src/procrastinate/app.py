"""procrastinate's side of the comparison: fill a fresh database with jobs, or work them and say how long it took.

    python app.py fill URL COUNT      apply the schema, defer COUNT no-op jobs
    python app.py work URL COUNT      work them; prints {"seconds": S} once none is left

Settings: async tasks with concurrency (its guide "Launch a worker and configure concurrency"), a pool as large, the
C implementation of psycopg, several worker processes, as one fetches its jobs one by one; `delete_jobs="never"`, the
default, keeps what succeeded.
"""

import asyncio
import json
import multiprocessing as mp
import sys
import time

import procrastinate
import psycopg

PROCESSES = 2  # 1 halves the rate; 4 and 8 add nothing on two cores
CONCURRENCY = 10
FILL_BATCH = 5_000
PAUSE_S = 0.02
LEFT = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"


def app_on(url):
    """An application with one task, on a pool that serves every concurrent job."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=CONCURRENCY, max_size=CONCURRENCY + 2)
    return procrastinate.App(connector=connector)


async def fill(url, count):
    """Defer in batches, its fastest way in."""
    app = app_on(url)

    @app.task(name="noop")
    async def noop():
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for done in range(0, count, FILL_BATCH):
            await noop.batch_defer_async(*({} for _ in range(min(FILL_BATCH, count - done))))


async def serve(url, executed, ready, begin):
    """One worker process; it ends when the queue is empty."""
    app = app_on(url)

    @app.task(name="noop")
    async def noop():
        executed.value += 1  # one writer each

    async with app.open_async():
        ready.release()
        await asyncio.to_thread(begin.wait)
        await app.run_worker_async(
            wait=False, concurrency=CONCURRENCY, delete_jobs="never", install_signal_handlers=False
        )


def serve_process(*arguments):
    """The entry of a worker process."""
    asyncio.run(serve(*arguments))


def work(url, count):
    """Start all at one signal, and wait until the last outcome is committed."""
    context = mp.get_context("spawn")
    ready, begin = context.Semaphore(0), context.Event()
    counts = [context.RawValue("q", 0) for _ in range(PROCESSES)]
    workers = [context.Process(target=serve_process, args=(url, each, ready, begin)) for each in counts]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    began_s = time.perf_counter()
    begin.set()
    with psycopg.connect(url, autocommit=True) as connection:
        while sum(each.value for each in counts) < count:
            if not any(worker.is_alive() for worker in workers):
                raise SystemExit("the workers ended before the jobs did")
            time.sleep(PAUSE_S)
        while connection.execute(LEFT).fetchone()[0]:
            time.sleep(PAUSE_S)
    took_s = time.perf_counter() - began_s
    for worker in workers:
        worker.join()
    return {"seconds": took_s, "executed": sum(each.value for each in counts)}


if __name__ == "__main__":
    what, where, number = sys.argv[1:]
    if what == "fill":
        asyncio.run(fill(where, int(number)))
    else:
        print(json.dumps(work(where, int(number))))
