"""Logging in and out, what each role may do on the page, and the view of tokens; on a server that asks who is there."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.server import Server
from tests.browser.tab import Tab
from tests.browser.test_looks import assert_axe_finds_nothing, assert_nothing_scrolls_sideways

REFUSED = r"401 \(Unauthorized\)"


class AskingServer(Server):
    """The command that asks everybody for a token, and a token of who runs it."""

    root = ""

    def begin(self) -> "AskingServer":
        self.environment |= {"HOURHAND_AUTH_MODE": "tokens", "HOURHAND_STORE_URL": f"sqlite:///{self.data}"}
        command = ["token", "create", "root", "--role", "admin", "--tenant", "*", "--direct", "-q"]
        made = subprocess.run(
            [*self.launcher, *command], env=self.environment, capture_output=True, text=True, check=True
        )
        self.root = made.stdout.strip()
        self.start()
        return self

    def ask(self, status: int, method: str, path: str, body: object = None) -> Any:
        return self.api.expect(status, method, path, body, Authorization=f"Bearer {self.root}")

    def token(self, name: str, role: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(201, "POST", "/tokens", {"name": name, "role": role})
        return found

    def make_job(self, name: str) -> str:
        document = {"name": name, "cron": "0 0 1 1 *", "callback_url": "https://example.com/hook"}
        return str(self.ask(201, "POST", "/jobs", document)["job_id"])


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskingServer]:
    running = AskingServer(tmp_path_factory.mktemp("asking"))
    try:
        yield running.begin()
    finally:
        running.kill()


@pytest.fixture
def own(asking: AskingServer, make_tab: Callable[..., Tab]) -> Tab:
    made = make_tab(asking)
    made.guard.allow(REFUSED)
    return made


def log_in(tab: Tab, token: str, path: str = "/") -> Page:
    page = tab.open(path, live=False)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".live")).to_have_text("Live")
    return page


def test_a_wrong_token_is_told_and_the_right_one_leads_where_one_was_going(
    own: Tab, asking: AskingServer
) -> None:
    page = own.open("/dead-letters?error=x", live=False)
    expect(page.get_by_label("Token")).to_be_focused()
    page.get_by_label("Token").fill("hh_0000000000000_" + "0" * 64)
    own.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not known here")
    expect(page.get_by_label("Token")).to_have_value("")
    page.get_by_label("Token").fill(asking.root)
    own.press("Enter")
    expect(page).to_have_url(f"{asking.url}/dead-letters?error=x")
    expect(page.locator(".me")).to_contain_text("root admin")
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert page.evaluate("document.cookie") == ""
    assert not any(asking.root in request for request in own.guard.requests)


def test_it_works_without_javascript(asking: AskingServer, make_tab: Callable[..., Tab]) -> None:
    tab = make_tab(asking, java_script_enabled=False)
    tab.guard.allow(REFUSED)
    page = tab.open("/jobs", live=False)
    page.get_by_label("Token").fill(asking.root)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{asking.url}/jobs")
    expect(page.locator("noscript, main.plain").first).to_be_attached()


def test_logging_out_ends_it(own: Tab, asking: AskingServer) -> None:
    page = log_in(own, asking.root, "/access")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(
        f"{asking.url}/login"
    )  # on the page that is left, the list of tokens has that label too
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    assert page.context.cookies() == []
    page.goto(f"{asking.url}/jobs")
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_token_is_made_copied_once_and_revoked(own: Tab, asking: AskingServer) -> None:
    page = log_in(own, asking.root, "/access")
    page.get_by_role("button", name="Make a token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("from the page")
    dialog.get_by_label("Role").select_option("editor")
    dialog.get_by_label("It holds").select_option("30d")
    dialog.get_by_label("Tenant").fill("acme")
    dialog.get_by_role("button", name="Make it").click()
    shown = page.get_by_label("Token", exact=True)
    expect(shown).to_contain_text("hh_")
    token = shown.inner_text()
    assert violations(page) == []
    page.get_by_role("button", name="I have kept it").click()
    row = page.locator("tr").filter(has_text="from the page")
    for words in ("acme", "editor", "live", "never"):
        expect(row).to_contain_text(words)
    assert token not in page.content()
    me = asking.api.expect(200, "GET", "/whoami", Authorization=f"Bearer {token}")
    assert (me["tenant"], me["role"]) == ("acme", "editor")

    row.get_by_role("button", name="Revoke from the page").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke the token").click()
    own.toast("Revoked from the page.")
    expect(row).to_contain_text("revoked")
    expect(row.get_by_role("button")).to_have_count(0)


def facts(page: Page, section: str) -> dict[str, str]:
    """Names and values of a section's list."""
    found = page.get_by_role("region", name=section)
    expect(found).to_be_visible()
    names, values = found.locator("dt").all_inner_texts(), found.locator("dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


def test_what_each_role_may_is_said_as_it_is(own: Tab, asking: AskingServer) -> None:
    """Above all of the admin: who is one of a tenant has its webhooks, and reads its quota but does not set it."""
    amir = {"name": "amir", "role": "admin", "tenant": "amir"}
    token = asking.ask(201, "POST", "/tokens", amir)["token"]
    page = log_in(own, token, "/access")
    told = facts(page, "Roles")
    assert list(told) == ["viewer", "operator", "editor", "admin"]
    assert "webhooks" in told["admin"]
    assert "quotas are set by those who run the system" in told["admin"]
    bearer = {"Authorization": f"Bearer {token}"}
    asking.api.expect(200, "GET", "/webhooks", **bearer)
    asking.api.expect(200, "GET", "/quota", **bearer)
    asking.api.expect(403, "PUT", "/tenants/amir/quota", {"jobs": 9}, **bearer)
    assert_nothing_scrolls_sideways(page)


def test_a_quota_is_shown_with_what_there_is_of_it(own: Tab, asking: AskingServer) -> None:
    me = asking.ask(201, "POST", "/tokens", {"name": "amy", "role": "editor", "tenant": "amy"})
    bearer = {"Authorization": f"Bearer {me['token']}"}
    job = {"name": "hourly", "every": "40s", "callback_url": "https://example.com/hook"}
    asking.api.expect(201, "POST", "/jobs", job, **bearer)
    size = asking.api.expect(200, "GET", "/quota", **bearer)["use"]["document_bytes"]
    page = log_in(own, me["token"], "/access")
    assert facts(page, "Quota") == {
        "Tenant": "amy",
        "Jobs": "1, no limit",
        "Runs a minute": "1.5, no limit",
        "Documents": f"{size} bytes, no limit",
        "Payload": "up to 262,144 bytes",
        "History": "30 days",
    }
    limits = {"jobs": 1_000, "runs_per_minute": 600, "document_bytes": 1_048_576, "payload_bytes": 1_024}
    asking.ask(200, "PUT", "/tenants/amy/quota", {**limits, "history_days": 1})
    page.reload()
    assert facts(page, "Quota") == {
        "Tenant": "amy",
        "Jobs": "1 of 1,000",
        "Runs a minute": "1.5 of 600",
        "Documents": f"{size} of 1,048,576 bytes",
        "Payload": "up to 1,024 bytes",
        "History": "1 day",
    }
    assert_axe_finds_nothing(page)
    assert_nothing_scrolls_sideways(page)


def test_a_quota_of_a_server_with_odd_answers_is_text(own: Tab, asking: AskingServer) -> None:
    page = own.open("/login", live=False)
    answer = {"tenant": "<img src=x onerror=alert(1)>", "limits": {}, "use": {}}
    page.route("**/api/v1/quota", lambda route: route.fulfill(json=answer))
    page = log_in(own, asking.root, "/access")
    told = facts(page, "Quota")
    assert (told["Tenant"], told["Payload"], told["Jobs"]) == (answer["tenant"], "no limit", "–, no limit")


def test_a_viewer_sees_all_and_can_pause_nothing(own: Tab, asking: AskingServer) -> None:
    job = asking.make_job("held")
    page = log_in(own, asking.token("vera", "viewer")["token"], f"/jobs/{job}")
    actions = page.get_by_role("group", name="Actions")
    for name, role in (
        ("Run now", "operator"),
        ("Pause", "operator"),
        ("Edit", "editor"),
        ("Delete", "editor"),
    ):
        button = actions.get_by_role("button", name=name)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", f"This needs the role {role}; yours is viewer.")
    own.press("p")
    own.toast("This needs the role operator; yours is viewer.")
    expect(page.get_by_role("dialog")).to_have_count(0)
    own.press("e")
    expect(page).to_have_url(f"{asking.url}/jobs/{job}")
    page.goto(f"{asking.url}/jobs")
    expect(page.get_by_role("button", name="Create a job")).to_be_disabled()
    expect(page.get_by_role("button", name="Pause held")).to_be_disabled()
    page.goto(f"{asking.url}/access")
    expect(page.get_by_role("button", name="Make a token")).to_be_disabled()
    expect(page.get_by_text("Only an admin sees")).to_be_visible()
    assert asking.ask(200, "GET", f"/jobs/{job}")["state"] == "active"


def test_an_operator_pauses_but_does_not_edit(own: Tab, asking: AskingServer) -> None:
    job = asking.make_job("operated")
    page = log_in(own, asking.token("olga", "operator")["token"], f"/jobs/{job}")
    actions = page.get_by_role("group", name="Actions")
    expect(actions.get_by_role("button", name="Edit")).to_be_disabled()
    actions.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    own.toast("Paused operated.")
    assert asking.ask(200, "GET", f"/jobs/{job}")["state"] == "paused"


def test_what_the_server_refuses_is_said(own: Tab, asking: AskingServer) -> None:
    own.guard.allow(r"403 \(Forbidden\)")
    job = asking.make_job("refused")
    page = own.open("/login", live=False)
    page.route("**/api/v1/whoami", lambda route: route.abort())  # the page does not know what its role is
    own.guard.allow("whoami")
    page = log_in(own, asking.token("vic", "viewer")["token"], f"/jobs/{job}")
    page.get_by_role("group", name="Actions").get_by_role("button", name="Run now").click()
    own.toast("this needs the role operator")


def test_who_was_revoked_is_led_to_the_form_and_back(own: Tab, asking: AskingServer) -> None:
    made = asking.token("soon gone", "viewer")
    page = log_in(own, made["token"], "/jobs")
    asking.ask(200, "DELETE", f"/tokens/{made['token_id']}")
    page.wait_for_timeout(3_100)  # in which a process may still believe it
    page.get_by_role("link", name="Dead letters").first.click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.get_by_label("Token").fill(asking.root)
    own.press("Enter")
    expect(page).to_have_url(f"{asking.url}/dead-letters")


@pytest.mark.parametrize("view", ["/login", "/access"])
def test_access_and_the_form_fit_every_screen_and_theme(own: Tab, asking: AskingServer, view: str) -> None:
    if view == "/access":
        page = log_in(own, asking.root, view)
        expect(page.locator("table.tokens tbody tr").first).to_be_visible()
    else:
        page = own.open(view, live=False)
    assert_axe_finds_nothing(page)
    assert_nothing_scrolls_sideways(page)


def test_where_nobody_is_asked_it_says_so(tab: Tab) -> None:
    page = tab.open("/access")
    expect(page.locator(".note.warn")).to_contain_text("Nobody is asked")
    expect(page.locator(".me")).to_have_count(0)
    expect(page.get_by_role("button", name="Log out")).to_have_count(0)
    tab.press("g", "n")
    expect(page.get_by_role("link", name="Now", exact=True).first).to_have_attribute("aria-current", "page")
    tab.press("g", "a")
    expect(page.get_by_role("heading", name="Access", level=1)).to_be_visible()
