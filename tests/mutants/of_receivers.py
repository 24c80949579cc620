"""Safeguards of receivers: that what they commit is one effect per run, of no attempt that was overtaken."""

from tests.mutants.mutant import Mutant

_TESTS = "tests/receiver/test_exactly_once.py::"

MUTANTS = (
    Mutant(
        "effect-claim",
        "a receiver's effect happens for the delivery that wrote the run's row, and for no other",
        "receiver/once.py",
        "        return claimed > 0",
        "        return True",
        f"{_TESTS}test_the_first_has_the_effect_and_later_ones_do_not[sqlite: sqlite3]",
        "I2",
        "assert True is False",
    ),
    Mutant(
        "effect-undo",
        "where the effect fails, the row that says it happened goes with it",
        "receiver/once.py",
        "            yield from self._connection.undo()",
        "            yield from self._connection.keep()",
        f"{_TESTS}test_what_raises_leaves_neither_row_nor_effect[sqlite: sqlite3]",
        "I1",
        "assert (['effect', '",
    ),
    Mutant(
        "effect-begin",
        "row and effect are committed by their owner, together",
        "receiver/connections.py",
        '    return "BEGIN IMMEDIATE"',
        "    return None",
        f"{_TESTS}test_nothing_is_committed_before_its_owner_commits[sqlite: sqlite3]",
        "I1",
        "AssertionError: assert (['effect'], ",
    ),
    Mutant(
        "effect-fence",
        "an attempt that a later one has overtaken is refused by the receiver",
        "receiver/once.py",
        "self._attempt < applied",
        "self._attempt < 0",
        f"{_TESTS}test_an_older_attempt_is_refused[sqlite: sqlite3]",
        "I5",
        "DID NOT RAISE",
    ),
)
