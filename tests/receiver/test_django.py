"""`exactly_once` on Django's own connection. Two deliveries at the same moment are in `tests/examples`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCENES = Path(__file__).with_name("django_scenes.py")
DEADLINE_S = 60


@pytest.mark.parametrize("on", ["sqlite", "postgres"])
def test_its_transactions_hold_row_and_effect(
    on: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = str(tmp_path / "receiver.db") if on == "sqlite" else request.getfixturevalue("postgres_url")
    done = subprocess.run(
        [sys.executable, str(SCENES), url], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "outside of atomic": True,
        "undone": [],
        "ledger": ["effect", "note"],
        "forgotten": 0,
    }
