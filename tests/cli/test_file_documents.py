"""Files as wanted jobs: sets, defaults, keys, order; everything that is wrong is told at once."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.cli.failures import Usage
from hourhand.cli.files import changing, documents, sources
from hourhand.cli.files.changing import parts
from hourhand.cli.files.documents import FileJob, Wanted, read_sources, with_defaults
from hourhand.cli.files.faults import FileFaults
from hourhand.cli.files.order import children_first, groups, levels
from hourhand.cli.files.sources import Source, files, split


def wanted(*texts: str, set_name: str | None = None) -> Wanted:
    found = [Source(name=f"{n}.yaml", path=Path("/dev/null")) for n, _ in enumerate(texts, 1)]
    reads = dict(zip((one.name for one in found), texts, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_read", lambda source: reads[source.name])
        return read_sources(found, set_name)


def faults(*texts: str, set_name: str | None = None) -> list[str]:
    with pytest.raises(FileFaults) as caught:
        wanted(*texts, set_name=set_name)
    return [str(fault) for fault in caught.value.found]


@pytest.mark.parametrize(
    ("text", "keys", "sets"),
    [
        ("- {key: a}\n- {key: b}", ["a", "b"], []),
        ("key: a\ncron: x", ["a"], []),
        ("jobs: [{key: a}]", ["a"], []),
        ("set: s\njobs: [{key: a}]", ["a"], ["s"]),
        ("set: s\njobs: [{key: a, set: s}]", ["a"], ["s"]),
        ("- {key: a, set: s}\n- {key: b}", ["a", "b"], ["s"]),
        ("set: s\njobs: []", [], ["s"]),
        ("set: s\njobs:", [], ["s"]),
        ("set: s\njobs: [{key: a}]\n---\n- {key: b}\n---\n", ["a", "b"], ["s"]),
        ('{"set": "s", "jobs": [{"key": "a"}]}', ["a"], ["s"]),
        ("{set: s, jobs: [{key: a}]}", ["a"], ["s"]),
        ("[]", [], []),
    ],
)
def test_forms_of_a_file(text: str, keys: list[str], sets: list[str]) -> None:
    found = wanted(text)
    assert (list(found.jobs), list(found.sets)) == (keys, sets)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5", ["1.yaml:1: expected a list of jobs, or a mapping with jobs"]),
        ("- 5", ["1.yaml:1: expected a job, with its fields"]),
        ("- {cron: x}", ["1.yaml:1: key: the job needs a key, a text that is its own"]),
        ("-\n  name: n\n  key: 5", ["1.yaml:3: key: the job 'n' needs a key, a text that is its own"]),
        ("- {key: a}\n- {key: a}", ["1.yaml:2: key: 'a' is in 1.yaml:1 already"]),
        ("set: 5\njobs: []", ["1.yaml:1: set: expected a text"]),
        ("set: s\njob: []", ["1.yaml:1: jobs: expected a list of jobs", "1.yaml:2: job: there is no such"]),
        ("jobs: {a: 1}", ["1.yaml:1: jobs: expected a list of jobs"]),
        ("jobs: []\ndefaults: 5", ["1.yaml:2: defaults: expected fields of a job"]),
        ("jobs: []\ndefaults:\n  key: x", ["1.yaml:3: defaults.key: belongs to each job alone"]),
        ("set: s\njobs: [{key: a, set: t}]", ["1.yaml:2: a: set: is 't', but the file's set is 's'"]),
        ("- {key: a, b: 1, b: 2}\n- {}", ["1.yaml:1: b: is given twice", "1.yaml:2: key: the job needs"]),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, told: list[str]) -> None:
    found = faults(text)
    assert len(found) == len(told)
    assert all(one.startswith(words) for one, words in zip(found, told, strict=True))


@pytest.mark.parametrize(
    "text", ["", "\n \n", "# - {key: a}\n", "---\n", "---\n---\n# nothing\n", "null", "~"]
)
@pytest.mark.parametrize("set_name", [None, "s"])
def test_a_file_without_a_document_is_wrong(text: str, set_name: str | None) -> None:
    assert faults("- {key: a}", text, set_name=set_name) == [
        "2.yaml: holds no jobs, not even an empty list; a set is emptied by `set: NAME` with `jobs: []`"
    ]


def test_faults_of_all_files_are_told_at_once() -> None:
    assert faults("- {key: a}\n- 5", "a: [", "- {key: a}") == [
        "1.yaml:2: expected a job, with its fields",
        "2.yaml:1: not YAML: did not find expected node content",
        "3.yaml:1: key: 'a' is in 1.yaml:1 already",
    ]


def test_a_set_by_option() -> None:
    found = wanted("- {key: a}", set_name="s")
    assert (found.jobs["a"].document["set"], list(found.sets)) == ("s", ["s"])
    assert "'t' here, but 's' was asked for" in faults("set: t\njobs: [{key: a}]", set_name="s")[0]


def test_too_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_JOBS", 2)
    assert "more than 2 jobs" in faults("[{key: a}, {key: b}, {key: c}]")[0]


@pytest.mark.parametrize(
    ("job", "defaults", "document"),
    [
        ({}, {"timeout": "1m"}, {"timeout": "1m"}),
        ({"timeout": "2m"}, {"timeout": "1m"}, {"timeout": "2m"}),
        ({"retry": {"max": 1}}, {"retry": {"max": 5, "first": "2s"}}, {"retry": {"max": 1, "first": "2s"}}),
        ({"payload": {"a": 1}}, {"payload": {"b": 2}}, {"payload": {"a": 1}}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"tags": ["a"]}),
        ({"every": "1h"}, {"tz": "Europe/Berlin"}, {"every": "1h"}),
        ({"cron": "x"}, {"tz": "Europe/Berlin"}, {"cron": "x", "tz": "Europe/Berlin"}),
        (
            {"callback_url": "u"},
            {"target": {"headers": {"X": "1"}}},
            {"target": {"url": "u", "headers": {"X": "1"}}},
        ),
        ({"target": "u"}, {"target": {"timeout": "1s"}}, {"target": {"url": "u", "timeout": "1s"}}),
        (
            {"target": {"function": "a:b"}},
            {"target": {"timeout": "1s"}},
            {"target": {"function": "a:b"}},
        ),
        ({"target": {"argv": ["a"]}}, {"target": {"timeout": "1s"}}, {"target": {"argv": ["a"]}}),
        ({}, {"target": {"function": "a:b"}}, {"target": {"function": "a:b"}}),
        ({"timeout": None}, {"timeout": "1m"}, {"timeout": None}),
    ],
)
def test_defaults(job: Any, defaults: Any, document: Any) -> None:
    assert with_defaults(job, defaults) == document


# --- where they come from


def test_folders_and_files(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "d.txt", "x/e.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[]")
    assert [Path(one.name).name for one in files([str(tmp_path)])] == ["a.yml", "b.yaml", "c.json", "e.yaml"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(Usage, match="no file in this folder"):
        files([str(tmp_path / "empty")])
    with pytest.raises(FileFaults, match="cannot be read"):
        read_sources(files([str(tmp_path / "gone.yaml")]))


def test_what_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_bytes(b"- key: a\n- key: \xff\n")
    with pytest.raises(FileFaults, match=r"a.yaml:2: is not UTF-8"):
        read_sources(files([str(tmp_path / "a.yaml")]))
    monkeypatch.setattr(sources, "MAX_FILE_BYTES", 10)
    with pytest.raises(FileFaults, match="larger than 10 bytes"):
        read_sources(files([str(tmp_path / "a.yaml")]))


def test_modules_and_files_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    named = ["app.tasks", "jobs.yaml", "-", "./x", "folder", "tasks", "a/b.json"]
    assert split(named) == (["jobs.yaml", "-", "./x", "folder", "a/b.json"], ["app.tasks", "tasks"])


# --- order


def graph(edges: dict[str, list[str]]) -> dict[str, FileJob]:
    return {
        key: FileJob(key=key, document={"key": key, "after": after}, file="f", line=n)
        for n, (key, after) in enumerate(edges.items(), 1)
    }


def test_parents_come_first() -> None:
    found, wrong = levels(graph({"d": ["b", "c"], "b": ["a"], "c": ["a", "J-elsewhere"], "a": [], "x": []}))
    assert [[job.key for job in level] for level in found] == [["a", "x"], ["b", "c"], ["d"]]
    assert wrong == []


def test_what_hangs_together_stays_together_parents_first(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = {"x": [], "d": ["b", "c"], "b": ["a"], "y": [], "c": ["a"], "a": [], "q": ["p"], "p": []}
    found, wrong = groups(graph(edges))
    assert [[job.key for job in group] for group in found] == [["x"], ["a", "b", "c", "d"], ["y"], ["p", "q"]]
    assert wrong == []
    for most, sizes in (
        (3, ["xab", "cdy", "pq"]),
        (4, ["x", "abcd", "ypq"]),
        (8, ["xabcdypq"]),
        (1, [*"xabcdypq"]),
    ):
        monkeypatch.setattr(changing, "BATCH_JOBS", most)
        monkeypatch.setattr(changing, "REQUEST_JOBS", most)
        assert ["".join(job.key for job in part) for part in parts(found)] == sizes
    monkeypatch.setattr(changing, "BATCH_BYTES", 1)
    assert [len(part) for part in parts(found)] == [1] * 8


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        ({"a": ["a"]}, ["a after a"]),
        ({"a": ["b"], "b": ["a"]}, ["a after b after a"]),
        ({"z": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]}, ["a after b after c after a"]),
        ({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}, ["a after b after a", "c after d after c"]),
    ],
)
def test_cycles_are_named(edges: dict[str, list[str]], told: list[str]) -> None:
    _, wrong = levels(graph(edges))
    assert [fault.words.removeprefix("closes a cycle: ") for fault in wrong] == told


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_every_job_is_after_its_parents_or_in_a_cycle(pairs: list[tuple[int, int]]) -> None:
    edges: dict[str, list[str]] = {str(n): [] for n in range(13)}
    for child, parent in pairs:
        edges[str(child)].append(str(parent))
    found, wrong = levels(graph(edges))
    level_of = {job.key: n for n, level in enumerate(found) for job in level}
    assert bool(wrong) == (len(level_of) < 13)
    for key, level in level_of.items():
        assert all(level_of[parent] < level for parent in edges[key])
    stored = [{"job_id": key, "after": edges[key]} for key in level_of]
    order = [job["job_id"] for job in children_first(stored)]
    assert sorted(map(str, order)) == sorted(level_of)
    for key in level_of:
        assert all(order.index(key) < order.index(parent) for parent in edges[key])
