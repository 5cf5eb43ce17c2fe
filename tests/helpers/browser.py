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

VIOLATIONS = {"resultTypes": ["violations"]}
"""Of what passes, axe then describes one element of each rule; what it checks stays the same."""

PATIENCE_MS = 120_000
"""Milliseconds that the browser may take for a step: on a busy machine Playwright's 30 s are too few."""

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
            _kept.clear()
            browser.close()


_kept: list[Page] = []
"""Pages of the open browser that nobody visits now."""


class Visits:
    """Pages that one test opens. The next test opens the same ones, empty and as new: each needs processes of its own, and starting them
    takes longer than most visits.
    """

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self._visits: list[Visit] = []

    def __enter__(self) -> Visits:
        return self

    def __exit__(self, *_: object) -> None:
        for visit in self._visits:
            visit.leave()
            _kept.append(visit.page)

    def open(self, address: str, width: int, scheme: str = "light") -> Visit:
        page = _kept.pop() if _kept else self._chromium.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="null", color_scheme="dark" if scheme == "dark" else "light")
        visit = Visit(page, address)
        self._visits.append(visit)
        visit.go()
        return visit


class Visit:
    """An open page, with its network requests and console messages."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._address = address

    def go(self) -> None:
        """Load the page and wait until it asks for nothing more."""
        self.page.on("console", self._says)
        self.page.on("pageerror", self._fails)
        self.page.route("**/*", self._asks)
        self.page.goto(self._address, wait_until="networkidle")

    def leave(self) -> None:
        """Leave it, and nothing of this visit behind."""
        self.page.goto("about:blank")
        self.page.unroute_all()
        self.page.remove_listener("console", self._says)
        self.page.remove_listener("pageerror", self._fails)

    def _says(self, message: Any) -> None:
        self.complaints.append(message.text)

    def _fails(self, error: Any) -> None:
        self.complaints.append(str(error))

    def _asks(self, request: Any) -> None:
        if request.request.url == self._address.partition("#")[0]:
            request.continue_()
        else:
            self.asked.append(request.request.url)
            request.abort()

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
        for each in Axe().run(page, options=VIOLATIONS).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
