"""Crontabs, line by line: what becomes a job, and what is named as lost."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hourhand.cli.files.crontab import Crontab, Reading, read_crontab, split_command
from hourhand.cli.files.importing import looks_like_user
from tests.cli.test_progress import Screen

BERLIN = Reading(tz="Europe/Berlin")


def read(text: str, reading: Reading = BERLIN) -> Crontab:
    return read_crontab("crontab", text.split("\n"), reading)


def only(text: str, reading: Reading = BERLIN) -> Any:
    found = read(text, reading)
    assert not found.findings
    (job,) = found.jobs
    return job.document


@pytest.mark.parametrize(
    ("line", "cron", "script"),
    [
        ("0 9 * * * /bin/report", "0 9 * * *", "/bin/report"),
        ("  0\t9  * * *   /bin/report  --x  ", "0 9 * * *", "/bin/report  --x"),
        ("*/15 0-6,22 1,15 * mon-fri a b", "*/15 0-6,22 1,15 * mon-fri", "a b"),
        ("0 0 * jan-mar SUN a", "0 0 * jan-mar SUN", "a"),
        ("0 0 * * 7 a", "0 0 * * 7", "a"),
        ("0 0 13 * 5 a", "0 0 13 * 5", "a"),
        ("10-50/20 * * * * a", "10-50/20 * * * *", "a"),
        ("@daily a", "@daily", "a"),
        ("@midnight a", "@midnight", "a"),
        ("@hourly a b", "@hourly", "a b"),
        ("@weekly a", "@weekly", "a"),
        ("@monthly a", "@monthly", "a"),
        ("@yearly a", "@yearly", "a"),
        ("@annually a", "@annually", "a"),
        ("-*/5 * * * * quiet", "*/5 * * * *", "quiet"),
        ("* * * * * a # no comment", "* * * * *", "a # no comment"),
        ("* * * * * A=b c", "* * * * *", "A=b c"),
        (r"0 0 * * * date +\%F", "0 0 * * *", "date +%F"),
        ("0 0 * * * a > /dev/null 2>&1 | b && c; d", "0 0 * * *", "a > /dev/null 2>&1 | b && c; d"),
        ("0 0 * * * a%", "0 0 * * *", "a"),
        ("0 0 * * * a\r", "0 0 * * *", "a"),
    ],
)
def test_a_line_becomes_a_job(line: str, cron: str, script: str) -> None:
    document = only(line)
    assert document["cron"] == cron
    assert document["tz"] == "Europe/Berlin"
    assert document["target"] == {"type": "shell", "argv": ["/bin/sh", "-c", script]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("@reboot /srv/start", "not at boot"),
        ("@every_minute a", "@every_minute"),
        ("61 * * * * a", "minute"),
        ("* 24 * * * a", "hour"),
        ("* * 0 * * a", "day"),
        ("* * * 13 * a", "month"),
        ("* * * * 8 a", "day"),
        ("0 0 30 2 * a", "never fire"),
        ("0~30 * * * * a", "minute"),
        ("* * * *", "no command"),
        ("* * * * *", "no command"),
        ("@daily", "no command"),
        ("nonsense", "no command"),
        ("* * * * * %in", "no command"),
        ("MAILTO=me@example.com", "no mail"),
        ('MAILTO="a@example.com,b@example.com"', "no mail"),
        ("MAILFROM=x", "no mail"),
        ("CONTENT_TYPE=text/plain", "no mail"),
        ("RANDOM_DELAY=5", "jitter"),
        ("CRON_TZ=Mars/Olympus", "zone"),
    ],
)
def test_what_cannot_be_carried_over_is_named(line: str, reason: str) -> None:
    found = read(f"\n# a comment\n{line}\n0 0 * * * kept")
    assert [(one.line, one.text) for one in found.findings] == [(3, line)]
    assert reason in found.findings[0].reason
    assert [job.document["target"]["argv"][2] for job in found.jobs] == ["kept"]


@pytest.mark.parametrize("line", ["", "   ", "# text", "\t# text", "MAILTO=", 'MAILTO=""', "A=b", "A = b"])
def test_what_says_nothing_is_no_finding(line: str) -> None:
    assert read(line) == Crontab()


def test_variables_hold_for_the_lines_below() -> None:
    found = read(
        "0 0 * * * first\nPATH=/usr/bin:/bin\n\"LEVEL\" = 'a b'\nSHELL=/bin/bash\nEMPTY=\n"
        "0 0 * * * second\nHOME=/srv\nLEVEL = plain words \nTZ=Asia/Tokyo\n0 0 * * * third"
    )
    first, second, third = (job.document["target"] for job in found.jobs)
    assert first == {"type": "shell", "argv": ["/bin/sh", "-c", "first"]}
    assert second["argv"][0] == "/bin/bash"
    assert second["env"] == {"PATH": "/usr/bin:/bin", "LEVEL": "a b", "EMPTY": ""}
    assert third["env"]["LEVEL"] == "plain words"
    assert third["env"]["TZ"] == "Asia/Tokyo"  # the command's, not the schedule's
    assert (third["cwd"], third["env"]["HOME"]) == ("/srv", "/srv")
    assert {job.document["tz"] for job in found.jobs} == {"Europe/Berlin"}


def test_the_zone_of_the_times() -> None:
    found = read("0 0 * * * a\nCRON_TZ=Asia/Tokyo\n0 0 * * * b\nCRON_TZ=UTC\n0 0 * * * c")
    assert [job.document.get("tz") for job in found.jobs] == ["Europe/Berlin", "Asia/Tokyo", None]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# Nightly\n0 0 * * * a", "Nightly"),
        ("#  Two \n## lines\n0 0 * * * a", "Two lines"),
        ("# Header\n\n0 0 * * * a", "a"),
        ("# Of a variable\nA=b\n0 0 * * * a", "a"),
        ("# 5 5 * * * switched off\n0 0 * * * a", "a"),
        ("# Nightly\n#0 0 * * * switched off\n0 0 * * * a", "a"),
        ("#\n0 0 * * * a", "a"),
        ("# " + "x" * 300 + "\n0 0 * * * a", "x" * 199 + "…"),
    ],
)
def test_a_comment_right_above_is_the_name(text: str, name: str) -> None:
    assert only(text)["name"] == name


def test_keys_stay_when_lines_move_or_times_change() -> None:
    before = read("0 1 * * * /bin/a x\n0 2 * * * b\n0 3 * * * b")
    after = read("# new\n5 5 * * * other\n0 9 * * * b\n0 7 * * * /bin/a x\n0 3 * * * b")
    keys = [job.document["key"] for job in before.jobs]
    assert len(set(keys)) == 3
    assert keys[0].startswith("crontab/a-")
    assert keys[2] == f"{keys[1]}-2"
    assert {job.document["key"] for job in after.jobs} > set(keys)


def test_the_form_with_a_user() -> None:
    text = "17 * * * *\troot\tcd / && a\n0 0 * * * shop b c\n0 0 * * * shop\n@daily shop d\n"
    found = read(text, Reading(tz="UTC", user="shop", home="/srv/shop"))
    assert [job.document["target"]["argv"][2] for job in found.jobs] == ["b c", "d"]
    assert {job.document["target"]["cwd"] for job in found.jobs} == {"/srv/shop"}
    assert [(one.line, "root's" in one.reason) for one in found.findings] == [(1, True), (3, False)]


def test_a_user_where_there_is_no_column_for_one() -> None:
    text = "*/5 * * * * shop echo hi\n0 0 * * * shop\n0 0 * * * echo shop\n"
    found = read(text, Reading(tz="UTC", is_user=lambda word: word == "shop"))
    assert [(one.line, "--system" in one.reason) for one in found.findings] == [(1, True)]
    assert [job.line for job in found.jobs] == [2, 3]
    assert not read(text).findings


@pytest.mark.parametrize(
    ("word", "is_user"),
    [("root", True), ("www-data", True), ("nobody", True), ("sync", False), ("echo", False)],
)
def test_words_that_can_only_be_users(word: str, is_user: bool) -> None:
    assert looks_like_user(word) is is_user


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("a", "a", None),
        ("a%", "a", None),
        ("a%b", "a", "b"),
        ("a %b%c", "a", "b\nc"),
        ("a%b%", "a", "b"),
        ("a%b%%", "a", "b\n"),
        (r"a \% b", "a % b", None),
        (r"a \%%\%", "a %", "%"),
    ],
)
def test_percent(text: str, command: str, stdin: str | None) -> None:
    assert split_command(text) == (command, stdin)


@pytest.mark.parametrize("data", ["one", "one%two", "END_OF_STDIN%x", "$HOME `id` \\\\", "'quoted' \"too\""])
def test_stdin_reaches_the_command_as_cron_gives_it(data: str) -> None:
    argv = only(f"0 0 * * * cat; echo done # really%{data}")["target"]["argv"]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert ran.stdout == data.replace("%", "\n") + "\ndone\n"


def test_stdin_for_a_shell_without_here_documents_is_named() -> None:
    found = read("SHELL=/usr/bin/fish\n0 0 * * * a%b\n0 0 * * * c")
    assert [one.line for one in found.findings] == [2]
    assert found.jobs[0].document["target"]["argv"][0] == "/usr/bin/fish"


# --- the command

TABLE = "MAILTO=me@example.com\n# Nightly\n15 3 * * * /bin/backup --all\n@reboot x\n"


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "tab").write_text(TABLE)
    return str(tmp_path / "tab")


def test_writes_a_file_and_names_what_is_lost(hourhand: Any, table: str, tmp_path: Path) -> None:
    done = hourhand("import", "crontab", table, "--tz", "Europe/Berlin")
    assert done.code == 8
    assert "# line 3: 15 3 * * * /bin/backup --all\n- key: crontab/backup-" in done.out
    assert [line.split(": ")[0] for line in done.err.splitlines()[:2]] == [f"{table}:1", f"{table}:4"]
    out = tmp_path / "jobs.yaml"
    assert (
        hourhand("import", "crontab", table, "--lenient", "-o", str(out), "--tz", "Europe/Berlin").code == 0
    )
    assert out.read_text() == done.out


def test_a_system_crontab_is_not_taken_for_ones_own(hourhand: Any, tmp_path: Path) -> None:
    file = tmp_path / "system"
    file.write_text("*/5 * * * * root echo hi\n")
    done = hourhand("import", "crontab", str(file))
    assert (done.code, "root is a user" in done.err, "--system" in done.err) == (8, True, True)
    assert hourhand("import", "crontab", str(file), "--system", "--as", "root").code == 0


def test_machines_get_a_document(hourhand: Any, table: str) -> None:
    done = hourhand("import", "crontab", table, "--json")
    assert (done.code, done.err) == (8, "")
    assert [one["line"] for one in done.json["findings"]] == [1, 4]
    assert done.json["jobs"][0]["name"] == "Nightly"


@pytest.mark.parametrize("arguments", [[], ["x", "--user"], ["--user", "--system"], ["nowhere"]])
def test_what_makes_no_sense(hourhand: Any, arguments: list[str]) -> None:
    assert hourhand("import", "crontab", *arguments).code == 2


def test_bytes_that_are_no_text(hourhand: Any, tmp_path: Path) -> None:
    (tmp_path / "tab").write_bytes(b"# ok\n0 0 * * * \xff\n")
    done = hourhand("import", "crontab", str(tmp_path / "tab"))
    assert (done.code, ":2: is not UTF-8" in done.err) == (2, True)


def test_only_keys(hourhand: Any, table: str) -> None:
    keys = [one["key"] for one in hourhand("import", "crontab", table, "--json").json["jobs"]]
    assert hourhand("import", "crontab", table, "--lenient", "-q").out.split() == keys


def test_it_is_shown_how_far_it_is(hourhand: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"{minute} 0 * * * true {minute}\n" for minute in range(50))
    (tmp_path / "tab").write_text(lines)
    screen = Screen(terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    assert hourhand("import", "crontab", str(tmp_path / "tab")).code == 0
    assert "\x1b[Kread 50\r" in screen.getvalue()
    assert "] 100%  50 of 50\r" in screen.getvalue()
