"""Where Kafka's program is: a distribution on the machine, else its jars by Maven, kept in the user's cache.

What was downloaded or made once is found again by every later run; runs that need it at the same time do it
once. The version is pinned here: a cached one is never replaced.
"""

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.servers.machine import Unavailable

KAFKA_VERSION = "4.3.0"
CACHE_VARIABLE = "HOURHAND_TEST_CACHE"

_DOWNLOAD_S = 600.0
_PLACES = ("/opt/kafka/libs", "/usr/share/kafka/libs", "/usr/local/kafka/libs")
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>test</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""


@functools.cache
def find_jars() -> Path:
    """The directory of Kafka's jars; Unavailable says what was tried."""
    if shutil.which("java") is None:
        raise Unavailable(
            "no Kafka: there is no java. Install one (17 or newer), or set HOURHAND_TEST_KAFKA_URL."
        )
    for directory in _on_machine():
        if any(directory.glob("kafka_2.*.jar")):
            return directory
    jars = cache_directory() / f"kafka-{KAFKA_VERSION}" / "lib"
    if jars.is_dir():
        return jars
    with _alone(cache_directory()):
        if not jars.is_dir():
            _download(jars)
    return jars


def cache_directory() -> Path:
    """What may be kept from one run to the next."""
    given = os.environ.get(CACHE_VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(given) if given else Path(base) / "hourhand-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """What this Kafka needs and `make` puts into a directory, unless a run before has done so."""
    program = next(iter(sorted(find_jars().glob("kafka_2.*.jar")))).stem
    directory = cache_directory() / f"{program}-{name}"
    with _alone(cache_directory()):
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent) as work:
                make(Path(work, name))
                Path(work, name).rename(directory)
    return directory


def _on_machine() -> Iterator[Path]:
    if home := os.environ.get("KAFKA_HOME"):
        yield Path(home) / "libs"
    yield from map(Path, _PLACES)


def _download(jars: Path) -> None:
    """Complete or not at all: the directory gets its name when everything is in it."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(
            f"no Kafka: none on this machine (KAFKA_HOME, {', '.join(_PLACES)}), and no mvn to fetch its jars. "
            "Install one of them, or set HOURHAND_TEST_KAFKA_URL."
        )
    jars.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as work:
        Path(work, "pom.xml").write_text(_POM)
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        try:
            answer = subprocess.run(
                command,
                cwd=work,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_DOWNLOAD_S,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Maven did not fetch Kafka's jars within {_DOWNLOAD_S:g} s") from None
        if answer.returncode != 0:
            raise Unavailable(f"Maven could not fetch Kafka's jars: {answer.stdout[-500:]}")
        Path(work, "lib").rename(jars)


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One process at a time."""
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
