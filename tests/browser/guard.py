"""What no test may bring about: a dialog, an error in the console, a breach of the policy, a request elsewhere.

A test that wants one of them, such as a refused request, says so beforehand with `allow`.
"""

import re
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Dialog, Page, Request

_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


class Guard:
    """Watches one page for as long as it is open, for one test after the other."""

    def __init__(self, page: Page, origin: str) -> None:
        self._host = urlsplit(origin).netloc
        self._allowed: list[re.Pattern[str]] = []
        self._seen: list[str] = []
        self.requests: list[str] = []
        page.add_init_script(_REPORT_VIOLATIONS)
        page.on("dialog", self._dialog)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._seen.append(f"exception: {error}"))
        page.on("request", self._request)

    def renew(self) -> None:
        """Forget what was seen and allowed: another test begins."""
        self._allowed.clear()
        self._seen.clear()
        self.requests.clear()

    def allow(self, pattern: str) -> None:
        """What matches is what the test wants to happen."""
        self._allowed.append(re.compile(pattern))

    def check(self) -> None:
        """Fail with everything that should not have been."""
        wrong = [text for text in self._seen if not any(one.search(text) for one in self._allowed)]
        assert not wrong, "\n".join(wrong)

    def _dialog(self, dialog: Dialog) -> None:
        self._seen.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._seen.append(f"console: {message.text} {message.location.get('url', '')}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self.requests.append(f"{request.method} {parts.path}{'?' + parts.query if parts.query else ''}")
        if parts.netloc != self._host:
            self._seen.append(f"elsewhere: {request.url}")
