"""`next` and `cron check`, which need no server."""

import json
from pathlib import Path

import pytest


def test_times_come_with_offsets_on_stdout_and_words_on_stderr(hourhand) -> None:
    done = hourhand(
        "next", "0 9 * * mon-fri", "--tz", "Europe/Berlin", "-n", "3", "--after", "2026-10-23T12:00:00Z"
    )
    assert done.code == 0
    assert done.out.splitlines() == [
        "2026-10-26T09:00:00+01:00  Mon",
        "2026-10-27T09:00:00+01:00  Tue",
        "2026-10-28T09:00:00+01:00  Wed",
    ]
    assert done.err == "at 09:00 on Monday to Friday, Europe/Berlin\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--after", "2026-03-28T12:00:00Z"],
            "2026-03-29T03:00:00+02:00  Sun  moved by DST: 02:30 does not exist that day",
        ),
        (
            ["--after", "2026-03-28T12:00:00Z", "--gap", "skip"],
            "–  2026-03-29T03:00:00+02:00  Sun  dropped by DST: 02:30 does not exist that day",
        ),
        (
            ["--after", "2026-10-24T12:00:00Z", "-n", "2", "--fold", "both"],
            "2026-10-25T02:30:00+01:00  Sun  second pass: 02:30 comes twice that day",
        ),
    ],
)
def test_what_dst_does_is_marked(hourhand, arguments: list[str], line: str) -> None:
    done = hourhand("next", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "1", *arguments)
    assert line in done.out.splitlines()


def test_json_has_the_times_in_utc_too(hourhand) -> None:
    done = hourhand("--json", "next", "@daily", "-n", "1", "--after", "2026-03-01T00:00:00Z")
    assert done.json["data"] == [
        {"at": "2026-03-02T00:00:00Z", "local": "2026-03-02T00:00:00+00:00", "fires": True, "note": None}
    ]
    assert done.err == ""


def test_quiet_prints_times_only_wherever_the_option_stands(hourhand) -> None:
    arguments = ["next", "@daily", "-n", "1", "--after", "2026-03-01T00:00:00Z"]
    assert hourhand(*arguments, "-q").out == hourhand("-q", *arguments).out == "2026-03-02T00:00:00+00:00\n"


@pytest.mark.parametrize(
    ("expression", "more", "words"),
    [
        ("61 * * * *", [], "minute: got '61', expected 0 to 59"),
        ("0 0 30 2 *", [], "never fire"),
        ("0 0 * * *", ["--tz", "Europe/Berln"], "did you mean Europe/Berlin?"),
        ("0 0 * * *", ["--gap", "aftr"], "did you mean after?"),
        ("x" * 300, [], "at most 256 characters"),
        ("0 0 * * *", ["--after", "yesterday"], "--after"),
        ("0 0 * * *", ["-n", "0"], "-n"),
        ("0 0 * * *", ["--nope"], "--nope"),
    ],
)
def test_what_is_wrong_is_named_and_ends_with_two(
    hourhand, expression: str, more: list[str], words: str
) -> None:
    done = hourhand("next", expression, *more)
    assert done.code == 2
    assert words in done.err
    assert done.out == ""
    problem = hourhand("next", expression, *more, "--json").problem
    assert problem["code"] in ("invalid", "usage")
    assert words in problem["detail"]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    good = {"expr": "0 9 * * *", "after": "2026-01-01T00:00:00Z", "next": ["2026-01-01T09:00:00Z"]}
    bad = {**good, "next": ["2026-01-01T10:00:00Z"]}
    file = tmp_path / "vectors.jsonl"
    file.write_text("\n".join(map(json.dumps, [good, bad, good])))
    return file


def test_vectors_that_differ_are_printed_and_end_with_eight(hourhand, vectors: Path) -> None:
    done = hourhand("cron", "check", str(vectors))
    assert done.code == 8
    first, last = done.out.splitlines()
    assert first.startswith("line 2: '0 9 * * *': time 1: expected 2026-01-01T10:00:00+00:00")
    assert last == "3 vectors: 2 hold, 1 differ"
    assert hourhand("cron", "check", str(vectors), "--json").json["differ"] == 1


def test_vectors_that_hold_end_with_zero(hourhand, vectors: Path) -> None:
    vectors.write_text(vectors.read_text().splitlines()[0])
    done = hourhand("cron", "check", str(vectors))
    assert (done.code, done.out) == (0, "1 vectors: 1 hold, 0 differ\n")


def test_a_file_that_is_not_there_is_a_wrong_use(hourhand, tmp_path: Path) -> None:
    assert hourhand("cron", "check", str(tmp_path / "absent")).code == 2
