"""What callers give that travels in headers: what is taken, what is refused, and that no error ever shows a token."""

import traceback
from typing import Any

import pytest

from hourhand.client import AsyncClient, Client
from hourhand.errors import HourhandError, Invalid
from tests.cli.recorder import HANG_UP, OK, Recorder, Reply, ask, problem, recorder, short_pauses

__all__ = ["ask", "recorder", "short_pauses"]

TOKEN = "hh_0123456789abc_c0ffeec0ffeec0ffee"
BLANKS = ["{}\n", " {}", "\t{} \r\n"]
IMPOSSIBLE = ["{}\nX-Evil: 1", "\0{}", "{}\x7f", "bäd{}", "{}\udce4", "“{}”"]


@pytest.mark.parametrize("blanks", BLANKS)
def test_blanks_around_a_token_and_a_tenant_mean_nothing(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, blanks: str
) -> None:
    recorder.replies = [OK]
    with Client(recorder.url, token=blanks.format(TOKEN), tenant=blanks.format("acme")) as client:
        client.jobs.get("J-1")
    monkeypatch.setenv("HOURHAND_TOKEN", blanks.format(TOKEN))
    monkeypatch.setenv("HOURHAND_TENANT", blanks.format("acme"))
    with Client(recorder.url) as client:
        client.jobs.get("J-1")
    for _, _, headers, _ in recorder.requests:
        assert (headers["Authorization"], headers["Hourhand-Tenant"]) == (f"Bearer {TOKEN}", "acme")


def test_a_token_of_blanks_is_none(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOURHAND_TOKEN", "\n")
    recorder.replies = [OK]
    with Client(recorder.url, tenant=" ") as client:
        client.jobs.get("J-1")
    assert not {"Authorization", "Hourhand-Tenant"} & recorder.requests[0][2].keys()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", ["token", "tenant"])
@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_what_no_header_can_hold_is_refused_at_once_and_not_shown(
    kind: Any, name: str, impossible: str
) -> None:
    with pytest.raises(Invalid, match=f"the {name}") as caught:
        kind("http://127.0.0.1:9", **{name: impossible.format(TOKEN)})
    assert TOKEN not in told(caught.value)


@pytest.mark.parametrize("impossible", [*IMPOSSIBLE, " "])
async def test_a_key_that_no_header_can_hold_is_refused_and_not_sent(
    ask: Any, recorder: Recorder, impossible: str
) -> None:
    recorder.replies = [OK]
    with pytest.raises(Invalid, match="Idempotency-Key") as caught:
        await ask("jobs.run", "J-1", idempotency_key=impossible.format(TOKEN))
    with pytest.raises(Invalid, match="Authorization"):
        await ask("runs.report", "r", attempt=1, token=f"ü{impossible.format(TOKEN)}")
    assert TOKEN not in told(caught.value)
    assert recorder.requests == []


async def test_what_the_http_library_refuses_is_no_silence_of_the_server(
    ask: Any, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.client.clients.checked", dict)  # as if something were overlooked
    recorder.replies = [OK]
    for call in ("jobs.run", "runs.rerun"):
        with pytest.raises(Invalid, match="cannot be sent") as caught:
            await ask(call, "J-1", idempotency_key=f"{TOKEN}\n")
        assert TOKEN not in told(caught.value)
    assert recorder.requests == []


FAILURES: list[list[Reply]] = [
    [HANG_UP],
    [problem(401, "wrong_token")],
    [problem(500, "internal")],
    [problem(422, "invalid")],
    [(200, b"<html>", {})],
    [(502, b"", {})],
]


@pytest.mark.parametrize("replies", FAILURES)
@pytest.mark.parametrize("form", ["{}", *BLANKS, *(bad for bad in IMPOSSIBLE if "\0" not in bad)])
@pytest.mark.parametrize("command", ["jobs list", "jobs run J-1 --json", "tail", "export", "whoami"])
def test_no_command_ever_shows_the_token(
    hourhand: Any,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    replies: list[Reply],
    form: str,
    command: str,
) -> None:
    recorder.replies = replies
    monkeypatch.setenv("HOURHAND_URL", recorder.url)
    monkeypatch.setenv("HOURHAND_TOKEN", form.format(TOKEN))
    done = hourhand(*command.split())
    assert done.code in (1, 2, 4, 6)
    assert TOKEN not in done.out + done.err
    if form in IMPOSSIBLE:
        assert (done.code, recorder.requests) == (2, [])
        assert "HOURHAND_TOKEN" in done.err


def told(error: HourhandError) -> str:
    """All that a log of an error would have."""
    return "".join(traceback.format_exception(error)) + repr(error) + error.message
