"""What documents say of settings, routes, metrics and limits is what the code says."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.texts import name_of
from tools.docs import BLOCKS, documents, filled


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_generated_parts_are_up_to_date(document: Path) -> None:
    text = document.read_text("utf-8")
    assert filled(text) == text, "run make docs"


def test_every_generated_part_has_its_place() -> None:
    texts = [document.read_text("utf-8") for document in documents()]
    places = Counter(name for text in texts for name in re.findall(r"<!-- generated: (\w+) -->", text))
    assert places == dict.fromkeys(BLOCKS, 1)


def test_a_stale_part_is_noticed() -> None:
    assert (
        filled("<!-- generated: routes -->\n| old |\n<!-- end -->")
        != "<!-- generated: routes -->\n| old |\n<!-- end -->"
    )
