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
        "catch-up-is-bounded",
        "no more missed times wait for a slot than their job makes up for",
        "core/plan.py",
        "return sorted(waiting)[: -misfire.limit]",
        "return []",
        f"{ORDERED}[claim/claim_of_missed_times]",
        "I13",
        "more missed times wait than are made up for",
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
    Mutant(
        "lanes-take-turns",
        "tenants with runs of one class take turns, however many wait of one",
        "stores/sqlite/sql/claims.sql",
        "ORDER BY rank, lane < :turn, lane, due_at LIMIT -1 OFFSET :keep",
        "ORDER BY due_at, lane LIMIT -1 OFFSET :keep",
        SIMULATION,
        "I10",
    ),
)
