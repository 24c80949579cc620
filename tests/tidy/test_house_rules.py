"""The house rules that no linter knows, as tests. Each failure names file and line, and what to do instead."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "hourhand"

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

READS_THE_TIME = {"clock.py"}
DRAWS_RANDOMNESS = {"ids.py"}
RANDOM_MODULES = {"random", "secrets", "uuid"}
NOW_METHODS = {"now", "utcnow", "today"}

MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|Users|root|work)/[\w.-]+")
# Split, so that this file does not break its own rule.
REGISTRY_HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org", "--index-" + "url")
TEXT_SUFFIXES = {
    "",
    ".cfg",
    ".cql",
    ".css",
    ".html",
    ".in",
    ".js",
    ".json",
    ".lock",
    ".md",
    ".py",
    ".sh",
    ".sql",
}
TEXT_SUFFIXES |= {".toml", ".txt", ".yaml", ".yml"}


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def project_files() -> list[Path]:
    """What is or would be committed; without git, everything outside hidden folders."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    if (ROOT / ".git").exists():
        answer = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True)
        found = [ROOT / name for name in answer.stdout.split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not path.relative_to(ROOT).parts[0].startswith(".venv")]
    return sorted(path for path in found if path.is_file() and path.suffix in TEXT_SUFFIXES)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text("utf-8"), filename=str(path)))


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """Every call as written: `print`, `datetime.now`, `datetime.datetime.now`."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.lineno, ast.unparse(node.func)


def test_there_is_source_to_hold_to_the_rules() -> None:
    assert SOURCE / "__init__.py" in source_files()
    assert ROOT / "Makefile" in project_files()


def test_files_stay_short() -> None:
    lengths = {relative(path): len(path.read_text("utf-8").splitlines()) for path in source_files()}
    too_long = {name: count for name, count in lengths.items() if count > FILE_LINES_MAX}
    assert not too_long, f"split these, at most {FILE_LINES_MAX} lines: {too_long}"


def test_functions_stay_short() -> None:
    too_long = [
        f"{relative(path)}:{node.lineno} {node.name}"
        for path in source_files()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert not too_long, f"split these, at most {FUNCTION_LINES_MAX} lines: {too_long}"


def test_every_module_says_what_it_owns() -> None:
    silent = [
        relative(path) for path in source_files() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert not silent, f"these need a module docstring: {silent}"


def test_only_the_cli_prints() -> None:
    printing = [
        f"{relative(path)}:{line}"
        for path in source_files()
        if SOURCE / "cli" not in path.parents
        for line, name in calls(path)
        if name == "print"
    ]
    assert not printing, f"log, or return the text to the cli: {printing}"


def test_only_the_clock_reads_the_time() -> None:
    readers = [
        f"{relative(path)}:{line}"
        for path in source_files()
        if path.name not in READS_THE_TIME
        for line, name in [*imported_modules(path), *calls(path)]
        if name == "time" or (name.split(".")[-1] in NOW_METHODS and re.search(r"\bdate(time)?\.", name))
    ]
    assert not readers, f"take `now` or a Clock as an argument: {readers}"


def test_only_ids_draw_randomness() -> None:
    drawing = [
        f"{relative(path)}:{line} {module}"
        for path in source_files()
        if path.name not in DRAWS_RANDOMNESS
        for line, module in imported_modules(path)
        if module in RANDOM_MODULES
    ]
    assert not drawing, f"take ids and randomness from outside, by way of ids.py: {drawing}"


def test_tests_wait_on_events_instead_of_sleeping() -> None:
    sleeping = [
        f"{relative(path)}:{line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, name in calls(path)
        if name in {"time.sleep", "sleep"}
    ]
    assert not sleeping, f"wait on an event with a deadline: {sleeping}"


@pytest.mark.parametrize("what", ["machine path", "registry host"])
def test_nothing_ties_the_project_to_one_machine(what: str) -> None:
    found = [
        f"{relative(path)}:{number} {line.strip()[:80]}"
        for path in project_files()
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1)
        if (what == "machine path" and names_machine_path(line))
        or (what == "registry host" and any(host in line for host in REGISTRY_HOSTS))
    ]
    assert not found, f"{what}: {found}"


def names_machine_path(line: str) -> bool:
    own = str(ROOT) if len(ROOT.parts) > 2 else None
    return MACHINE_PATH.search(line) is not None or (own is not None and own in line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("open('/home" + "/ann/data.csv')", True),
        ("see /Users" + "/ann", True),
        ("https://example.com/home/ann", False),
        ("GET /api/v1/jobs", False),
        ("tests/work/here", False),
    ],
)
def test_machine_paths_are_told_from_urls(line: str, expected: bool) -> None:
    assert names_machine_path(line) is expected
