"""A page that is watched: where it is opened, what people do to it with the keyboard, how it is made as new."""

from playwright.sync_api import BrowserContext, Locator, Page, ViewportSize, expect

from tests.browser.guard import Guard
from tests.browser.server import Server

WAIT_MS = 60_000  # of a machine that has other things to do; nobody waits longer than it takes
VIEWPORT: ViewportSize = {"width": 1440, "height": 900}
_FORGET = "() => { localStorage.clear(); sessionStorage.clear(); }"


class Tab:
    """A page that is watched, on one server."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.server = server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.guard = Guard(self.page, server.url)

    def leave(self) -> None:
        """End what the page does and take back what a test did to it; what the guard saw stays to be checked."""
        page = self.page
        page.unroute_all(behavior="ignoreErrors")
        if page.url.startswith(self.server.url):
            page.evaluate(_FORGET)
        page.goto("about:blank")
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.set_viewport_size(VIEWPORT)
        page.mouse.move(0, 0)

    def open(self, path: str = "/", *, live: bool = True) -> Page:
        """Go to an address; by default wait until events arrive, so that nothing is missed."""
        self.page.goto(self.server.url + path)
        if live:
            expect(self.page.locator(".live")).to_have_text("Live")
        return self.page

    def open_now(self) -> Page:
        """Go to Now and wait until it listens for what just happened."""
        page = self.open("/")
        expect(page.get_by_role("heading", name="Just now")).to_be_visible()
        return page

    def press(self, *keys: str) -> None:
        """Keys, one after the other, as a person would press them."""
        for key in keys:
            self.page.keyboard.press(key)

    def toast(self, text: str) -> Locator:
        """Wait for what the page says it has done; the message."""
        found = self.page.locator(".toast").filter(has_text=text).first
        expect(found).to_be_visible()
        return found
