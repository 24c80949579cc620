"""`apply`, `plan` and `import crontab --apply` against a real server."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hourhand.cli.files import changing, plan_view
from hourhand.cli.files.changing import carry_out, make_plan
from hourhand.cli.files.documents import read_sources
from hourhand.cli.files.sources import files
from hourhand.client import Client

pytestmark = pytest.mark.usefixtures("server")
_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A set of one's own on the server that all tests share."""
    return f"set{next(_numbers)}"


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    with Client(server) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.yaml"


def text_of(name: str, **crons: str) -> str:
    jobs = "".join(
        f"  - key: {name}/{key}\n    cron: '{cron}'\n    target: https://example.com/{key}\n"
        for key, cron in crons.items()
    )
    return f"set: {name}\njobs:\n{jobs}"


def test_creates_changes_and_leaves_alone(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *", b="0 10 * * *"))
    done = hourhand("apply", "-f", str(file))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "created 2, changed 0, unchanged 0, pruned 0"
    assert done.out.startswith(f"+ {name}/a: at 09:00 every day, UTC; next 20")
    assert hourhand("apply", str(file)).out == "created 0, changed 0, unchanged 2, pruned 0\n"
    file.write_text(text_of(name, a="0 9 * * *", b="30 10 * * *", c="0 1 * * *"))
    done = hourhand("apply", str(file))
    assert done.out.splitlines()[1:3] == [f"~ {name}/b", "    cron  0 10 * * * -> 30 10 * * *"]
    assert done.out.splitlines()[3].startswith("    next  20")
    assert done.out.splitlines()[-1] == "created 1, changed 1, unchanged 1, pruned 0"
    assert hourhand("jobs", "show", f"{name}/a", "--json").json["version"] == 1


def test_a_plan_changes_nothing_and_may_say_so_by_its_code(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *"))
    for command in (["plan"], ["apply", "--dry-run"]):
        done = hourhand(*command, "-f", str(file), "--exit-code")
        assert (done.code, done.out.splitlines()[-1]) == (
            8,
            "would be: created 1, changed 0, unchanged 0, pruned 0",
        )
        assert hourhand(*command, "-f", str(file)).code == 0
    assert hourhand("jobs", "show", f"{name}/a").code == 3
    hourhand("apply", str(file))
    done = hourhand("plan", str(file), "--exit-code")
    assert (done.code, done.out) == (0, "no changes: created 0, changed 0, unchanged 1, pruned 0\n")


def test_one_wrong_document_and_nothing_is_applied(hourhand: Any, file: Path, name: str) -> None:
    text = text_of(name, a="0 9 * * *", b="0 99 * * *")
    file.write_text(text + "    retry: {max: -1}\n    crn: x\n")
    done = hourhand("apply", str(file))
    assert done.code == 2
    assert done.err.startswith("error: 1 fault; nothing was applied\n")
    assert (
        f"{file}:10: {name}/b: crn: expected a field that exists, got 'crn'; did you mean cron?" in done.err
    )
    file.write_text(text)
    problem = hourhand("apply", str(file), "--json").problem
    assert [(one["line"], one["field"]) for one in problem["errors"]] == [(7, f"{name}/b: cron")]
    assert hourhand("jobs", "show", f"{name}/a").code == 3


def test_machines_get_a_document(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *"))
    made = hourhand("apply", str(file), "--json").json
    assert (made["created"], made["jobs"][0]["key"], made["jobs"][0]["line"]) == (1, f"{name}/a", 3)
    file.write_text(text_of(name, a="5 9 * * *"))
    planned = hourhand("plan", str(file), "--json").json
    assert planned["dry_run"] is True
    assert planned["jobs"][0]["changes"] == [{"field": "cron", "before": "0 9 * * *", "after": "5 9 * * *"}]
    assert hourhand("apply", str(file), "-q").out.strip() == made["jobs"][0]["job_id"]


def test_colours_are_for_terminals(
    hourhand: Any, file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(text_of(name, a="0 9 * * *"))
    monkeypatch.setattr(plan_view, "wants_colour", lambda stream: True)
    assert hourhand("plan", str(file)).out.startswith(f"\x1b[32m+ {name}/a")


# --- pruning


def test_prunes_what_the_same_set_had(hourhand: Any, file: Path, name: str, client: Client) -> None:
    file.write_text(text_of(name, a="0 9 * * *", b="0 9 * * *"))
    hourhand("apply", str(file))
    mine = {"key": f"{name}/mine", "cron": "0 9 * * *", "target": "https://example.com"}
    client.jobs.create(mine)
    client.jobs.apply([{**mine, "key": f"{name}/other", "set": f"{name}-other"}])
    file.write_text(text_of(name, a="0 9 * * *"))
    assert hourhand("apply", str(file)).out.splitlines()[-1] == "created 0, changed 0, unchanged 1, pruned 0"
    planned = hourhand("plan", str(file), "--prune", "--exit-code")
    assert (planned.code, planned.out.splitlines()[0]) == (8, f"- {name}/b: fires 7 removed")
    refused = hourhand("apply", str(file), "--prune")
    assert (refused.code, "Add -y" in refused.err, f"- {name}/b" in refused.out) == (2, True, True)
    done = hourhand("apply", str(file), "--prune", "-y")
    assert done.out.splitlines() == [
        f"- {name}/b: fires 7 removed",
        "fires in the next 7 days: 0 added, 7 removed, 0 moved",
        "created 0, changed 0, unchanged 1, pruned 1",
    ]
    assert hourhand("jobs", "show", f"{name}/b").code == 3
    assert [hourhand("jobs", "show", f"{name}/{key}").code for key in ("a", "mine", "other")] == [0, 0, 0]
    assert hourhand("apply", str(file), "--prune", "-y").out.endswith("pruned 0\n")


def test_a_plan_tells_which_fires_come_go_and_move(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *", b="0 10 * * *", gone="0 * * * *", same="0 1 * * *"))
    hourhand("apply", str(file))
    file.write_text(text_of(name, a="30 9 * * *", b="0 10,22 * * *", new="* * * * * *", same="0 1 * * *"))
    done = hourhand("plan", str(file), "--prune")
    lines = done.out.splitlines()
    assert "; fires 604,800 added" in lines[0]
    assert "    fires  7 moved" in lines
    assert "    fires  7 added" in lines
    assert f"- {name}/gone: fires 168 removed" in lines
    assert lines[-2] == "fires in the next 7 days: 604,807 added, 168 removed, 7 moved"
    told = hourhand("plan", str(file), "--prune", "--json").json
    counts = {"added": 604_807, "removed": 168, "moved": 7, "uncounted": 0, "days": 7}
    assert {**told["fires"], **counts} == told["fires"]
    jobs = {job["key"].rpartition("/")[2]: job["fires"] for job in told["jobs"]}
    assert set(jobs) == {"a", "b", "gone", "new"}
    assert all(one["from"][11:16] == "09:00" for one in jobs["a"]["moved_at"])
    assert all(one["to"][11:16] == "09:30" for one in jobs["a"]["moved_at"])
    assert (len(jobs["a"]["moved_at"]), len(jobs["new"]["added_at"])) == (7, 10)
    assert jobs["gone"]["removed"] == 168


def test_an_empty_set_is_pruned_whole(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *", b="0 9 * * *"))
    hourhand("apply", str(file))
    file.write_text(f"set: {name}\njobs: []\n")
    assert hourhand("apply", str(file), "--prune", "-y").out.splitlines()[-1].endswith("pruned 2")
    assert hourhand("jobs", "list", "--set", name, "-q").out == ""


@pytest.mark.parametrize("text", ["", "# all of it is gone\n"])
@pytest.mark.parametrize("given", ["file", "-"])
def test_an_empty_input_does_not_empty_a_set(
    hourhand: Any, file: Path, name: str, monkeypatch: pytest.MonkeyPatch, text: str, given: str
) -> None:
    file.write_text(text_of(name, a="0 9 * * *"))
    hourhand("apply", str(file))
    file.write_text(text)
    source = str(file) if given == "file" else "-"
    for command in (["plan"], ["apply", "-y"]):
        with file.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            done = hourhand(*command, source, "--set", name, "--prune")
        assert (done.code, done.out) == (2, "")
        assert "holds no jobs, not even an empty list" in done.err
        assert "nothing was applied" in done.err
    assert len(hourhand("jobs", "list", "--set", name, "-q").out.split()) == 1


def test_nothing_is_pruned_where_others_follow_it(hourhand: Any, file: Path, name: str) -> None:
    child = f"  - {{key: {name}/kid, after: [{name}/root], target: 'https://example.com'}}\n"
    file.write_text(text_of(name, root="0 9 * * *", other="0 9 * * *") + child)
    assert hourhand("apply", str(file)).code == 0
    two = file.with_name("two.yaml")
    two.write_text(f"set: {name}-two\njobs:\n" + child.replace("/kid", "/z"))
    assert hourhand("apply", str(two)).code == 0
    file.write_text(f"set: {name}\njobs: []\n")
    for command in (["plan"], ["apply", "--dry-run"], ["apply", "-y"]):
        done = hourhand(*command, str(file), "--prune")
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "error: 1 fault; nothing was applied\n"
            f"  prune: {name}/root: '{name}/z' follows it and would stay; delete or change that one first\n"
        )
    assert len(hourhand("jobs", "list", "--set", name, "-q").out.split()) == 3
    both = [str(file), str(two), "--prune", "-y"]
    done = hourhand("apply", *both)
    assert done.err.splitlines()[1] == (
        f"  {two}:3: {name}/z: after.0: '{name}/root' would be pruned: no file has it, and it belongs to the set"
    )
    two.write_text(
        text_of(f"{name}-two").rstrip() + f" [{{key: {name}/z, every: 1h, target: 'https://a.b'}}]\n"
    )
    done = hourhand("apply", *both)
    assert (done.code, done.out.splitlines()[-1]) == (0, "created 0, changed 1, unchanged 0, pruned 3"), (
        done.err
    )


@pytest.mark.parametrize(
    ("after", "expected"), [("zz", "a list"), ("[]", "1 to 100 jobs"), ("[1]", "a text")]
)
def test_whom_a_new_job_follows_must_be_a_list(
    hourhand: Any, file: Path, name: str, after: str, expected: str
) -> None:
    file.write_text(f"- key: {name}/p\n  after: {after}\n  target: https://example.com\n")
    done = hourhand("apply", str(file))
    assert (done.code, done.err.count("\n")) == (2, 2)
    assert f"{file}:2: {name}/p: after" in done.err
    assert f": expected {expected}" in done.err


def test_pruning_needs_a_set(hourhand: Any, file: Path) -> None:
    file.write_text("- {key: no-set, cron: '0 9 * * *', target: 'https://example.com'}\n")
    done = hourhand("apply", str(file), "--prune", "-y")
    assert (done.code, "--prune needs a set" in done.err) == (2, True)


def test_another_sets_job_is_not_taken_by_mistake(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *"))
    hourhand("apply", str(file))
    file.write_text(text_of(name, a="0 9 * * *").replace(f"set: {name}", f"set: {name}-new"))
    done = hourhand("apply", str(file))
    assert (done.code, f"belongs to the set '{name}'" in done.err) == (2, True)
    assert done.err.endswith("or apply with --take-over\n")
    assert "    set  " in hourhand("apply", str(file), "--take-over").out
    assert hourhand("jobs", "list", "--set", f"{name}-new", "-q").out != ""


def test_what_went_to_another_set_meanwhile_is_not_pruned(file: Path, name: str, client: Client) -> None:
    document = {"key": f"{name}/a", "cron": "0 9 * * *", "target": "https://example.com"}
    client.jobs.apply([{**document, "set": name}])
    file.write_text(f"set: {name}\njobs: []\n")
    plan = make_plan(client, read_sources(files([str(file)])), prune=True, take_over=False)
    assert [job["key"] for job in plan.surplus] == [f"{name}/a"]
    client.jobs.apply([{**document, "set": f"{name}-new"}], take_over=True)
    assert carry_out(client, plan, take_over=False) == []
    assert client.jobs.resolve(f"{name}/a")["set"] == f"{name}-new"


def test_a_one_time_job_is_not_made_after_its_time(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(f"- {{key: {name}/once, at: 2020-01-01T00:00:00Z, target: https://example.com}}\n")
    done = hourhand("apply", str(file), "--exit-code")
    assert (done.code, done.out) == (0, "created 0, changed 0, unchanged 0, passed 1, pruned 0\n")
    assert done.err == "1 one-time job not created: the time is over\n"


# --- people and interruptions


def test_what_a_person_paused_stays_paused(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(text_of(name, a="0 9 * * *") + "    paused: false\n")
    hourhand("apply", str(file))
    hourhand("jobs", "pause", f"{name}/a", "--note", "INC-42")
    done = hourhand("apply", str(file))
    assert done.out == "created 0, changed 0, unchanged 1, pruned 0\n"
    assert f"{name}/a stays paused; a person resumes it: hourhand jobs resume {name}/a" in done.err
    assert hourhand("jobs", "show", f"{name}/a", "--json").json["note"] == "INC-42"


def test_interrupted_it_goes_on_where_it_was(
    client: Client, file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "BATCH_JOBS", 2)
    file.write_text(text_of(name, **{f"k{n}": "0 9 * * *" for n in range(7)}))
    wanted = read_sources(files([str(file)]))
    plan = make_plan(client, wanted, prune=False, take_over=False)
    send, sent = changing._send, 0

    def cut(*args: Any, **kwargs: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent > 2:
            raise KeyboardInterrupt
        return send(*args, **kwargs)

    monkeypatch.setattr(changing, "_send", cut)
    with pytest.raises(KeyboardInterrupt):
        carry_out(client, plan, take_over=False)
    monkeypatch.setattr(changing, "_send", send)
    again = make_plan(client, wanted, prune=False, take_over=False)
    assert (again.count("unchanged"), again.count("created")) == (4, 3)
    assert carry_out(client, again, take_over=False) == []
    assert len(list(client.jobs.list(set=name))) == 7


def test_what_the_server_refuses_after_all_is_told(
    hourhand: Any, client: Client, file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(text_of(name, a="0 9 * * *", b="0 9 * * *"))
    send = changing._send

    def race(*args: Any, dry_run: bool, **kwargs: Any) -> Any:
        if not dry_run:  # somebody applies the same key from elsewhere in between
            other = {
                "key": f"{name}/a",
                "cron": "0 9 * * *",
                "target": "https://example.com",
                "set": "elsewhere",
            }
            client.jobs.apply([other])
        return send(*args, dry_run=dry_run, **kwargs)

    monkeypatch.setattr(changing, "_send", race)
    done = hourhand("apply", str(file), "--prune", "-y")
    assert done.code == 2
    assert "the others were done; run it again" in done.err
    assert hourhand("jobs", "show", f"{name}/b").code == 0


def test_many_parts(hourhand: Any, file: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "BATCH_BYTES", 1_000)
    file.write_text(text_of(name, **{f"k{n}": f"{n % 60} 9 * * *" for n in range(250)}))
    done = hourhand("apply", str(file))
    assert done.out.splitlines()[-1] == "created 250, changed 0, unchanged 0, pruned 0"
    assert done.out.splitlines()[200] == "+ and 50 more; --json has all"
    assert hourhand("plan", str(file), "--exit-code").code == 0


@pytest.mark.parametrize(("arguments", "words"), [([], "say what to apply"), (["-", "-f", "-"], "only once")])
def test_what_makes_no_sense(hourhand: Any, arguments: list[str], words: str) -> None:
    done = hourhand("apply", *arguments)
    assert (done.code, words in done.err) == (2, True)


# --- graphs


def graph_of(name: str, cron: str, **after: str) -> str:
    jobs = f"  - {{key: {name}/root, cron: '{cron}', target: https://example.com}}\n"
    for key, parents in after.items():
        keys = ", ".join(f"{name}/{parent}" for parent in parents.split())
        jobs = f"  - {{key: {name}/{key}, after: [{keys}], target: https://example.com}}\n" + jobs
    return f"set: {name}\njobs:\n{jobs}"


@pytest.mark.parametrize("batch", [500, 1])
def test_a_graph_is_applied_exported_changed_and_pruned(
    hourhand: Any, file: Path, name: str, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(changing, "BATCH_JOBS", batch)  # 1: no request has a job and its parents
    file.write_text(graph_of(name, "0 9 * * *", a="root", b="root", c="a b"))
    for command in ("plan", "apply"):
        done = hourhand(command, str(file))
        assert f"+ {name}/c: after {name}/a, {name}/b" in done.out, done.err
        assert "created 4" in done.out
    assert hourhand("plan", str(file), "--exit-code").code == 0
    exported = file.with_name("exported.yaml")
    hourhand("export", "--set", name, "-o", str(exported))
    assert f"  - {name}/a\n  - {name}/b\n" in exported.read_text()
    assert hourhand("plan", str(exported), "--prune", "--exit-code").code == 0
    file.write_text(graph_of(name, "0 9 * * *", a="root", d="a", c="a d"))
    done = hourhand("apply", str(file), "--prune", "-y")
    assert done.code == 0, done.err
    changed = f"~ {name}/c\n    after  "
    assert changed in done.out
    assert done.out.splitlines()[-1] == "created 1, changed 1, unchanged 2, pruned 1"
    file.write_text(f"set: {name}\njobs: []\n")
    assert hourhand("apply", str(file), "--prune", "-y").out.splitlines()[-1].endswith("pruned 4")


def test_a_cycle_is_refused_by_name(hourhand: Any, file: Path, name: str) -> None:
    file.write_text(graph_of(name, "0 9 * * *", a="b root", b="a"))
    done = hourhand("apply", str(file))
    assert done.code == 2
    assert f"closes a cycle: {name}/" in done.err
    assert hourhand("jobs", "show", f"{name}/root").code == 3


# --- modules

MODULE = """
from hourhand import Hourhand

hh = Hourhand()


@hh.job(cron="{cron}", tz="Europe/Berlin", retry=5)
def report():
    pass


@hh.function
def no_schedule():
    pass
"""


def test_a_module_is_applied_as_its_own_set(
    hourhand: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"tasks_{name}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{module}.py").write_text(MODULE.format(cron="0 9 * * *"))
    made = hourhand("apply", module, "--json")
    assert made.code == 0, made.err
    assert [(job["key"], job["file"], job["line"]) for job in made.json["jobs"]] == [
        (f"{module}:report", f"{module}.py", 7)
    ]
    job = hourhand("jobs", "show", f"{module}:report", "--json").json
    assert (job["set"], job["retry"]["max"], job["target"]) == (
        module,
        5,
        {"type": "python", "function": f"{module}:report"},
    )
    assert hourhand("plan", module, "--exit-code").code == 0


FOLLOWING = """
from hourhand import Hourhand

hh = Hourhand()


@hh.job(cron="0 2 * * *")
def zextract():
    pass


@hh.job(after=[zextract], wait="2h")
def areport():
    pass
"""


def test_a_module_declares_functions_that_follow_each_other(
    hourhand: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"graph_{name}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{module}.py").write_text(FOLLOWING)
    made = hourhand("apply", module)
    assert made.code == 0, made.err
    first = hourhand("jobs", "show", f"{module}:zextract", "--json").json
    second = hourhand("jobs", "show", f"{module}:areport", "--json").json
    assert (second["after"], second["wait"]) == ([first["job_id"]], "2h")
    assert hourhand("plan", module, "--exit-code").code == 0


def test_a_module_that_cannot_be_applied(
    hourhand: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tasks_none.py").write_text("x = 1\n")
    assert "declares no job" in hourhand("apply", "tasks_none").err
    (tmp_path / "tasks_wrong.py").write_text(
        MODULE.replace("retry=5", "timeout='9000d'").format(cron="0 9 * * *")
    )
    done = hourhand("apply", "tasks_wrong")
    assert (done.code, "tasks_wrong.py:7: tasks_wrong:report: timeout: expected" in done.err) == (2, True)
    assert hourhand("apply", "no_such_module").code == 1


# --- crontabs


def test_a_crontab_is_applied_as_a_set(hourhand: Any, tmp_path: Path, name: str) -> None:
    table = tmp_path / "tab"
    table.write_text("MAILTO=me@example.com\n# Nightly\n15 3 * * * /bin/backup --all\n@daily b\n")
    arguments = ("import", "crontab", str(table), "--set", name, "--tz", "Europe/Berlin")
    refused = hourhand(*arguments, "--apply")
    assert (refused.code, "nothing was applied" in refused.err) == (8, True)
    assert hourhand("jobs", "list", "--set", name, "-q").out == ""
    assert (
        hourhand(*arguments, "--apply", "--lenient", "--dry-run").out.splitlines()[-1].startswith("would be")
    )
    done = hourhand(*arguments, "--apply", "--lenient")
    assert (done.code, done.out.splitlines()[-1]) == (0, "created 2, changed 0, unchanged 0, pruned 0")
    table.write_text("# Nightly\n15 4 * * * /bin/backup --all\n")
    again = hourhand(*arguments, "--apply")
    assert again.out.splitlines()[-1] == "created 0, changed 1, unchanged 0, pruned 0"
    out = tmp_path / "jobs.yaml"
    hourhand(*arguments, "-o", str(out))
    assert hourhand("plan", str(out), "--exit-code").code == 0


def test_lines_that_the_specification_refuses_are_findings(hourhand: Any, tmp_path: Path, name: str) -> None:
    table, out = tmp_path / "tab", tmp_path / "jobs.yaml"
    table.write_text(f"15 3 * * * /bin/backup\n0 4 * * * echo {'x' * 70_000}\n")
    arguments = ("import", "crontab", str(table), "--set", name, "--tz", "UTC")
    done = hourhand(*arguments, "-o", str(out))
    assert (done.code, done.err.splitlines()[-1]) == (8, "1 job, 1 finding")
    assert f"{table}:2: 0 4 * * * echo xxx" in done.err
    assert "expected at most 65,536 bytes of arguments and environment" in done.err
    assert hourhand("plan", str(out)).code == 0
    assert hourhand(*arguments, "--apply").code == 8
    done = hourhand(*arguments, "--apply", "--lenient")
    assert (done.code, done.out.splitlines()[-1]) == (0, "created 1, changed 0, unchanged 0, pruned 0")
    assert "expected at most 65,536 bytes" in done.err
