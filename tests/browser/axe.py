"""What axe-core says of a page as it stands; the script comes with the wheel `axe-playwright-python`."""

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map((one) => ({ rule: one.id, impact: one.impact, help: one.help,
    nodes: one.nodes.slice(0, 5).map((node) => `${node.target.join(" ")} ${node.html.slice(0, 160)} ${(node.any[0] || {}).message || ""}`) }));
}"""
_SCRIPT = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def violations(page: Page) -> list[dict[str, Any]]:
    """Everything that axe finds wrong, best practices included."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_SCRIPT)
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return found
