"""The documentation site: it builds, every link and anchor leads somewhere, everyone can read it, and every command on it runs."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import browser
import documented
import wheel_environment
from ciphercost import commands, engines, mechanisms, studies
from ciphercost.load import workloads
from conftest import Require

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site" / "docs"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Print nothing."""


class Anchors(HTMLParser):
    """The links of a page, and the names within it that links may lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.names.add(str(given["id"]))
        for name in ("href", "src"):
            if given.get(name):
                self.links.append(str(given[name]))


@pytest.fixture(scope="module")
def site() -> dict[Path, Anchors]:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs.py"], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Anchors(path) for path in SITE.rglob("*.html") if path.name != "404.html"}


def test_every_link_and_anchor_leads_somewhere(site: dict[Path, Anchors]) -> None:
    broken = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target in site and unquote(parts.fragment) in site[target].names
            if not (there or (target not in site and target.exists())):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert broken == []


def test_every_command_and_option_is_in_the_reference(site: dict[Path, Anchors]) -> None:
    text = (SITE / "reference" / "cli.html").read_text()
    for name, command in commands.cli.commands.items():
        if command.hidden:
            continue
        assert f"ciphercost {name}" in text or f">{name}<" in text, name
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert option in text or not option.startswith("--"), (name, option)


def test_no_page_fetches_anything_from_elsewhere(site: dict[Path, Anchors]) -> None:
    for path in site:
        fetched = re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"(https?://[^\"]+)\"", path.read_text())
        assert [address for address in fetched if "canonical" not in address] == [], path


@pytest.fixture(scope="module")
def served(site: dict[Path, Anchors]) -> Iterator[str]:
    """Address of the site."""
    del site
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def faults(served: str, pages: Iterable[Path], width: int, scheme: str) -> list[str]:
    """What axe, the console and the network say of these pages, and which are wider than the window."""
    wrong: list[str] = []
    with browser.chromium() as opened:
        page = opened.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(browser.PATIENCE_MS)
        page.on("console", lambda message: wrong.append(f"{page.url}: console: {message.text}"))
        page.on("requestfailed", lambda request: wrong.append(f"{page.url}: failed: {request.url}"))
        for path in pages:
            page.goto(f"{served}/{path.relative_to(SITE)}", wait_until="load")
            wrong += [f"{page.url}: {violation}" for violation in browser.violations(page)]
            if (by := page.evaluate(WIDER)) > 0:
                wrong.append(f"{page.url}: {by} px wider than the window")
        page.close()
    return wrong


def test_one_page_of_each_kind_is_accessible_and_fits(require: Require, served: str) -> None:
    require(browser.CHROMIUM, "no chromium: apt-get install chromium")
    kinds = ("index", "how-to/gate-ci", "reference/python", "explanation/method")
    assert faults(served, [SITE / f"{name}.html" for name in kinds], 390, "dark") == []


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits(require: Require, served: str, width: int, scheme: str) -> None:
    require(browser.CHROMIUM, "no chromium: apt-get install chromium")
    assert faults(served, sorted(SITE.rglob("*.html")), width, scheme) == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("engines", engines.names()),
        ("mechanisms", sorted({mechanisms.get(name).family or name for name in mechanisms.names()})),
        ("workloads", workloads.names()),
        ("../studies", studies.names()),
    ],
)
def test_everything_there_is_has_a_section(site: dict[Path, Anchors], page: str, names: list[str]) -> None:
    text = (SITE / "reference" / f"{page}.html").read_text()
    headings = {
        re.sub(r"<[^>]+>|&para;|¶", "", heading).strip() for heading in re.findall(r"<h[23][^>]*>(.*?)</h", text)
    }
    assert set(names) <= headings


@pytest.mark.parametrize("page", [page for page in documented.pages(ROOT) if page not in documented.EXTRAS])
def test_every_command_on_a_page_is_accepted(page: str, tmp_path: Path) -> None:
    """In an environment made of the wheels alone. What would be measured is planned."""
    run_blocks(documented.planned(documented.script(ROOT, page)), wheel_environment.made().warm, tmp_path)


@pytest.mark.parametrize("page", documented.pages(ROOT))
def test_every_command_on_a_page_runs(page: str, tmp_path: Path) -> None:
    """All blocks of a page, in order, in one directory, in an environment made of the wheels and the extra that the page names."""
    variables = wheel_environment.made(documented.EXTRAS.get(page, "")).variables
    run_blocks(documented.script(ROOT, page), variables, tmp_path)


def run_blocks(script: str, variables: Mapping[str, str], place: Path) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=place,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
