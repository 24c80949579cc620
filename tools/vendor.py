"""Copies the page's few libraries into the package, as ES modules that name one another by relative path.

Takes a folder with the unpacked packages, each as `npm pack NAME` gives it (`NAME-VERSION/…`); fetches nothing.
Browsers take no import map from a file, and the page allows no inline script: so specifiers are rewritten.

    python tools/vendor.py FOLDER
"""

import hashlib
import json
import re
import sys
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[1] / "src" / "hourhand" / "web" / "page" / "vendor"

# package, file in it, name here
FILES = (
    ("preact", "dist/preact.mjs", "preact.js"),
    ("preact", "hooks/dist/hooks.mjs", "hooks.js"),
    ("@preact/signals-core", "dist/signals-core.mjs", "signals-core.js"),
    ("@preact/signals", "dist/signals.mjs", "signals.js"),
    ("htm", "dist/htm.mjs", "htm.js"),
    ("uplot", "dist/uPlot.esm.js", "uplot.js"),
    ("uplot", "dist/uPlot.min.css", "uplot.css"),
)
SPECIFIERS = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
}
_IMPORT = re.compile(r'(\bfrom ?|\bimport ?)"([@\w][\w@/-]*)"')
_SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=\S+\s*$")
_HEAD = """# What the page brings along

ES modules of others, unchanged but for the specifiers of their imports and their links to source maps.
Made by `python tools/vendor.py FOLDER`; a test holds the files to these sums.

| file | package | version | licence | SHA-256 |
|---|---|---|---|---|
"""


def main(folder: Path) -> None:
    """Write every file, the licences, and the table of what is here."""
    packages = {
        found["name"]: (path.parent, found)
        for path in sorted(folder.glob("*/package.json"))
        if (found := json.loads(path.read_text("utf-8")))["name"] in {package for package, _, _ in FILES}
    }
    VENDOR.mkdir(parents=True, exist_ok=True)
    lines = []
    for package, source, name in FILES:
        place, about = packages[package]
        text = adapted((place / source).read_text("utf-8"))
        (VENDOR / name).write_text(text, "utf-8")
        sum_ = hashlib.sha256(text.encode()).hexdigest()
        lines.append(f"| {name} | {package} | {about['version']} | {about['license']} | `{sum_}` |")
    licences = [
        f"{package}\n{'=' * len(package)}\n\n{(place / 'LICENSE').read_text('utf-8').strip()}\n"
        for package, (place, _) in sorted(packages.items())
    ]
    (VENDOR / "LICENSES.txt").write_text("\n\n".join(licences), "utf-8")
    (VENDOR / "README.md").write_text(_HEAD + "\n".join(lines) + "\n", "utf-8")


def adapted(text: str) -> str:
    """A module whose imports lead to its neighbours."""
    return _IMPORT.sub(lambda found: f'{found[1]}"{SPECIFIERS[found[2]]}"', _SOURCE_MAP.sub("\n", text))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
