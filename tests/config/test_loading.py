"""Where settings come from, and what is refused: precedence, places, nearest names, masking."""

import base64
from pathlib import Path

import pytest

from hourhand.config import Flag, Loaded, Settings, load
from hourhand.config.kinds import KNOWN_SECRETS, Rate, RedisUrl
from hourhand.config.settings import keys
from hourhand.core.bucket import Limit
from hourhand.core.shell import RUN_VARIABLES
from hourhand.errors import CannotStart

GOOD_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
DB_A, DB_B, DB_C = "postgres://a/x", "postgres://b/x", "postgresql://c/x"


@pytest.fixture
def read(tmp_path: Path):
    def read(
        *,
        flags: list[Flag] | None = None,
        environment: dict[str, str] | None = None,
        config: str | None = None,
        local: str | None = None,
        system: str | None = None,
    ) -> Loaded:
        files = {"config.toml": config, "hourhand.toml": local, "system.toml": system}
        for name, text in files.items():
            if text is not None:
                (tmp_path / name).write_text(text)
        return load(
            flags=flags or [],
            environment=environment or {},
            config=tmp_path / "config.toml" if config is not None else None,
            folder=tmp_path,
            system_file=tmp_path / "system.toml",
        )

    return read


def listen(port: int) -> str:
    return f'[server]\nlisten = "127.0.0.1:{port}"\n'


SOURCES = {
    "flags": [Flag(path="server.listen", value="127.0.0.1:1", name="--port")],
    "environment": {"HOURHAND_SERVER_LISTEN": "127.0.0.1:2"},
    "config": listen(3),
    "local": listen(4),
    "system": listen(5),
}


@pytest.mark.parametrize("first", range(6))
def test_each_source_gives_way_to_those_before_it(read, tmp_path: Path, first: int) -> None:
    present = dict(list(SOURCES.items())[first:])
    loaded = read(**present)
    assert loaded.findings == ()
    assert loaded.settings().server.port == (first + 1 if first < 5 else 7070)
    source = next(one.source for one in loaded.effective if one.key.path == "server.listen")
    expected = [
        "--port",
        "HOURHAND_SERVER_LISTEN",
        f"{tmp_path / 'config.toml'}:2",
        f"{tmp_path / 'hourhand.toml'}:2",
        f"{tmp_path / 'system.toml'}:2",
        "default",
    ]
    assert source == expected[first]


def test_sources_fill_each_other_key_by_key(read) -> None:
    loaded = read(
        environment={"HOURHAND_WORKER_CONCURRENCY": "7"},
        local='[worker]\nconcurrency = 9\npools = ["a", "b"]\n',
        system='[worker]\npools = ["c"]\ndrain = "5s"\n',
    )
    worker = loaded.settings().worker
    assert (worker.concurrency, worker.pools, worker.drain_us) == (7, ("a", "b"), 5_000_000)


def test_nothing_given_is_the_defaults(read) -> None:
    assert read().settings() == Settings()
    assert {one.source for one in read().effective} == {"default"}


@pytest.mark.parametrize(
    ("section", "line", "attribute", "value"),
    [
        ("scheduler", 'horizon = "90s"', "horizon_us", 90_000_000),
        ("scheduler", "horizon = 90", "horizon_us", 90_000_000),
        ("scheduler", "lead = 0.5", "lead_us", 500_000),
        ("scheduler", "segments = 8", "segments", 8),
        ("limits", 'payload = "64KiB"', "payload_bytes", 65_536),
        ("limits", "payload = 1000", "payload_bytes", 1_000),
        ("worker", 'import = ["app.tasks", "more"]', "import_modules", ("app.tasks", "more")),
        ("worker", 'import = "app.tasks, more"', "import_modules", ("app.tasks", "more")),
        ("history", 'keep = "1w"', "keep_us", 7 * 86_400_000_000),
        ("telemetry", 'log = "DEBUG"', "log", "debug"),
        ("targets", f'signing_secret = "{GOOD_SECRET}"', "signing_secret", (GOOD_SECRET,)),
        ("server", 'listen = "[::1]:80"', "host", "::1"),
        ("store", 'shards = ["postgres://a/x", "postgres://b/x"]', "databases", (DB_A, DB_B)),
        ("store", f'shards = "{DB_A},{DB_B}"', "shards", (DB_A, DB_B)),
        ("store", f'shards = "{DB_A} {DB_B}"', "shards", (DB_A, DB_B)),
        ("store", 'shards = "postgres://a,b/x postgresql://c/x"', "shards", ("postgres://a,b/x", DB_C)),
        ("store", f'url = "{DB_A}"', "databases", (DB_A,)),
        ("leases", 'url = ""', "url", ""),
        ("store", f'url = "{DB_A}"\nlisten_url = "{DB_B}"', "listen_url", (DB_B,)),
        ("worker", "processes = 64", "processes", 64),
        ("worker", "shell = true", "shell", True),
        ("worker", "shell = false", "shell", False),
        ("worker", 'shell = "Yes"', "shell", True),
        ("worker", 'shell = "off"', "shell", False),
        ("telemetry", 'listen = "127.0.0.1:7071"', "listen", "127.0.0.1:7071"),
        ("telemetry", 'listen = ""', "listen", ""),
        ("server", 'listen = "localhost:80"', "host", "localhost"),
    ],
)
def test_values_as_people_write_them(read, section: str, line: str, attribute: str, value: object) -> None:
    settings = read(local=f"[{section}]\n{line}\n").settings()
    assert getattr(getattr(settings, section), attribute) == value


@pytest.mark.parametrize(
    ("document", "line", "words"),
    [
        ('[server]\nlisten = "0.0.0.0:7070"', 2, "no authentication"),
        ('[server]\nlisten = "192.168.1.5:7070"', 2, "no authentication"),
        ('[server]\nlisten = "example.com:80"', 2, "no authentication"),
        ('[server]\nlisten = "[::]:80"', 2, "no authentication"),
        ('[server]\nlisten = "127.0.0.1"', 2, "expected host:port"),
        ('[server]\nlisten = "127.0.0.1:70000"', 2, "expected host:port"),
        ('[server]\nlisten = "[::zz]:1"', 2, "expected host:port"),
        ('[sever]\nlisten = "127.0.0.1:1"', 1, "did you mean server?"),
        ('\n[scheduler]\n\nhorzion = "1m"', 4, "did you mean horizon?"),
        ('[server]\nhorizon = "1m"', 2, "horizon belongs to [scheduler]"),
        ('horizon = "1m"', 1, "horizon belongs to [scheduler]"),
        ('server = "here"', 1, "write [server]"),
        ('scheduler.horizon = "1"', 1, "from 10s to 10m"),
        ('[scheduler]\nhorizon = "soon"', 2, "a duration from 10s to 10m, got 'soon'"),
        ("[scheduler]\nhorizon = true", 2, "a duration"),
        ('[scheduler]\nlead = "10s"\nhorizon = "15s"', 2, "at most half the horizon"),
        ("[scheduler]\nsegments = 0", 2, "from 1 to 4,096"),
        ("[scheduler]\nsegments = true", 2, "from 1 to 4,096"),
        ("[worker]\npools = []", 2, "at least one"),
        ('[worker]\nimport = ["app/tasks.py"]', 2, "names of modules"),
        ('[limits]\npayload = "1TB"', 2, 'such as "64KiB"'),
        ('[telemetry]\nlog = "loud"', 2, "one of debug, info"),
        ('[store]\nurl = "here.db"', 2, "sqlite:///"),
        ('[leases]\nurl = "zookeeper://h"', 2, "redis://:password@host:6379/0 or etcd://"),
        ('[leases]\nurl = "etcd://h/path/more"', 2, "etcd://"),
        ('[leases]\nurl = "redis://h"', 2, "a file has one process"),
        ('[store]\nshards = ["sqlite:///a.db"]', 2, "postgres://"),
        ('[store]\nshards = ["postgres://a/x", "postgres://a/x"]', 2, "each once"),
        ("[store]\nshards = [1]", 2, "postgres://"),
        (f'[store]\nurl = "{DB_C}"\nshards = ["{DB_A}"]', 2, "leave store.url out"),
        (
            '[store]\nurl = "postgre://h/d"',
            2,
            "store.url: no store for postgre://h/d; expected sqlite:///FILE",
        ),
        ('[store]\nurl = "ann:canary@h/d"', 2, "no store for a value that is not a URL"),
        ('[store]\nurl = "sqlite://a.db"', 2, "names no file"),
        ('[store]\nurl = "postgres://ann:c@n@h/d"', 2, "%40 for @"),
        ('[store]\nshards = ["postgres://h/d", "postgres://h:port/d"]', 2, "store.shards: postgres://h:***"),
        (f'[store]\nurl = "{DB_C}"\nlisten_url = "{DB_A} {DB_B}"', 3, "one URL per database (1), got 2"),
        ("[worker]\nprocesses = 65", 2, "from 1 to 64"),
        ("[worker]\nshell = 1", 2, "true or false"),
        ('[worker]\nshell = "maybe"', 2, "true or false"),
        ('[telemetry]\nlisten = "0.0.0.0:1"', 2, "no authentication"),
        ('[telemetry]\nlisten = "7071"', 2, "empty, or host:port"),
        ('[auth]\nmode = "oauth"', 2, "one of none, tokens, jwt"),
        ('[auth]\njwks = "keys.json"', 2, "auth.jwks is about JWTs, but auth.mode is none"),
        ('[auth]\nmode = "tokens"\nissuer = "x"', 3, "but auth.mode is tokens; set auth.mode to jwt"),
        ('[auth]\nmode = "jwt"\nissuer = "x"\naudience = "y"', 2, "nothing to check JWTs with"),
        ('[auth]\nmode = "jwt"\njwks = "k"\naudience = "y"', 2, "auth.issuer is empty"),
        ('[auth]\nmode = "jwt"\njwks = "k"\nissuer = "x"', 2, "auth.audience is empty"),
        ('[auth]\nissuer = " x"', 2, "what the claim has to be"),
        ('[server]\ntrusted_proxies = ["*"]', 2, "addresses or networks"),
        ('[server]\ntrusted_proxies = ["proxy.example.com"]', 2, "addresses or networks"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    read, tmp_path: Path, document: str, line: int, words: str
) -> None:
    loaded = read(local=document)
    assert [finding.where for finding in loaded.findings] == [f"{tmp_path / 'hourhand.toml'}:{line}"]
    assert words in loaded.findings[0].message
    with pytest.raises(CannotStart) as caught:
        loaded.settings()
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"HOURHAND_SERVER_LISTN": "x"}, "did you mean HOURHAND_SERVER_LISTEN?"),
        ({"HOURHAND_HORIZON": "x"}, "unknown variable"),
        ({"HOURHAND_STORE_URL_FILE": "absent"}, "cannot read absent"),
        ({"HOURHAND_SERVER_LISTEN_FILE": "x"}, "unknown variable"),
        ({"HOURHAND_SCHEDULER_LEAD": ""}, "a duration"),
        ({"HOURHAND_TARGETS_SIGNING_SECRET_FILE": "absent"}, "cannot read absent"),
        ({"HOURHAND_TARGETS_SIGNING_SECRET_FILE": "f", "HOURHAND_TARGETS_SIGNING_SECRET": "s"}, "only one"),
    ],
)
def test_wrong_variables_are_named(read, environment: dict[str, str], words: str) -> None:
    findings = read(environment=environment).findings
    assert any(words in finding.message and finding.where in environment for finding in findings)


def test_what_a_command_is_told_about_its_run_is_no_setting(read) -> None:
    assert read(environment=dict.fromkeys(RUN_VARIABLES, "x")).findings == ()


def test_the_clients_variables_are_not_settings(read) -> None:
    assert read(environment={"HOURHAND_URL": "http://x", "HOURHAND_TOKEN": "t", "PATH": "/"}).findings == ()


def test_a_secret_may_lie_in_a_file(read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{GOOD_SECRET}\n")
    loaded = read(environment={"HOURHAND_TARGETS_SIGNING_SECRET_FILE": str(tmp_path / "secret")})
    assert loaded.settings().targets.signing_secret == (GOOD_SECRET,)


@pytest.mark.parametrize(
    "secret",
    [
        "letmein",
        "whsec_" + base64.b64encode(b"short but not a word!").decode(),
        "whsec_" + base64.b64encode(b"a" * 32).decode(),
        "not base64 at all, but long enough to be one",
        *sorted(KNOWN_SECRETS),
    ],
)
def test_weak_secrets_are_refused_and_never_shown(read, secret: str) -> None:
    loaded = read(local=f'[targets]\nsigning_secret = "{secret}"\n')
    assert len(loaded.findings) == 1
    shown = str(loaded.findings) + str(loaded.effective) + repr(loaded.values)
    assert "at least 24 random bytes" in shown
    assert secret not in shown


def test_secrets_are_masked_where_values_are_shown(read) -> None:
    loaded = read(
        local=f'[targets]\nsigning_secret = "{GOOD_SECRET}"\n[store]\nurl = "postgresql://ann:canary@db/x"\n'
    )
    shown = {one.key.path: one.shown for one in loaded.effective}
    assert shown["targets.signing_secret"] == "***"
    assert shown["store.url"] == "postgresql://ann:***@db/x"
    assert loaded.findings == ()
    assert "canary" not in repr(loaded.settings())
    assert GOOD_SECRET not in repr(loaded.settings())


@pytest.mark.parametrize(
    "url",
    ["https://hc.example.com/ping/canary", "https://ann:x@hc.example.com?canary", "https://hc.example.com"],
)
def test_of_a_url_that_proves_by_its_path_the_host_is_shown(read, url: str) -> None:
    loaded = read(environment={"HOURHAND_ALERTS_DEADMAN_URL": url})
    shown = {one.key.path: one.shown for one in loaded.effective}
    assert shown["alerts.deadman_url"] == "https://hc.example.com/***"
    assert loaded.settings().alerts.deadman_url == url
    nothing = {one.key.path: one.shown for one in read().effective}
    assert nothing["alerts.deadman_url"] == ""


def test_passwords_of_databases_are_never_shown(read) -> None:
    url = "postgres://ann:canary@db/x"
    wrong = read(local='[store]\nshards = ["postgres://ann:canary@db/x", "nonsense:canary"]\n')
    assert len(wrong.findings) == 1
    right = read(
        local=f'[store]\nshards = ["{url}", "{url}?sslpassword=canary"]\n'
        f'listen_url = ["{url}y", "postgres://db/x?password=canary&a=b"]\n'
    )
    assert right.findings == ()
    shown = {one.key.path: one.shown for one in right.effective}
    assert shown["store.shards"] == "postgres://ann:***@db/x, postgres://ann:***@db/x?sslpassword=***"
    assert shown["store.listen_url"] == "postgres://ann:***@db/xy, postgres://db/x?password=***&a=b"
    for loaded in (wrong, right):
        assert "canary" not in str(loaded.findings) + str(loaded.effective) + repr(loaded.values)


def test_two_ways_to_name_the_store_are_both_named(read, tmp_path: Path) -> None:
    loaded = read(environment={"HOURHAND_STORE_URL": DB_C}, local=f'[store]\nshards = ["{DB_A}"]\n')
    (finding,) = loaded.findings
    assert "store.url by HOURHAND_STORE_URL" in finding.message
    assert f"store.shards by {tmp_path / 'hourhand.toml'}:2" in finding.message


def test_a_store_url_may_lie_in_a_file(read, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{DB_A}\n")
    assert read(environment={"HOURHAND_STORE_URL_FILE": str(tmp_path / "url")}).settings().store.url == DB_A


def test_a_broken_file_names_line_and_file(read, tmp_path: Path) -> None:
    (finding,) = read(local="[server]\nlisten = \n").findings
    assert finding.where == str(tmp_path / "hourhand.toml")
    assert "line 2" in finding.message


def test_bytes_that_are_no_text_are_a_finding(read, tmp_path: Path) -> None:
    (tmp_path / "hourhand.toml").write_bytes(b"\xff\xfe")
    (finding,) = read().findings
    assert "cannot be read" in finding.message


def test_the_file_asked_for_must_be_there(tmp_path: Path) -> None:
    loaded = load(environment={}, config=tmp_path / "absent.toml", folder=tmp_path, system_file=tmp_path)
    assert "there is no such file" in loaded.findings[0].message


def test_all_that_is_wrong_is_told_at_once(read) -> None:
    with pytest.raises(CannotStart) as caught:
        read(local="[scheduler]\nlead = 0\nhorizon = 0\n").settings()
    assert len(caught.value.message.splitlines()) == 2


def test_the_table_is_whole_and_small() -> None:
    table = keys()
    assert len(table) <= 40
    assert len({key.variable for key in table}) == len(table)
    for key in table:
        assert key.help, key.path
        assert key.kind.allowed, key.path
        assert key.kind.parse(key.kind.show(key.default)) == key.default, key.path


TOKEN_SECRET = "5f1d0c9e7b3a48261d90fbb7e35c8a42ee01"
JWT = f'[auth]\nmode = "jwt"\nissuer = "i"\naudience = "a"\nsecret = "{TOKEN_SECRET}"\n'


@pytest.mark.parametrize("mode", ["tokens", "jwt"])
def test_with_authentication_it_may_listen_anywhere(read, mode: str) -> None:
    auth = JWT if mode == "jwt" else '[auth]\nmode = "tokens"\n'
    loaded = read(local=auth + '[server]\nlisten = "0.0.0.0:80"\n[telemetry]\nlisten = "[::]:81"\n')
    assert loaded.settings().auth.mode == mode


def test_up_to_two_secrets_of_tokens_are_taken_and_never_shown(read) -> None:
    other = TOKEN_SECRET[::-1]
    for text in (f"{TOKEN_SECRET} {other}", f"{TOKEN_SECRET},{other}", f"{TOKEN_SECRET}, {other},{other}"):
        loaded = read(local=JWT.replace(TOKEN_SECRET, text))
        assert loaded.settings().auth.secret == (TOKEN_SECRET, other)
        shown = {one.key.path: one.shown for one in loaded.effective}
        assert shown["auth.secret"] == "***, ***"
        assert TOKEN_SECRET not in repr(loaded.settings())
    three = read(local=JWT.replace(TOKEN_SECRET, f"{TOKEN_SECRET} {other} {TOKEN_SECRET[3:]}x9z"))
    assert "at most two secrets" in three.findings[0].message
    assert TOKEN_SECRET not in str(three.findings)


@pytest.mark.parametrize(
    "secret", ['"secret"', '["", "x"]', '[""]', '"changemechangemechangemechangeme1"', "7"]
)
def test_weak_secrets_of_tokens_are_refused(read, secret: str) -> None:
    loaded = read(local=JWT.replace(f'"{TOKEN_SECRET}"', secret))
    assert "at least 32 random bytes" in loaded.findings[0].message
    assert "changeme" not in str(loaded.findings)


@pytest.mark.parametrize(
    ("place", "right"),
    [
        ("https://id.example.com/.well-known/jwks.json", True),
        ("https://id.internal:8443/keys?x=1", True),
        ("http://127.0.0.1:8080/keys", True),
        ("http://localhost/keys", True),
        ("http://[::1]:1/keys", True),
        ("file:///etc/hourhand/keys.json", True),
        ("/etc/hourhand/keys.json", True),
        ("keys.json", True),
        ("http://id.example.com/keys", False),
        ("http://127.0.0.1.evil.example/keys", False),
        ("https://ann:canary@id.example.com/keys", False),
        ("https://", False),
        ("https://id.example.com:port/", False),
        ("ftp://id.example.com/keys", False),
        ("data://x", False),
        ("file://", False),
        (" ", False),
        ("https://id.example.com/a b", False),
    ],
)
def test_places_of_published_keys(read, place: str, right: bool) -> None:
    loaded = read(local=JWT + f'jwks = "{place}"\n')
    assert (loaded.findings == ()) is right
    if right:
        assert loaded.settings().auth.jwks == place
    else:
        assert "an https:// URL such as" in loaded.findings[0].message
        assert "canary" not in str(loaded.findings)


@pytest.mark.parametrize(
    "url", ["", "redis://h:6379/0?name=x", "rediss://u:p@h", "kafka://a:9092,b:9092/topics?partitions=4"]
)
def test_urls_of_brokers_are_taken_as_they_are(read, url: str) -> None:
    loaded = read(environment={"HOURHAND_QUEUE_URL": url, "HOURHAND_QUEUE_FAST_URL": url})
    assert loaded.findings == ()
    queue = loaded.settings().queue
    assert (queue.url, queue.fast_url, queue.route) == (url, url, "durability")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOURHAND_QUEUE_URL", "amqp://h"),
        ("HOURHAND_QUEUE_URL", "redis://"),
        ("HOURHAND_QUEUE_URL", "redis:// h"),
        ("HOURHAND_QUEUE_FAST_URL", "localhost:6379"),
        ("HOURHAND_QUEUE_ROUTE", "both"),
    ],
)
def test_what_is_no_broker_is_refused(read, variable: str, value: str) -> None:
    [finding] = read(environment={variable: value}).findings
    assert variable in str(finding)


def test_passwords_of_brokers_are_masked(read) -> None:
    loaded = read(
        environment={
            "HOURHAND_QUEUE_URL": "redis://ann:canary@h",
            "HOURHAND_QUEUE_FAST_URL": "redis://:canary@h",
        }
    )
    assert "canary" not in " ".join(one.shown for one in loaded.effective)
    assert "canary" not in repr(loaded.settings())


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "redis://ann:canary@h:6379/3",
        "rediss://:canary@h/0?ssl_cert_reqs=none",
        "etcd://h:2379",
        "etcd://ann:canary@a:2379,b,c:2379/",
        "etcds://[::1]:2379",
    ],
)
def test_lease_servers_by_url(read, url: str) -> None:
    loaded = read(local=f'[store]\nurl = "{DB_C}"\n[leases]\nurl = "{url}"\n')
    assert loaded.settings().leases.url == url
    [shown] = [one.shown for one in loaded.effective if one.key.path == "leases.url"]
    assert shown == url.replace("canary", "***")


@pytest.mark.parametrize(
    ("text", "burst", "per_s", "shown"),
    [("1000/10s", 1_000, 100, "1000/10s"), ("100/s", 100, 100, "100/1s"), ("60 / 1m", 60, 1, "60/1m")],
)
def test_a_rate_is_so_many_in_a_time(text: str, burst: int, per_s: float, shown: str) -> None:
    kind = Rate()
    limit = kind.parse(text)
    assert limit == Limit(burst=burst, per_s=per_s)
    assert kind.show(limit) == shown
    assert kind.parse(kind.show(limit)) == limit


@pytest.mark.parametrize("text", ["", "0", 0])
def test_no_rate_is_no_limit(text: object) -> None:
    assert Rate().parse(text) is None
    assert Rate().show(None) == ""


@pytest.mark.parametrize(
    "text", ["10", "10/", "/s", "0/s", "1.5/s", "10/2d", "10/0s", "-1/s", "9999999/1ms", True]
)
def test_what_is_no_rate(text: object) -> None:
    with pytest.raises(ValueError, match="so many in a time"):
        Rate().parse(text)


def test_where_requests_are_counted_shows_no_password() -> None:
    kind = RedisUrl()
    assert kind.show(kind.parse("redis://:geheim@host:6379/0")) == "redis://:***@host:6379/0"
    for wrong in ("etcd://host", "host", "redis://"):
        with pytest.raises(ValueError, match="redis://"):
            kind.parse(wrong)
