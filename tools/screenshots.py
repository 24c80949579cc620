"""Makes the pictures of the page in docs/images: `make screenshots`, or `python -m tools.screenshots`.

Starts `hourhand up` on a file of its own with the jobs of an invented shop and a past that is the same every time,
looks at each view in a real Chromium, light and dark and on a phone, and keeps what it sees. Only the times differ.
"""

import base64
import contextlib
import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from playwright.sync_api import Browser, Page, expect, sync_playwright

from hourhand.core.identity import parse_job_id
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.stores.relational.rows import STATE_CODES
from tests.browser.chromium import launch_options
from tools.shown_jobs import HISTORY

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150_000
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
DAY_S = 86_400
DEADLINE_S = 60.0
REFUSED = "connect to warehouse.internal:443: connection refused"
TIMED_OUT = "POST https://mail.example/send: no answer within 30 s"

# name, schedule, how often it ran in the past (seconds), usual duration (ms), more of the document
Shown = tuple[str, dict[str, Any], int, int, dict[str, Any]]
JOBS: list[Shown] = [
    ("warehouse-report", {"after": ["warehouse-load"]}, 600, 800, {"tags": ["warehouse"]}),
    ("warehouse-load", {"after": ["warehouse-extract"]}, 600, 2600, {"tags": ["warehouse"]}),
    ("warehouse-extract", {"cron": "*/10 * * * *"}, 600, 1900, {"tags": ["warehouse"], "key": "warehouse/extract"}),
    ("token-rotation", {"cron": "0 3 * * sun", "tz": "America/New_York"}, 7 * 86400, 90, {"tags": ["security"]}),
    ("newsletter", {"cron": "0 10 * * tue", "tz": "Europe/Paris"}, 7 * 86400, 41000, {"tags": ["mail"]}),
    ("invoice-mail", {"cron": "15 7 * * *", "tz": "Europe/Berlin"}, 86400, 5200, {"tags": ["billing", "mail"]}),
    ("nightly-backup", {"cron": "30 2 * * *", "tz": "Europe/Berlin"}, 86400, 340000, {"tags": ["ops"], "timeout": "30m"}),
    ("orders-to-warehouse", {"every": "5m"}, 300, 420, {"tags": ["orders"], "retry": {"max": 1, "first": "1s"}}),
    ("search-index", {"cron": "*/5 * * * *"}, 300, 3100, {"tags": ["search"]}),
    ("stock-sync", {"every": "1m"}, 60, 240, {"tags": ["orders", "stock"], "priority": "HIGH"}),
    ("price-feed", {"every": "20s"}, 20, 35, {"tags": ["stock"], "priority": "HIGH"}),
    ("daily-report", {"cron": "0 9 * * mon-fri", "tz": "Europe/Berlin"}, 86400, 1450, {"tags": ["billing"], "key": "billing/daily"}),
]  # fmt: skip


class Shop:
    """The server behind the pictures."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request to the API."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def create(self, shown: Shown, made: dict[str, str]) -> str:
        """One of the jobs; its id."""
        name, timing, _, _, more = shown
        if "after" in timing:
            timing = {"after": [made[parent] for parent in timing["after"]]}
        function, payload = "works", {"items": 240}
        if name == "orders-to-warehouse":
            function, payload = "fails", {"text": REFUSED}
        if name == "daily-report":
            function, payload = "reports", {"region": "eu"}
        target = {"type": "python", "function": f"tools.shown_jobs:{function}"}
        return str(
            self.ask("POST", "/jobs", {"name": name, "target": target, "payload": payload, **timing, **more})[
                "job_id"
            ]
        )


def main() -> None:
    """Make all of them."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "shop.db"
        with serving(data, "-m", "hourhand") as shop:
            made: dict[str, str] = {}
            for shown in sorted(JOBS, key=lambda one: "after" in one[1] and len(JOBS) - JOBS.index(one)):
                made[shown[0]] = shop.create(shown, made)
        give_past(data, made)
        with serving(data, "-m", "tools.shown_jobs") as shop, sync_playwright() as playwright:
            places = last_touches(shop, made)
            options: dict[str, Any] = launch_options()
            chromium = playwright.chromium.launch(**options)
            for scheme in ("light", "dark"):
                shoot(chromium, shop, made, places, scheme)
            shoot_phone(chromium, shop)
            chromium.close()


@contextlib.contextmanager
def serving(data: Path, *module: str) -> Iterator[Shop]:
    """`hourhand up` on the file, until it is no longer needed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, *module, "up", "--port", str(port), "--data", str(data), "--no-demo"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        HISTORY: str(data),
    }
    process = subprocess.Popen(
        [*command, "--import", "tools.shown_jobs"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        await_ready(port, process)
        yield Shop(port)
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def await_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Return once it answers."""
    end_s = time.monotonic() + DEADLINE_S
    while process.poll() is None and time.monotonic() < end_s:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5),
        ):
            return
        time.sleep(0.1)
    raise SystemExit("hourhand up did not become ready")


def give_past(data: Path, made: dict[str, str]) -> None:
    """Runs of the last weeks: mostly well, some retried, some skipped, a stretch that failed."""
    draw, now_at = random.Random(5), time.time_ns() // 1000
    rows: list[tuple[Any, ...]] = []
    for name, timing, every_s, usual_ms, _ in JOBS:
        job = parse_job_id(made[name])
        for back, at in enumerate(past_times(timing, every_s, now_at)):
            rows += past_run(draw, name, job, at, back, usual_ms)
    rows.sort(key=lambda row: row[8])
    with contextlib.closing(sqlite3.connect(data)) as connection, connection:
        connection.executemany(
            "INSERT OR IGNORE INTO history (job_id, scheduled_at, attempt, state, trigger, tries, due_at, started_at,"
            " finished_at, version, worker, detail) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, 1, 'shop-1', ?)",
            [(*row[:4], *row[5:]) for row in rows],
        )


def past_times(timing: dict[str, Any], every_s: int, now_at: int) -> Iterator[int]:
    """When it fired before, newest first."""
    if every_s < DAY_S:
        newest_s = now_at // SECOND_US // every_s * every_s
        for back in range(1, max(40, 3600 // every_s) + 1):
            yield (newest_s - back * every_s) * SECOND_US
        return
    minute, hour, _, _, weekdays = timing["cron"].split()
    for back in range(1, 29):
        day = datetime.fromtimestamp(now_at / SECOND_US, ZoneInfo(timing["tz"])) - timedelta(days=back)
        if weekdays in ("*", f"{day:%a}".lower()) or (weekdays == "mon-fri" and day.weekday() < 5):
            yield (
                int(day.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0).timestamp())
                * SECOND_US
            )


def past_run(
    draw: random.Random, name: str, job: int, at: int, back: int, usual_ms: int
) -> list[tuple[Any, ...]]:
    """One run of the past, an attempt a row."""
    lag_us = round(draw.lognormvariate(1.2, 0.7) * 1000)
    took_us = round(usual_ms * draw.lognormvariate(0, 0.25) * 1000)
    started_at, finished_at = at + lag_us, at + lag_us + took_us

    def row(attempt: int, state: State, tries: int, error: str | None = None) -> tuple[Any, ...]:
        detail = None if error is None else json.dumps({"error": error})
        return (job, at, attempt, STATE_CODES[state], 0, tries, at, started_at, finished_at, detail)

    if name == "orders-to-warehouse" and back < 4:
        return [row(1, State.RETRYING, 1, REFUSED), row(2, State.FAILED, 2, REFUSED)]
    if name == "invoice-mail" and back == 6:
        return [row(1, State.FAILED, 1, TIMED_OUT)]
    if name == "search-index" and back in (7, 8):
        skipped = json.dumps({"reason": "overlap: the run before it was still running"})
        return [(job, at, 1, STATE_CODES[State.SKIPPED], 0, 0, at, None, at + MINUTE_US // 60, skipped)]
    if draw.random() < 0.04:
        return [row(1, State.RETRYING, 1, TIMED_OUT), row(2, State.SUCCEEDED, 1)]
    return [row(1, State.SUCCEEDED, 0)]


def last_touches(shop: Shop, made: dict[str, str]) -> dict[str, str]:
    """What happened just now: changes, runs, dead letters. Answers the addresses of the views."""
    shop.ask(
        "POST", f"/jobs/{made['newsletter']}/pause", {"note": "INC-42: the template is broken, Kim mends it"}
    )
    shop.ask("PATCH", f"/jobs/{made['nightly-backup']}", {"timeout": "45m"})
    for name, times in (("orders-to-warehouse", 3), ("stock-sync", 2), ("warehouse-extract", 1)):
        for _ in range(times):
            ended(shop, shop.ask("POST", f"/jobs/{made[name]}/run")["run_id"])
    shop.ask("PATCH", f"/jobs/{made['orders-to-warehouse']}", {"payload": {"text": TIMED_OUT}})
    ended(shop, shop.ask("POST", f"/jobs/{made['orders-to-warehouse']}/run")["run_id"])
    shop.ask("PATCH", f"/jobs/{made['orders-to-warehouse']}", {"payload": {"text": REFUSED}})
    run = ended(shop, shop.ask("POST", f"/jobs/{made['daily-report']}/run")["run_id"])
    return {
        "now": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{made['nightly-backup']}",
        "edit": f"/jobs/{made['nightly-backup']}/edit",
        "run": f"/runs/{run}",
        "dead-letters": "/dead-letters",
    }


def ended(shop: Shop, run: str) -> str:
    """Wait for the end of a run."""
    end_s = time.monotonic() + DEADLINE_S
    while shop.ask("GET", f"/runs/{run}")["status"] in ("PENDING", "RUNNING", "RETRYING"):
        if time.monotonic() > end_s:
            raise SystemExit(f"{run} does not end")
        time.sleep(0.1)
    return run


def let_some_run(shop: Shop, made: dict[str, str]) -> None:
    """What just ended, in the order that the picture has it."""
    for name in (
        "price-feed",
        "stock-sync",
        "warehouse-extract",
        "search-index",
        "invoice-mail",
        "price-feed",
    ):
        ended(shop, shop.ask("POST", f"/jobs/{made[name]}/run")["run_id"])


READY = {
    "now": "[aria-labelledby=feed-title] li:nth-child(6)",
    "jobs": "tbody tr svg.strip",
    "job": ".chart canvas",
    "edit": ".preview .diff",
    "run": ".log",
    "dead-letters": ".groups li",
}


def shoot(chromium: Browser, shop: Shop, made: dict[str, str], places: dict[str, str], scheme: str) -> None:
    """Every view on a desk."""
    context = chromium.new_context(
        viewport=DESKTOP,
        color_scheme=scheme,
        reduced_motion="reduce",
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )  # type: ignore[arg-type]
    page = context.new_page()
    for name, address in places.items():
        page.goto(shop.url + address)
        expect(page.locator(".live")).to_have_text("Live")
        if name == "now":
            let_some_run(shop, made)
        if name == "edit":
            page.get_by_label("Cron expression").fill("30 1,2 * * *")
        expect(page.locator(READY[name]).first).to_be_visible(timeout=DEADLINE_S * 1000)
        keep(page, name if scheme == "light" else f"{name}-dark")
    context.close()


def shoot_phone(chromium: Browser, shop: Shop) -> None:
    """Three views on a phone, side by side."""
    context = chromium.new_context(
        viewport=PHONE,
        color_scheme="light",
        reduced_motion="reduce",
        has_touch=True,
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )
    page, shots = context.new_page(), []
    for name, address in (("now", "/"), ("jobs", "/jobs"), ("dead-letters", "/dead-letters")):
        page.goto(shop.url + address)
        expect(page.locator(READY[name] if name != "now" else ".figures").first).to_be_visible(
            timeout=DEADLINE_S * 1000
        )
        shots.append(page.screenshot())
    context.close()
    side_by_side(chromium, shots)


def side_by_side(chromium: Browser, shots: list[bytes]) -> None:
    """One picture of several, with a little room between them."""
    pictures = "".join(
        f'<img src="data:image/png;base64,{base64.b64encode(shot).decode()}">' for shot in shots
    )
    style = "body{margin:0;padding:16px;display:flex;gap:16px;background:#d9dde3}img{border-radius:14px;display:block}"
    width = len(shots) * (PHONE["width"] + 16) + 16
    context = chromium.new_context(viewport={"width": width, "height": PHONE["height"] + 32})
    page = context.new_page()
    page.set_content(f"<style>{style}</style>{pictures}")
    keep(page, "phone")
    context.close()


def keep(page: Page, name: str) -> None:
    """The picture's file; one that has become too large is an error."""
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}  {size // 1000} KB")
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} has {size:,} bytes, more than {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
