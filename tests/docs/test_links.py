"""Links lead somewhere, files that are named exist, and examples are what they say they are."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from hourhand.config import load
from tests.docs.texts import Block, anchors, blocks, inline_code, links, name_of
from tools.docs import ROOT, documents

SOURCE = ROOT / "src" / "hourhand"
FILE = re.compile(r"[\w./-]+/[\w.-]+\.(?:py|sql|md|toml|lock|sh)")
OF_READERS = {"app/tasks.py"}  # files that an example asks the reader to write


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for link in links(document):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_files_that_are_named_exist(document: Path) -> None:
    named = {text for text in inline_code(document) if FILE.fullmatch(text) and text[0] not in "./"}
    homes = (ROOT, SOURCE, document.parent)
    gone = [name for name in named - OF_READERS if not any((home / name).exists() for home in homes)]
    assert not gone


def shown(block: Block) -> str:
    return f"{name_of(block.document)}: {block.text.splitlines()[0][:40]}"


@pytest.mark.parametrize("block", blocks("python"), ids=shown)
def test_python_examples_compile(block: Block) -> None:
    compile(block.text, shown(block), "exec")


@pytest.mark.parametrize("block", blocks("json"), ids=shown)
def test_json_examples_are_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("toml"), ids=shown)
def test_settings_examples_are_settings(block: Block, tmp_path: Path) -> None:
    tomllib.loads(block.text)
    file = tmp_path / "hourhand.toml"
    file.write_text(block.text)
    assert load(environment={}, config=file, folder=tmp_path, system_file=tmp_path / "none").findings == ()
