"""The pytest plugin, by the examples of its guide."""

import re
from importlib.metadata import entry_points

import pytest

from tests.docs.texts import blocks

pytest_plugins = ("pytester",)

_FILE = re.compile(r"# (\S+\.py)\n")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    installed = any(entry.name == "hourhand" for entry in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "hourhand.pytest_plugin")
    return pytester.runpytest_inprocess(
        *plugin, "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", *arguments
    )


def test_the_examples_of_the_guide_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for block in blocks("python"):
        if block.document.name == "testing.md" and (named := _FILE.match(block.text)):
            (pytester.path / named[1]).write_text(block.text)
            written.append(named[1])
    monkeypatch.syspath_prepend(pytester.path)
    assert {"tasks.py", "test_daily_report.py", "test_policies.py"} <= set(written)
    run(pytester).assert_outcomes(passed=9)


def test_nothing_is_loaded_before_somebody_asks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "hourhand.pytest_plugin" in sys.modules
            assert not any(name.startswith(("hourhand.simulation", "hourhand.services")) for name in sys.modules)
        """
    )
    installed = any(entry.name == "hourhand" for entry in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "hourhand.pytest_plugin")
    pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider").assert_outcomes(passed=1)
