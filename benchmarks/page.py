"""How long the page takes with a million jobs and ten million runs: every request of every view, and what a person sees.

The file is loaded by a few statements, then the real `hourhand up` serves it. First each request that a view makes is asked again
and again over one connection; then a Chromium opens the views, filters, turns pages and opens a job. First paint is the browser's
own figure; an interaction lasts from the click to the frame that shows its outcome. Typing waits 200 ms for the next letter
on purpose, and is not measured. Without a Chromium the first part is all.

    python -m benchmarks.page [--jobs 1000000] [--runs 10000000] [--dead 10000] [--times 200] [--rounds 3] [--quick]
"""

import argparse
import contextlib
import http.client
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import uvloop
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks._page_data import RARE_TAG, Loaded, load
from benchmarks._process import hourhand_up
from benchmarks._report import Report, Size, below, options_of, percentile
from benchmarks._system import scratch
from hourhand.web.page_files import page as page_files
from tests.browser.chromium import launch_options
from tests.servers.machine import Unavailable

INTERACTION_MS = 100
WEIGHT_KB = 200
_TIMEOUT_S = 60.0


class Api:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)

    def get(self, path: str) -> Any:
        """The document behind a path."""
        self._connection.request("GET", f"/api/v1{path}")
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
        return msgspec.json.decode(body)

    def taken_ms(self, path: str, times: int) -> list[float]:
        """How long it takes, again and again, in order of length."""
        self.get(path)
        taken = []
        for _ in range(times):
            began_s = time.perf_counter()
            self.get(path)
            taken.append((time.perf_counter() - began_s) * 1000)
        return sorted(taken)


def requests(api: Api, loaded: Loaded) -> dict[str, str]:
    """What each view asks, by a name for people."""
    first = api.get("/jobs?limit=50&payload=false")
    ids = [("job_id", one["job_id"]) for one in first["data"]]
    deep = first
    for _ in range(5):
        if deep["next_cursor"]:
            deep = api.get(f"/jobs?limit=50&payload=false&cursor={quote(deep['next_cursor'])}")
    job, run_id = f"/jobs/{loaded.busy_job}", f"/runs/{loaded.failed_run}"
    cause = quote(api.get("/dead-letters?group_by=error&limit=1")["data"][0]["value"])
    listed = "/jobs?limit=50&payload=false"
    return {
        "now: overview": "/overview",
        "jobs: first page": listed,
        "jobs: a later page": f"{listed}&cursor={quote(deep['next_cursor'] or first['next_cursor'] or '')}",
        "jobs: strips of a page": f"/jobs/strips?{urlencode([*ids, ('limit', '30')])}",
        "jobs: by a name's beginning": f"{listed}&name=copy-00",
        "jobs: by a tag of one in twenty": f"{listed}&tag=team-7",
        "jobs: by a tag of one in a thousand": f"{listed}&tag={RARE_TAG}",
        "jobs: paused": f"{listed}&state=paused",
        "jobs: active": f"{listed}&state=active",
        "jobs: completed, of which there are none": f"{listed}&state=completed",
        "jobs: failing": f"{listed}&failing=true",
        "job: itself": job,
        "job: next": f"{job}/next?n=10",
        "job: runs, of 100,000": f"{job}/history?limit=60&coming=false",
        "job: versions": f"{job}/versions",
        "job: graph": f"{job}/graph",
        "run: itself": run_id,
        "run: log": f"{run_id}/log",
        "dead letters: causes": "/dead-letters?group_by=error&limit=100",
        "dead letters: of a cause": f"/dead-letters?error={cause}&limit=50",
    }


# --- what a person sees


def seen(browser: Browser, base: str, loaded: Loaded) -> dict[str, float]:
    """First paint of each view, and each interaction, in ms; by names for people."""
    found: dict[str, float] = {}
    views = {
        "now": ("/", ".figures"),
        "jobs": ("/jobs", "tbody tr"),
        "job": (f"/jobs/{loaded.busy_job}", ".times li"),
        "run": (f"/runs/{loaded.failed_run}", ".timeline"),
        "dead letters": ("/dead-letters", ".groups li"),
    }
    for name, (path, shows) in views.items():
        with contextlib.closing(browser.new_context(viewport={"width": 1440, "height": 900})) as context:
            page = context.new_page()
            page.goto(base + path)
            page.locator(shows).first.wait_for()
            found[f"first paint: {name}"] = page.evaluate(
                "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
    with contextlib.closing(browser.new_context(viewport={"width": 1440, "height": 900})) as context:
        page = context.new_page()
        page.goto(f"{base}/jobs")
        page.locator("tbody tr svg.strip").first.wait_for()
        interact(page, found)
    return found


def interact(page: Page, found: dict[str, float]) -> None:
    """A person looks around among the jobs."""
    rows, first = "tbody tr[data-row]", "document.querySelector('tbody tr[data-row]')?.dataset.row"

    def timed(name: str, act: str, holds: str) -> None:
        found[f"interaction: {name}"] = page.evaluate(
            f"""() => new Promise((resolve, reject) => {{
              const was = {first};
              const began = performance.now();
              {act};
              const look = () => {{
                if ({holds}) return requestAnimationFrame(() => resolve(performance.now() - began));
                if (performance.now() - began > 30000) return reject(new Error({name!r} + ": it never came"));
                return requestAnimationFrame(look);
              }};
              look();
            }})"""
        )

    changed = f"{first} && {first} !== was && document.querySelector('.table-wrap').getAttribute('aria-busy') !== 'true'"
    choose = "(() => {{ const one = document.querySelector('.filters select'); one.value = '{}'; one.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
    button = "[...document.querySelectorAll('.pager button')].find((one) => one.textContent.includes('{}')).click()"
    timed("next page", button.format("Next"), changed)
    timed("previous page", button.format("Previous"), changed)
    states, idle = (
        "[...document.querySelectorAll('tbody tr .status')]",
        "document.querySelector('[aria-busy=true]') === null",
    )
    paused = "(one) => one.textContent.includes('paused')"
    timed("filter by state", choose.format("paused"), f"{idle} && {states}.every({paused})")
    timed("no filter", choose.format(""), f"{idle} && !{states}.every({paused})")
    timed(
        "open a job",
        f"document.querySelector('{rows} .row-link').click()",
        "document.querySelector('.run-strip a')",
    )
    timed(
        "open a run",
        "document.querySelector('tr[data-row] .row-link').click()",
        "document.querySelector('.timeline')",
    )
    timed(
        "go to Dead letters",
        "document.querySelector('nav.top a[href=\"/dead-letters\"]').click()",
        "document.querySelector('.groups li')",
    )
    timed(
        "go to Now",
        "document.querySelector('nav.top a[href=\"/\"]').click()",
        "document.querySelector('.figures')",
    )


# --- the whole


def main() -> None:
    options = options_of(
        __doc__ or "",
        Size("jobs", 1_000_000, 2_000, "jobs"),
        Size("runs", 10_000_000, 20_000, "runs in history"),
        Size("dead", 10_000, 100, "dead letters"),
        Size("times", 200, 10, "how often each request is asked"),
    )
    report = Report("page", options)
    with scratch() as folder:
        data = Path(folder) / "bench.db"
        loaded = uvloop.run(load(data, options.jobs, options.runs, options.dead))
        report.note(
            f"{loaded.jobs:,} jobs and {loaded.runs:,} runs in {data.stat().st_size / 1e9:.1f} GB, loaded in {loaded.took_s:.0f} s"
        )
        with hourhand_up(data, "--import", "benchmarks._system") as up:
            ask(report, Api(up.port), loaded, options)
            look(report, f"http://127.0.0.1:{up.port}", loaded, options)
    files = page_files()
    weight = sum(len(asset.packed) for asset in (*files.assets.values(), files.index)) / 1000
    report.figure("weight of the page, packed", "KB", [weight], below(WEIGHT_KB))
    report.save()


def ask(report: Report, api: Api, loaded: Loaded, options: argparse.Namespace) -> None:
    """Every request of every view."""
    for name, path in requests(api, loaded).items():
        rounds = [api.taken_ms(path, options.times // options.rounds or 1) for _ in range(options.rounds)]
        report.figure(f"{name}, p50", "ms", [percentile(taken, 0.5) for taken in rounds])
        report.figure(
            f"{name}, p99", "ms", [percentile(taken, 0.99) for taken in rounds], below(INTERACTION_MS)
        )


def look(report: Report, base: str, loaded: Loaded, options: argparse.Namespace) -> None:
    """In a real browser, if there is one."""
    try:
        launch: dict[str, Any] = launch_options()
    except Unavailable as error:
        report.note(f"nothing was seen: {error}")
        return
    rounds: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch)
        seen(browser, base, loaded)  # warms both sides
        for _ in range(options.rounds):
            for name, ms in seen(browser, base, loaded).items():
                rounds.setdefault(name, []).append(ms)
        browser.close()
    for name, times in rounds.items():
        report.figure(name, "ms", times, below(INTERACTION_MS) if name.startswith("interaction") else None)


if __name__ == "__main__":
    main()
