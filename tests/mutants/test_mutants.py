"""The table of mutants holds: each fits the source, names a test that there is, and the quickest are tried out here.

`make mutants` tries all of them out.
"""

import re
from collections import Counter

import pytest

from tests.mutants.running import ROOT, SOURCE, CannotApply, mutated, try_out
from tests.mutants.table import MUTANTS, Mutant

INVARIANTS = {f"I{number}" for number in range(1, 15)}
QUICK_LIMIT_S = 120

by_name = pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
quick = [mutant for mutant in MUTANTS if mutant.quick]


@by_name
def test_it_still_fits_the_source(mutant: Mutant) -> None:
    text = (SOURCE / "hourhand" / mutant.file).read_text("utf-8")
    assert mutated(mutant, text) != text


@by_name
def test_it_names_a_test_that_there_is_and_what_that_says(mutant: Mutant) -> None:
    file, _, rest = mutant.caught_by.partition("::")
    name = rest.partition("[")[0]
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), (
        "no such test"
    )
    assert mutant.says, "a test may fail for any reason: say which words it fails with"
    assert mutant.invariant in INVARIANTS


def test_no_two_have_the_same_name() -> None:
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1


def test_a_text_that_is_gone_or_doubled_is_told() -> None:
    mutant = MUTANTS[0]
    with pytest.raises(CannotApply, match="0 times"):
        mutated(mutant, "")
    with pytest.raises(CannotApply, match="2 times"):
        mutated(mutant, mutant.old * 2)


def test_a_test_that_notices_nothing_is_told() -> None:
    harmless = MUTANTS[0]._replace(new=MUTANTS[0].old, caught_by="tests/core/test_sharing.py")
    finding = try_out(harmless, limit_s=QUICK_LIMIT_S)
    assert not finding.noticed
    assert "exit code 0" in finding.why


@pytest.mark.parametrize("mutant", quick, ids=[mutant.name for mutant in quick])
def test_a_missing_safeguard_is_noticed(mutant: Mutant) -> None:
    assert "postgres" not in mutant.caught_by, "needs a server of its own: too slow for every run"
    finding = try_out(mutant, limit_s=QUICK_LIMIT_S)
    assert finding.noticed, finding.why
