"""This machine's headless Chromium for tests of HTML pages, and checks of a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
"""The installed browser: not every machine may download Playwright's own."""

TEXTS = """
() => {
  // Every piece of text that can be seen, and how large it is on the screen, whatever scales it.
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || parent.closest('title, style, .sr, .skip') || !parent.checkVisibility()) continue;
    const scale = parent instanceof SVGElement && parent.getScreenCTM ? Math.abs(parent.getScreenCTM().d) || 1 : 1;
    found.push([text, parseFloat(getComputedStyle(parent).fontSize) * scale]);
  }
  return found;
}
"""

CUT = """
() => [...document.querySelectorAll('main svg text')].filter(text => text.checkVisibility()).map(text => {
  const own = text.getBoundingClientRect(), page = document.documentElement.clientWidth;
  return [text.textContent, Math.round(own.left), Math.round(own.right), page];
}).filter(([, left, right, page]) => left < -1 || right > page + 1)
"""
"""Texts of plots that extend beyond the page."""

CLIPPED = """
() => [...document.querySelectorAll('body *')].filter(each => each.checkVisibility() && !(each instanceof SVGElement)
    && !each.closest('.sr, .skip') && each.scrollWidth > each.clientWidth + 1
    && getComputedStyle(each).overflowX !== 'visible' && each.clientWidth > 0)
  .map(each => [each.tagName, each.className, each.scrollWidth, each.clientWidth, each.textContent.slice(0, 60)])
"""
"""What has more in it than it shows."""

_open: list[Any] = []
"""The open browser of this process, if any: Playwright can't start twice."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser with an empty profile."""
    if _open:
        yield _open[0]
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        _open.append(browser)
        try:
            yield browser
        finally:
            _open.clear()
            browser.close()


class Visits:
    """Pages that one test opens; they are closed when it ends, since each keeps processes of its own."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self._pages: list[Page] = []

    def __enter__(self) -> Visits:
        return self

    def __exit__(self, *_: object) -> None:
        for page in self._pages:
            page.close()

    def open(self, address: str, width: int, scheme: str = "light") -> Visit:
        page = self._chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self._pages.append(page)
        return Visit(page, address)


class Visit:
    """An open page, with its network requests and console messages."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

        def route(request: Any) -> None:
            if request.request.url == address.partition("#")[0]:
                request.continue_()
            else:
                self.asked.append(request.request.url)
                request.abort()

        page.route("**/*", route)
        page.goto(address, wait_until="networkidle")

    def open_all(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")

    def faults(self) -> list[str]:
        """Serious and critical accessibility violations, as axe reports them."""
        return violations(self.page)


def violations(page: Page) -> list[str]:
    """Serious and critical accessibility violations of a page, as axe reports them."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
