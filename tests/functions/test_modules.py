"""Importing what a worker serves: from the working directory, with the traceback where it fails."""

import sys
from pathlib import Path

import pytest

from hourhand.errors import CannotStart
from hourhand.functions import REGISTRY, load_modules


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def test_functions_of_the_working_directory(project: Path) -> None:
    package = project / "served_app"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tasks.py").write_text(
        "from hourhand import Hourhand\nhh = Hourhand()\n@hh.job(every='1m')\ndef tick(): return 1\n"
    )
    functions = load_modules(["served_app.tasks"])
    assert functions is REGISTRY
    document = functions.pop("served_app.tasks:tick").document()
    assert document is not None
    assert document["every"] == "1m"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\nraise RuntimeError('broken')\n", ["RuntimeError: broken", "line 2", "raise RuntimeError"]),
        ("import missing_dependency\n", ["No module named 'missing_dependency'", "line 1"]),
        ("import sys\nsys.exit(3)\n", ["SystemExit: 3", "line 2"]),
        ("def broken(:\n", ["SyntaxError", "def broken(:"]),
    ],
)
def test_an_import_error_shows_its_traceback(project: Path, source: str, words: list[str]) -> None:
    name = f"broken_module_{abs(hash(source))}"
    (project / f"{name}.py").write_text(source)
    with pytest.raises(CannotStart) as refusal:
        load_modules([name])
    assert refusal.value.message.startswith(f"--import {name} failed:\n")
    for word in words:
        assert word in refusal.value.message
    assert "importlib" not in refusal.value.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module_here", "there is no module 'no_such_module_here'"),
        ("no_such_package.tasks", "there is no module 'no_such_package'"),
        ("app/tasks.py", "dotted name"),
        ("", "dotted name"),
        (".tasks", "dotted name"),
    ],
)
def test_a_module_that_is_not_there(project: Path, name: str, words: str) -> None:
    with pytest.raises(CannotStart, match=words):
        load_modules([name])
