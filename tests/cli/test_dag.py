"""Graphs on the command line: drawn, checked in files, made, run down, waited for, and refused."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.cli.files.changing import parts
from hourhand.cli.files.documents import FileJob
from hourhand.cli.graphs.drawing import Drawn, draw
from hourhand.core.dag import levels

Edges = list[tuple[str, str]]


def drawn(edges: Edges, names: str = "", width: int = 80, ascii_only: bool = False, **statuses: str) -> str:
    found = list(dict.fromkeys([*names.split(), *(name for edge in edges for name in edge)]))
    ids = {name: number for number, name in enumerate(found, start=1)}
    parents = {ids[name]: tuple(ids[a] for a, b in edges if b == name) for name in found}
    depth = levels(parents)
    jobs = [
        Drawn(
            ident=ids[name],
            label=name,
            parents=parents[ids[name]],
            level=depth[ids[name]],
            status=statuses.get(name),
        )
        for name in found
    ]
    rows = draw(jobs, width=width, ascii_only=ascii_only)
    return "\n" + "\n".join("".join(text for text, _ in row) for row in rows) + "\n"


DIAMOND: Edges = [("top", "left"), ("top", "right"), ("left", "join"), ("right", "join")]


def test_one_job() -> None:
    assert (
        drawn([], "alone")
        == """
┌───────┐
│ alone │
└───────┘
"""
    )


def test_a_chain() -> None:
    assert (
        drawn([("one", "two"), ("two", "six")])
        == """
┌─────┐
│ one │
└──┬──┘
   │
┌──▼──┐
│ two │
└──┬──┘
   │
┌──▼──┐
│ six │
└─────┘
"""
    )


def test_a_diamond_with_outcomes() -> None:
    assert (
        drawn(DIAMOND, top="SUCCEEDED", left="FAILED", right="RUNNING", join="SKIPPED")
        == """
       ┌───────┐
       │ ✓ top │
       └───┬───┘
      ┌────┴────────┐
┌─────▼───┐   ┌─────▼───┐
│ ✗ left  │   │ ▶ right │
└────┬────┘   └────┬────┘
     └────────┬────┘
        ┌─────▼───┐
        │ – join  │
        └─────────┘
"""
    )


def test_a_join_beside_a_fork_does_not_look_like_one() -> None:
    assert (
        drawn([("a", "c"), ("b", "c"), ("b", "d")])
        == """
┌───┐ ┌───┐
│ a │ │ b │
└─┬─┘ └─┬─┘
  └┐ ┌──┴────┐
 ┌─▼─▼─┐  ┌──▼┐
 │  c  │  │ d │
 └─────┘  └───┘
"""
    )


def test_an_edge_past_a_level() -> None:
    assert (
        drawn([("a", "b"), ("b", "c"), ("a", "c")])
        == """
┌───┐
│ a │
└─┬─┘
  ├──────┐
┌─▼─┐    │
│ b │   ┌┘
└─┬─┘   │
  └────┬┘
   ┌───▼─┐
   │  c  │
   └─────┘
"""
    )


def test_lines_that_cross() -> None:
    edges = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "y"), ("c", "z"), ("d", "z"), ("d", "x")]
    assert (
        drawn(edges, ascii_only=True)
        == """
+---+   +---+ +---+   +---+
| a |   | b | | c |   | d |
+-+-+   +-+-+ +-+-+   +-+-+
  ++------+--+ +|-------++
   | +-------|-|+------+ |
+--v-v--+ +--v-v--+  +-v-v-+
|   y   | |   x   |  |  z  |
+-------+ +-------+  +-----+
"""
    )


def test_what_does_not_fit_is_told_level_by_level() -> None:
    edges = [(f"source-{number}", "join") for number in range(3)]
    assert "┌" in drawn(edges, width=60)
    assert (
        drawn(edges, width=24)
        == """
level 0
    source-0
    source-1
    source-2
level 1
    join  after source-0, source-1, source-2
"""
    )


def test_names_are_cut_before_a_picture_is_given_up() -> None:
    picture = drawn([("a-name-that-goes-on-and-on", "b")], width=22)
    assert "│ a-name-that-goe…  │" in picture


def test_wide_and_hostile_names_keep_the_boxes_whole() -> None:
    assert (
        drawn([], "日報")
        == """
┌───────┐
│ 日報  │
└───────┘
"""
    )
    assert "\x1b" not in drawn([], "a\x1b[31mb")
    assert "┌" not in drawn([], "日報", ascii_only=True)


@given(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40), st.integers(20, 200))
def test_any_graph_is_drawn_whole_and_within_its_width(pairs: list[tuple[int, int]], width: int) -> None:
    edges = sorted({(f"j{min(pair)}", f"j{max(pair)}") for pair in pairs if pair[0] != pair[1]})
    picture = drawn(edges, "j0 j1", width=width)
    for name in {name for edge in edges for name in edge}:
        assert re.search(rf"\b{name}\b", picture)
    if "┌" in picture:
        lines = picture.splitlines()
        assert max(map(len, lines)) <= width
        arrows = picture.count("▼")
        assert (arrows > 0) == bool(edges)
        for row, line in enumerate(lines):  # no line ends in the middle of nowhere
            for column, sign in enumerate(line):
                if sign in "│┌┐┬├┤┼":
                    below = lines[row + 1][column : column + 1] if row + 1 < len(lines) else ""
                    assert below in list("│└┘┴├┤┼▼┬┌┐─"), picture
        assert not set("╴╵╶╷") & set(picture)


def test_two_hundred_jobs_are_shown(hourhand: Any) -> None:
    edges = [(f"root-{n // 40}", f"job-{n}") for n in range(200)]
    listed = drawn(edges, width=120)
    assert listed.count("\n") == 2 + 205 + 1
    assert "job-199  after root-4" in listed


# --- files


def check(hourhand: Any, folder: Path, text: str, *options: str) -> Any:
    file = folder / "jobs.yaml"
    file.write_text(text)
    return hourhand("dag", "check", str(file), *options)


GOOD = """
- {key: a, cron: 0 9 * * *, target: "https://example.com"}
- {key: b, cron: 0  9 * * *, tz: UTC, target: "https://example.com"}
- {key: c, after: [a, b], target: "https://example.com"}
"""


def test_good_graphs_in_files(hourhand: Any, tmp_path: Path) -> None:
    done = check(hourhand, tmp_path, GOOD)
    assert (done.code, done.out, done.err) == (0, "", "3 jobs, 1 of them after others: all good\n")


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("- {key: a, after: [b]}\n- {key: b, after: [a]}", "closes a cycle: a after b after a"),
        ("- {key: a, after: [nobody]}", "a: after.0: no job in these files has the key 'nobody'"),
        ("- {key: a, after: []}", "expected 1 to 100 jobs, got 0"),
        (
            "- {key: a, cron: '@daily'}\n- {key: b, cron: '@hourly'}\n- {key: c, after: [a, b]}",
            "b: cron: all roots of a graph need the same schedule: 'a' has '@daily' in UTC, 'b' has '@hourly' in UTC",
        ),
        (
            "- {key: a, every: 5m}\n- {key: b, every: 5m}\n- {key: c, after: [a, b]}",
            "b: every: roots that share an interval need the same phase",
        ),
        ("- {key: a, key: b}", "is given twice"),
    ],
)
def test_findings_in_files(hourhand: Any, tmp_path: Path, text: str, finding: str) -> None:
    done = check(hourhand, tmp_path, text)
    assert done.code == 8
    assert finding in done.out
    assert check(hourhand, tmp_path, text, "--json").json["findings"]


def test_a_graph_goes_to_the_server_whole() -> None:
    def job(key: str) -> FileJob:
        return FileJob(key=key, document={"key": key}, file="f", line=1)

    small, large = [job(f"s{n}") for n in range(300)], [job(f"l{n}") for n in range(1_000)]
    sizes = [len(part) for part in parts([small, small, large, small])]
    assert sizes == [300, 300, 1_000, 300]
    assert [len(part) for part in parts([[*large, *small]])] == [500, 500, 300]


# --- against a server


@pytest.fixture
def graph(hourhand: Any, server: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """A root that fails or succeeds, and two jobs below it; their names and ids."""
    prefix = re.sub(r"\W", "", request.node.name)[-24:]
    function = getattr(request, "param", "succeed")
    ids = {}
    for name, *schedule in (
        ("root", "--cron", "0 0 1 1 *"),
        ("middle", "--after", f"{prefix}-root", "--wait", "2h"),
        ("last", "--after", f"{prefix}-root", "--after", f"{prefix}-middle"),
    ):
        target = function if name == "root" else "succeed"
        done = hourhand(
            "jobs", "create", f"{prefix}-{name}", *schedule,
            "--python", f"functions_for_cli:{target}", "--retries", "0", "-q",
        )  # fmt: skip
        assert done.code == 0, done.err
        ids[name] = done.out.strip()
    return {**ids, "prefix": prefix}


def test_jobs_that_follow_others_say_so(hourhand: Any, graph: dict[str, str]) -> None:
    prefix = graph["prefix"]
    shown = hourhand("jobs", "show", graph["last"]).out
    assert f"schedule     after {prefix}-root and {prefix}-middle\n" in shown
    assert f"next         runs when {prefix}-root and {prefix}-middle have succeeded\n" in shown
    assert "wait         2h\n" in hourhand("jobs", "show", graph["middle"]).out
    coming = hourhand("jobs", "next", graph["middle"])
    assert coming.err == f"it has no times of its own: it runs when {prefix}-root has succeeded\n"
    assert f"after {graph['root']}" in hourhand("jobs", "versions", graph["middle"]).out


def test_a_parent_cannot_be_deleted(hourhand: Any, graph: dict[str, str]) -> None:
    for options in (("-y",), ("--dry-run",)):
        done = hourhand("jobs", "delete", graph["root"], *options)
        assert done.code == 5
        assert f"'{graph['prefix']}-middle', '{graph['prefix']}-last' would follow nobody" in done.err


def test_roots_change_together(hourhand: Any, server: str, graph: dict[str, str]) -> None:
    other = hourhand(
        "jobs",
        "create",
        f"{graph['prefix']}-other",
        "--cron",
        "0 0 1 1 *",
        "--url",
        "https://example.com",
        "-q",
    ).out.strip()
    parents = [option for job in (graph["root"], other) for option in ("--after", job)]
    assert hourhand("jobs", "update", graph["middle"], *parents).code == 0
    alone = hourhand("jobs", "update", other, "--cron", "0 0 2 1 *")
    assert alone.code == 2
    assert "--with-roots" in alone.err
    assert hourhand("jobs", "update", other, "--cron", "0 0 2 1 *", "--with-roots").code == 0
    assert hourhand("jobs", "show", graph["root"], "--json").json["cron"] == "0 0 2 1 *"


def test_a_run_goes_down_and_is_drawn(hourhand: Any, graph: dict[str, str]) -> None:
    tried = hourhand("jobs", "run", graph["root"], "--downstream", "--dry-run")
    assert tried.err == "2 jobs would run after it, if it succeeds\n"
    done = hourhand("jobs", "run", graph["root"], "--downstream", "--wait", "--timeout", "30s")
    assert (done.code, "2 jobs run after it, if it succeeds\n" in done.err) == (0, True)
    ended = [line.split()[0].partition("@") for line in done.out.splitlines() if "@" in line]
    assert [job for job, _, _ in ended] == [graph["root"], graph["middle"], graph["last"]]
    assert len({at for _, _, at in ended}) == 1
    again = hourhand("jobs", "run", graph["root"], "--downstream", "--wait", "--timeout", "30s", "--json")
    assert [run["status"] for run in again.json["data"]] == ["SUCCEEDED"] * 3
    picture = hourhand("dag", "show", graph["middle"], "--runs", "latest", "--width", "80")
    assert picture.out.count("✓") == 3
    assert f"*{graph['prefix']}-middle" in picture.out
    assert "✓ succeeded\n" in picture.err
    assert picture.out.isascii() is False
    assert hourhand("dag", "show", graph["middle"], "--ascii").out.isascii()
    assert len(hourhand("dag", "show", graph["middle"], "--json").json["edges"]) == 3


@pytest.mark.parametrize("graph", ["fail"], indirect=True)
def test_a_failure_goes_down_and_is_sent_back_with_what_follows(hourhand: Any, graph: dict[str, str]) -> None:
    done = hourhand("jobs", "run", graph["root"], "--downstream", "--wait", "--timeout", "30s")
    assert done.code == 7
    run_id = next(line for line in done.out.splitlines() if "@" in line).split()[0]
    at = run_id.partition("@")[2]
    middle = hourhand("runs", "watch", f"{graph['middle']}@{at}", "--timeout", "30s")
    culprit = f"upstream: {graph['prefix']}-root is FAILED"
    assert (middle.code, culprit in middle.out) == (7, True)
    assert culprit in hourhand("runs", "show", f"{graph['middle']}@{at}").out
    assert culprit in hourhand("jobs", "history", graph["middle"]).out
    assert hourhand("runs", "watch", f"{graph['last']}@{at}", "--timeout", "30s").code == 7
    hourhand("jobs", "update", graph["root"], "--python", "functions_for_cli:hang")
    tried = hourhand("dlq", "requeue", run_id, "--downstream", "--dry-run")
    assert tried.out == "would requeue 1 dead letter\n"
    assert tried.err == "what was skipped because of them would wait again\n"
    back = hourhand("dlq", "requeue", run_id, "--downstream")
    assert (back.code, back.out) == (0, "requeued 1 dead letter\n")
    assert back.err == "what was skipped because of them waits again\n"
    waiting = hourhand("runs", "show", f"{graph['middle']}@{at}").out
    assert re.search(rf"waiting      waits for {graph['prefix']}-root until \S+ \S+", waiting)
    assert f"waits for {graph['prefix']}-root until" in hourhand("jobs", "history", graph["middle"]).out
    assert hourhand("runs", "cancel", run_id).code == 0
