"""Writes the tables of README.md again from results/*.json.

python -m benchmarks._table
"""

import json
from pathlib import Path
from typing import Any

from benchmarks._report import RESULTS, shown

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
MOST_OPEN = 40  # figures; a longer table is folded up


def main() -> None:
    """Replace what stands between the marks."""
    results = [json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    text = README.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    tables = "\n".join(_table(result) for result in results)
    README.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")


def _table(result: dict[str, Any]) -> str:
    machine = "{cpu}, {cores} cores, {memory_gb} GB, {system}; Python {python}, SQLite {sqlite}; ".format(
        **result["machine"]
    )
    state = "a synced write takes {sync_ms} ms; load {load} at the start".format(**result["machine"])
    lines = [
        f"### {result['benchmark']}",
        "",
        f"`{result['command']}`, {result['taken_at'][:10]}. {machine}{state}.",
    ]
    if result["figures"]:
        rows = ["| figure | median | rounds | goal |", "|---|---|---|---|", *map(_row, result["figures"])]
        if len(result["figures"]) > MOST_OPEN:
            summary = f"<summary>{len(result['figures'])} figures</summary>"
            rows = ["<details>", summary, "", *rows, "", "</details>"]
        lines += ["", *rows]
    if result["notes"]:
        lines += ["", "```", *result["notes"], "```"]
    return "\n".join([*lines, ""])


def _row(figure: dict[str, Any]) -> str:
    rounds = ", ".join(shown(value) for value in figure["rounds"])
    goal = "" if figure["goal"] is None else f"{figure['goal']}: {'met' if figure['met'] else '**not met**'}"
    return f"| {figure['name']} | {shown(figure['median'])} {figure['unit']} | {rounds} | {goal} |"


if __name__ == "__main__":
    main()
