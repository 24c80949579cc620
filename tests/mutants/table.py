"""The safeguards, each with how it is switched off and who must notice."""

from tests.mutants import (
    of_bounds,
    of_claims,
    of_durability,
    of_graphs,
    of_identity,
    of_planning,
    of_postgres,
    of_queues,
    of_receivers,
    of_repair,
)

MUTANTS = (
    *of_identity.MUTANTS,
    *of_planning.MUTANTS,
    *of_claims.MUTANTS,
    *of_bounds.MUTANTS,
    *of_repair.MUTANTS,
    *of_durability.MUTANTS,
    *of_graphs.MUTANTS,
    *of_postgres.MUTANTS,
    *of_queues.MUTANTS,
    *of_receivers.MUTANTS,
)
