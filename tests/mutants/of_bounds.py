"""Safeguards of what is bounded: what waits, what is made up for, and how long others wait for one tenant's flood."""

from tests.mutants.mutant import ORDERED, SIMULATION, Mutant

MUTANTS = (
    Mutant(
        "room",
        "a worker takes no more than it has room for",
        "services/worker.py",
        "            room=room,\n",
        "            room=room * 10,\n",
        SIMULATION,
        "I13",
    ),
    Mutant(
        "queue-is-bounded",
        "a queue of runs that wait for a slot has an end",
        "core/overlap.py",
        "return FullVerdict(wait=len(waiting) < MAX_QUEUED)",
        "return FullVerdict(wait=True)",
        f"{ORDERED}[claim/claim_of_a_long_queue]",
        "I13",
        "more wait for a slot than a queue is long",
    ),
    # --- one tenant beside another
)
