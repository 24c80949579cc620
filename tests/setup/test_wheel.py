"""The wheel: everything in it that is needed and nothing else, and it works from an empty environment.

Built by uv where it is installed, with the hatchling of this environment and without the network. What it depends on comes from the lock, by hash,
through uv too, else through pip; where neither can reach an index, that part is skipped, in CI failed.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from hourhand import __version__
from tests.cli.conftest import read_until
from tests.servers.machine import skip_or_fail

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "hourhand"
MOST_BYTES = 2_000_000
DEADLINE_S = 300


def uv() -> str | None:
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


def build(kind: str, folder: Path, out: Path) -> Path:
    if (found := uv()) is not None:
        offline = ["--quiet", "--offline", "--no-build-isolation", "--python", sys.executable]
        command = [found, "build", f"--{kind}", *offline, "--out-dir", str(out)]
    else:
        command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)]
    checked(command, folder)
    (built,) = (path for path in out.iterdir() if not path.name.startswith("."))
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def source_files() -> set[Path]:
    return {path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_everything_of_the_package_and_nothing_else_is_inside(wheel: Path) -> None:
    found = contents(wheel)
    own = {name for name in found if not name.startswith(f"hourhand-{__version__}.dist-info/")}
    assert own == {path.relative_to(SOURCE.parent).as_posix() for path in source_files()}
    assert all(
        found[path.relative_to(SOURCE.parent).as_posix()] == path.read_bytes() for path in source_files()
    )
    endings = {Path(name).suffix for name in own}
    assert {".py", ".sql", ".typed", ".html", ".js", ".css", ".svg"} <= endings
    assert wheel.name == f"hourhand-{__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < MOST_BYTES


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    packed = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(packed) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")
    top = {name.partition("/")[0] for name in names}
    assert top == {f"hourhand-{__version__}"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".db", ".pyc"))]
    again = build("wheel", tmp_path / f"hourhand-{__version__}", tmp_path / "again")
    assert contents(again) == contents(wheel)


def test_it_works_from_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    binaries = installed(wheel, tmp_path / "env")
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(*command: str) -> str:
        arguments = [str(binaries / command[0]), *command[1:]]
        return subprocess.run(
            arguments, cwd=empty, env=bare(), check=True, capture_output=True, text=True, timeout=DEADLINE_S
        ).stdout

    assert run("hourhand", "--version") == f"hourhand {__version__}\n"
    assert run("python", "-m", "hourhand", "--version") == f"hourhand {__version__}\n"
    where = run("python", "-c", "import hourhand; print(hourhand.__file__)").strip()
    assert Path(where).is_relative_to(tmp_path / "env")
    with up(binaries / "hourhand", empty) as url:
        done = msgspec.json.decode(
            run("hourhand", "--server", url, "jobs", "run", "hello", "--wait", "--json")
        )
        assert done["status"] == "SUCCEEDED"
        (empty / "jobs.yaml").write_text("- {key: a, cron: '0 9 * * *', target: 'https://example.com'}\n")
        assert "created 1" in run("hourhand", "--server", url, "apply", "jobs.yaml")
        assert get(f"{url}/api/v1/jobs?limit=1")[0] == "application/json"
        assert get(f"{url}/openapi.json")[0] == "application/json"
        check_page(url)
    assert sorted(path.name for path in empty.iterdir() if not path.name.startswith("hourhand.db")) == [
        "jobs.yaml"
    ]


def installed(wheel: Path, folder: Path) -> Path:
    """The commands of a new environment that has the wheel and what the lock pins, and nothing else."""
    lock = str(ROOT / "requirements" / "base.lock")
    binaries = folder / "bin"
    if (found := uv()) is None:
        checked([sys.executable, "-m", "venv", str(folder)])
        install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
        check = [str(binaries / "python"), "-m", "pip", "check"]
    else:
        checked([found, "venv", "--quiet", "--python", sys.executable, str(folder)])
        install = [found, "pip", "install", "--quiet", "--python", str(binaries / "python")]
        check = [found, "pip", "check", "--python", str(binaries / "python")]
    try:
        checked([*install, "--require-hashes", "-r", lock])
    except subprocess.CalledProcessError as error:
        skip_or_fail(f"what the lock pins cannot be installed here: {error.stderr.decode()[-500:]}")
    checked([*install, "--no-deps", str(wheel)])
    checked(check)
    return binaries


def checked(command: Sequence[str], folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=DEADLINE_S)


@contextmanager
def up(command: Path, folder: Path) -> Iterator[str]:
    environment = bare() | {"HOURHAND_WORKER_DRAIN": "0s"}
    with subprocess.Popen(
        [str(command), "up", "--port", "0"], cwd=folder, env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield read_until(process.stdout.fileno(), rb"http://[\d.:]+").decode()
        finally:
            process.terminate()
            assert process.wait(DEADLINE_S) == 0


def check_page(url: str) -> None:
    """The page is there, and everything that it loads."""
    kind, page = get(f"{url}/", accept="text/html")
    assert (kind, b"<title>hourhand</title>" in page) == ("text/html", True)
    loaded = set(re.findall(r'(?:href|src)="(/[^"]+\.\w+)"', page.decode()))
    assert len(loaded) > 10
    kinds = {path.rpartition(".")[2]: get(url + path)[0] for path in sorted(loaded)}
    assert kinds.items() >= {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}.items()


def get(url: str, accept: str = "*/*") -> tuple[str, bytes]:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        return answer.headers.get_content_type(), answer.read()


def bare() -> dict[str, str]:
    """The environment without what would let this tree's code in."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and not name.startswith("HOURHAND_")
    }
