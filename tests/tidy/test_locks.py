"""The hash locks fit the declared dependencies, each other, and every machine."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
PIN = re.compile(r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^ \\;]+)", re.MULTILINE)
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def pins(lock: str) -> dict[str, str]:
    text = (REQUIREMENTS / lock).read_text("utf-8")
    return {match["name"]: match["version"] for match in PIN.finditer(text)}


def names(requirements: list[str]) -> set[str]:
    matches = (NAME.match(line) for line in requirements)
    return {match.group().lower().replace("_", "-").replace(".", "-") for match in matches if match}


def input_names(file: str) -> set[str]:
    return names((REQUIREMENTS / file).read_text("utf-8").splitlines())


def test_every_declared_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = names(project["project"]["dependencies"]) | names(project["build-system"]["requires"])
    assert len(declared) > 10
    assert declared | input_names("build.in") <= pins("base.lock").keys(), "run make lock"
    assert input_names("dev.in") <= pins("dev.lock").keys(), "run make lock"


def test_tests_run_on_the_versions_that_users_install() -> None:
    assert pins("base.lock").items() <= pins("dev.lock").items(), "run make lock"


def test_every_pin_has_a_hash_and_no_address() -> None:
    for lock in ("base.lock", "dev.lock"):
        text = (REQUIREMENTS / lock).read_text("utf-8")
        assert "://" not in text
        entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert len(entries) == len(pins(lock))
        unhashed = [entry.partition(" ")[0] for entry in entries if "--hash=sha256:" not in entry]
        assert not unhashed
