"""One `hourhand up` behind the page, and what tests do to it beside the browser: create jobs, let runs end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.chaos.process import Up, wait_for

FUNCTIONS = "tests.browser.functions"
ENDED = {"SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"}


class Server(Up):
    """The command with the tests' job functions; everything that it is asked goes through the API."""

    def __init__(self, folder: Path, *, arguments: Sequence[str] = ()) -> None:
        super().__init__(folder, arguments=["--import", FUNCTIONS, *arguments])

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}"

    def job(self, name: str, function: str = "well", **document: Any) -> str:
        """A job that is due in years unless the document says otherwise."""
        timing = document.keys() & {"cron", "every", "at", "after"}
        document = document if timing else {"cron": "0 0 1 1 *", **document}
        target = {"type": "python", "function": f"{FUNCTIONS}:{function}"}
        return self.api.create(**{"name": name, "target": target, **document})

    def start_run(self, job: str) -> str:
        """Take a run up by hand; its id."""
        return str(self.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])

    def run(self, job: str) -> str:
        """A run that has ended."""
        run = self.start_run(job)
        wait_for(f"the end of {run}", lambda: self.state_of(run) in ENDED)
        return run

    def state_of(self, run: str) -> str:
        """A run's status."""
        return str(self.api.expect(200, "GET", f"/runs/{run}")["status"])

    def await_state(self, run: str, state: str) -> None:
        """Wait until a run is in a state."""
        wait_for(f"{run} {state}", lambda: self.state_of(run) == state)

    def dead_letter(self, name: str, error: str) -> str:
        """A run that gave up with this error; its id."""
        job = self.job(name, "breaks", payload={"text": error}, retry={"max": 0})
        return self.run(job)

    def document(self, job: str) -> dict[str, Any]:
        """A job as the API has it."""
        found: dict[str, Any] = self.api.expect(200, "GET", f"/jobs/{job}")
        return found
