"""The table of mutants holds: each fits the source, names who notices, and the quickest are tried out here.

`make mutants` tries all of them out.
"""

import re
from collections import Counter

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.running import ROOT, SOURCE, CannotApply, mutated, try_out
from tests.mutants.seen import read_seen
from tests.mutants.table import MUTANTS

INVARIANTS = {f"I{number}" for number in range(1, 15)}
QUICK_LIMIT_S = 120

by_name = pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
quick = [mutant for mutant in MUTANTS if mutant.quick]


@by_name
def test_it_still_fits_the_source(mutant: Mutant) -> None:
    text = (SOURCE / "hourhand" / mutant.file).read_text("utf-8")
    assert mutated(mutant, text) != text


@by_name
def test_it_says_who_notices_and_has_been_seen_to(mutant: Mutant) -> None:
    assert mutant.invariant in INVARIANTS
    sight = read_seen().get(mutant.name)
    assert sight is not None, "try it out: make mutants ARGS='--record NAME'"
    if mutant.is_simulated:
        assert sight.seed is not None
        assert sight.said.startswith(f"{mutant.invariant} ")
        return
    file, _, rest = mutant.caught_by.partition("::")
    name = rest.partition("[")[0]
    text = (ROOT / file).read_text("utf-8")
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), "no such test"
    assert mutant.says, "a test may fail for any reason: say which words it fails with"


def test_no_two_have_the_same_name() -> None:
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert set(read_seen()) == {mutant.name for mutant in MUTANTS}


def test_a_text_that_is_gone_or_doubled_is_told() -> None:
    mutant = MUTANTS[0]
    with pytest.raises(CannotApply, match="0 times"):
        mutated(mutant, "")
    with pytest.raises(CannotApply, match="2 times"):
        mutated(mutant, mutant.old * 2)


def test_a_test_that_notices_nothing_is_told() -> None:
    harmless = MUTANTS[0]._replace(new=MUTANTS[0].old, caught_by="tests/core/test_sharing.py", says="x")
    finding = try_out(harmless, limit_s=QUICK_LIMIT_S)
    assert not finding.noticed
    assert "exit code 0" in finding.why


@pytest.mark.parametrize("mutant", quick, ids=[mutant.name for mutant in quick])
def test_a_missing_safeguard_is_noticed(mutant: Mutant) -> None:
    assert "postgres" not in mutant.caught_by, "needs a server of its own: too slow for every run"
    seen = read_seen()[mutant.name]
    finding = try_out(mutant, first_seed=seen.seed, limit_s=QUICK_LIMIT_S)
    assert finding.noticed, finding.why
