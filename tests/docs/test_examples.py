"""What a document quotes of an example stands there, word by word; and every example is quoted."""

import re

import pytest

from tests.docs.texts import Block, blocks
from tools.docs import ROOT

_QUOTE = re.compile(r"# from (examples/\w+\.py)\n")
QUOTES = [(found[1], block) for block in blocks("python") if (found := _QUOTE.match(block.text))]


@pytest.mark.parametrize(("file", "block"), QUOTES, ids=[file for file, _ in QUOTES])
def test_it_stands_there(file: str, block: Block) -> None:
    assert block.text.partition("\n")[2].strip() in (ROOT / file).read_text("utf-8")


def test_every_example_is_quoted() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("*.py")}
    assert {file for file, _ in QUOTES} == files
