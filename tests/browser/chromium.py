"""Finds a Chromium: the one that the environment names, one of the PATH, else Debian's package.

Playwright's own browsers are not downloaded: a test must not fetch programs by itself.
"""

import functools
import os
import shutil
from pathlib import Path

from tests.servers.machine import Unavailable, install_debian_package

VARIABLE = "HOURHAND_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@functools.cache
def chromium_path() -> Path:
    """Where the browser is; Unavailable says why there is none, and what would help."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise Unavailable(f"{VARIABLE} names {named}, which is no file")
        return Path(named)
    found = _on_path()
    if found is None:
        try:
            install_debian_package("chromium")
        except Unavailable as error:
            raise Unavailable(f"no Chromium: {error}; or set {VARIABLE}") from error
        found = _on_path()
    if found is None:
        raise Unavailable(f"no Chromium on the PATH; set {VARIABLE}")
    return found


def launch_options() -> dict[str, object]:
    """What playwright needs to start it; root's Chromium has no sandbox of its own."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    return {"executable_path": str(chromium_path()), "args": arguments}


def _on_path() -> Path | None:
    for name in _NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
    return None
