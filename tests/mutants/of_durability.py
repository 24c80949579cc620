"""Safeguards of answers: what was answered stays, what failed left nothing, and nobody else has the file."""

from tests.mutants.mutant import CHAOS, Mutant

_COMMITS = """        connection.execute("BEGIN IMMEDIATE")
        results: list[Any] = []
        hints: set[str] = set()
        for one in asked:
            results.append(_execute(connection, clock, one, hints))
        connection.execute("COMMIT")
"""
_ANSWERS_FIRST = """        if not connection.in_transaction:
            connection.execute("BEGIN IMMEDIATE")
        results: list[Any] = []
        hints: set[str] = set()
        for one in asked:
            results.append(_execute(connection, clock, one, hints))
"""

MUTANTS = (
    Mutant(
        "answer-after-commit",
        "nobody is answered before the commit is on the disk",
        "stores/sqlite/engine.py",
        _COMMITS,
        _ANSWERS_FIRST,
        f"{CHAOS}/test_interrupted.py::test_an_acknowledged_job_survives_the_next_instant",
        "I9",
        "404",
    ),
    Mutant(
        "no-node-outlives-its-process",
        "who opens the file knows that all earlier nodes are gone",
        "stores/sqlite/file.py",
        'connection.execute(statements()["end_all_nodes"])',
        "pass",
        f"{CHAOS}/test_interrupted.py::test_an_interrupted_call_goes_on_at_once_under_the_same_key",
        "I7",
        "+ 5000000)",
    ),
    Mutant(
        "one-process-per-file",
        "a file that one process has open is refused to a second",
        "stores/sqlite/file.py",
        "fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        f"{CHAOS}/test_files.py::test_a_second_one_on_the_same_file_is_refused_and_the_first_goes_on[False]",
        "I11",
        "TimeoutExpired",
    ),
)
