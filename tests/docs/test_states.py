"""docs/states.md is the transition table, printed."""

from hourhand.core.lifecycle import as_markdown
from tools.docs import STATES


def test_the_states_are_those_of_the_table() -> None:
    assert STATES.read_text("utf-8") == as_markdown(), "run make docs"
