"""The results book in Chromium: filters without a network, links that lead somewhere, light and dark, phone and screen; and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from click.testing import CliRunner, Result

import browser
import fake
import results
from ciphercost import commands
from ciphercost.book import pages, rows, site
from ciphercost.book.check import Checked
from ciphercost.estimate.trace import Trace
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import RunFacts
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import registry_facts, toml
from ciphercost.plan.resolve import resolve
from ciphercost.runs import pipeline

LARGEST = 1_000_000
"""Bytes of the front page with everything that it loads."""
WIDTHS = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]


def book(*argv: str | Path) -> Result:
    return CliRunner().invoke(commands.cli, ["book", *map(str, argv)])


def refused(*argv: str | Path) -> str:
    """The message of a command that must be refused as bad usage."""
    error = book(*argv).exception
    assert isinstance(error, UsageError)
    assert error.exit_status == 2
    return str(error)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the null engine, from the fake agent with virtual time; the second as if on another machine."""
    place = tmp_path_factory.mktemp("runs")
    cells = [CellSpec("null", "busy", factors={"effect": f"{effect}%"}, regime="one-core") for effect in (2, 20)]
    cells.append(CellSpec("null", "none", regime="one-core"))
    with fake.in_place(tmp_path_factory.mktemp("agent"), "--effect 0.2 --sd 0.02"):
        for number, measured in enumerate((cells, cells[1:2])):
            pipeline.run(Spec(cells=measured, seed=7, mode="quick", sessions=1, time=4.0), place / f"run-{number}")
    for name in ("plan.json", "result.json"):
        path = place / "run-1" / name
        value = json.loads(path.read_bytes())
        value["machine"] = dict(value["machine"], cpu="Other(R) CPU", cores=16)
        path.write_text(json.dumps(value))
    return place


@pytest.fixture(scope="session")
def built(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "book"
    done = book(runs, "-o", place)
    assert done.exit_code == 0, done.output
    assert "4 cells of 2 runs" in done.output
    return place


@pytest.fixture
def visits(chromium: Any) -> Iterator[browser.Visits]:
    with browser.Visits(chromium) as visits:
        yield visits


class Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.targets += [value for name in ("href", "src") if (value := attributes.get(name))]
        self.ids |= {value for name in ("id",) if (value := attributes.get(name))}


# ── what it consists of


def test_every_link_leads_to_a_file_of_the_book(built: Path) -> None:
    everything = {path: Links(path.read_text()) for path in built.rglob("*.html")}
    assert len(everything) == 3 + 4 + 1, (
        "front page, machines, contribute; a page for each cell, and one for the run of several"
    )
    linked = set()
    for path, links in everything.items():
        for link in links.targets:
            parts = urlsplit(link)
            assert not parts.scheme, f"{path.name} loads or links {link}"
            assert not parts.netloc
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name}: {link}"
            linked.add(target)
            if parts.fragment and target != built / "index.html":
                assert parts.fragment in everything[target].ids, f"{path.name}: {link}"
    assert {path.resolve() for path in built.rglob("*") if path.is_file()} - linked <= {built.resolve() / site.MARK}


def test_the_front_page_is_small(built: Path) -> None:
    assert (built / "index.html").stat().st_size < LARGEST
    assert not [link for link in Links((built / "index.html").read_text()).targets if link.endswith((".css", ".js"))]


def test_the_front_page_of_a_large_book_is_small() -> None:
    one = results.result(*(results.cell(clients=number + 1) for number in range(80)))
    facts = RunFacts(
        format=2,
        id=one.id,
        started=one.started,
        tool=one.tool,
        machine=one.machine,
        seed=7,
        spec=Spec(cells=[CellSpec("postgresql", "tls", clients=number + 1) for number in range(80)]),
        cells=registry_facts.planned([resolve(CellSpec("postgresql", "tls"))] * 80),
    )
    many = [Checked(facts, msgspec.structs.replace(one, id=f"{one.id}{number}"), "complete") for number in range(5)]
    text = pages.index(pages.book(many, rows.rows(many)))
    assert text.count("<tr role") == 401
    assert len(text.encode()) < LARGEST


def test_a_cell_page_has_its_plots_proofs_conditions_and_command(built: Path, runs: Path) -> None:
    run = json.loads((runs / "run-0" / "result.json").read_bytes())["id"]
    text = (built / "cells" / f"{run}-2.html").read_text()
    for expected in (
        "Every slice",
        "Latency, ms",
        "Conditions and counts",
        "hashes match",
        f"ciphercost run {run}-2.toml",
        f'href="../records/{run}.tar.xz"',
        f'href="../runs/{run}.html"',
        "effect=20%",
    ):
        assert expected.lower() in text.lower(), expected
    spec = toml.load(built / "cells" / f"{run}-2.toml")
    assert [(cell.engine, cell.mechanism, cell.factors) for cell in spec.cells] == [("null", "busy", {"effect": "20%"})]
    assert (spec.seed, spec.time, spec.mode) == (7, 4.0, "quick")


def test_the_witnesses_of_both_arms_are_on_a_cells_page() -> None:
    cell = results.cell()
    one = results.result(cell)
    registered = results.of_registries("postgresql", "tls")
    assert registered
    facts = RunFacts(
        2,
        one.id,
        one.started,
        one.tool,
        one.machine,
        7,
        Spec([CellSpec("postgresql", "tls")]),
        registry_facts.planned([resolve(CellSpec("postgresql", "tls"))]),
    )
    checked = Checked(facts, one, "none")
    (row,) = rows.rows([checked])
    assert row.proof == "encrypted arm only"
    empty = Trace([], {}, False, 0, 0, 0, {}, 0)
    text = pages.cell(checked, row, empty, pages.Download("../records/x.tar.xz", 1000), whole=False)
    assert "encrypted arm, wire" in text
    assert "12 TLS records" in text
    assert "no hash" in text


def test_a_download_is_a_run_with_the_same_figures(built: Path, runs: Path, tmp_path: Path) -> None:
    for packed in (built / "records").iterdir():
        again = site.checked_run(packed)
        (original,) = [
            json.loads(path.read_bytes())
            for path in runs.glob("*/result.json")
            if json.loads(path.read_bytes())["id"] == again.result.id
        ]
        for cell, claimed in zip(again.result.cells, original["cells"], strict=True):
            assert json.loads(msgspec.json.encode(cell.overhead)) == claimed["overhead"]
    other = tmp_path / "again"
    assert book(built / "records", "-o", other).exit_code == 0
    names = [path.name for path in (built / "records").iterdir()]
    assert sorted(names) == sorted(path.name for path in (other / "records").iterdir())
    for name in names:
        assert (built / "records" / name).read_bytes() == (other / "records" / name).read_bytes()
    assert (other / "index.html").read_text() == (built / "index.html").read_text()


def test_machines_are_compared_by_equal_cells(built: Path) -> None:
    page = (built / "machines.html").read_text()
    machines, *compared = re.findall(r"<table.*?</table>", page, re.DOTALL)
    assert "Other CPU, 16 cores" in machines
    headings = [re.search(r"<caption>(.*)</caption>", table) for table in compared]
    # The cells with an effect of 2 % and of nothing were measured on one machine only.
    assert [bool(heading and "effect=20%" in heading[1]) for heading in headings] == [True]
    assert len(re.findall(r'href="cells/', compared[0])) == 2


def test_one_machine_is_said_to_be_one(runs: Path, tmp_path: Path) -> None:
    assert book(runs / "run-0", "-o", tmp_path / "book").exit_code == 0
    assert "come from one machine" in (tmp_path / "book" / "machines.html").read_text()


# ── what it refuses


@pytest.fixture
def bad(runs: Path, tmp_path: Path) -> Path:
    """A copy of the runs; the second claims a lower cost than its slices give."""
    shutil.copytree(runs, tmp_path / "runs")
    path = tmp_path / "runs" / "run-1" / "result.json"
    value = json.loads(path.read_bytes())
    value["cells"][0]["overhead"]["throughput"]["ratio"] = 0.99
    path.write_text(json.dumps(value))
    return tmp_path / "runs"


def test_a_bad_run_stops_the_build_and_is_named(bad: Path, tmp_path: Path) -> None:
    message = refused(bad, "-o", tmp_path / "book")
    assert f"{bad / 'run-1'}: result.json does not follow" in message
    assert "cell 1, `overhead.throughput.ratio`" in message
    assert not (tmp_path / "book").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["runs"], "nothing half-built is left"


def test_bad_runs_can_be_left_out(bad: Path, tmp_path: Path) -> None:
    done = book(bad, "-o", tmp_path / "book", "--skip-bad")
    assert done.exit_code == 0
    assert f"left out: {bad / 'run-1'}: result.json does not follow" in done.output
    assert "3 cells of 1 run:" in done.output


def test_a_run_counts_once(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "run-0", tmp_path / "again")
    assert "already holds" in refused(runs, tmp_path / "again", "-o", tmp_path / "book")


def test_a_directory_that_is_no_book_is_not_replaced(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert "no results book" in refused(runs / "run-1", "-o", tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    for _ in range(2):
        assert book(runs / "run-1", "-o", tmp_path / "book").exit_code == 0, "an older book is replaced"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["{}", "--check", "--pack"], "two things"),
        (["{}", "--check", "--condense"], "--pack"),
        (["{}"], "-o"),
        (["{}/nothing", "--check"], "no run"),
        (["{}/run-0/plan.json", "--check"], "no packed run"),
    ],
)
def test_wrong_options_are_refused(runs: Path, argv: list[str], words: str) -> None:
    assert words in refused(*(arg.format(runs) for arg in argv))


# ── in the browser


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
@pytest.mark.parametrize("page", ["index", "machines", "contribute", "cell"])
def test_every_page_is_accessible_and_fits(visits: Any, built: Path, page: str, width: int, scheme: str) -> None:
    path = next(iter(sorted((built / "cells").glob("*.html")))) if page == "cell" else built / f"{page}.html"
    visit = visits.open(path.as_uri(), width, scheme)
    visit.open_all()
    assert visit.faults() == []
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert (visit.asked, visit.complaints) == ([], []), "no request, no error"


def shown(visit: browser.Visit) -> list[str]:
    """Mechanism and settings of each visible row."""
    labels: list[str] = visit.page.evaluate(
        """() => [...document.querySelectorAll('#book tbody tr')].filter(row => row.checkVisibility())
             .map(row => row.dataset.mechanism + ' ' + row.cells[2].querySelector('.note').textContent.split(',')[0])"""
    )
    return labels


def test_filters_work_without_a_network_and_stay_in_the_address(visits: Any, built: Path) -> None:
    address = (built / "index.html").as_uri()
    visit = visits.open(address, 1440)
    assert len(shown(visit)) == 4
    visit.page.locator("select[name=mechanism]").select_option("none")
    assert [label.split()[0] for label in shown(visit)] == ["none"]
    assert visit.page.locator("#count").text_content() == "1 of 4 cells"
    assert visit.page.evaluate("location.hash") == "#mechanism=none"
    visit.page.locator("select[name=mechanism]").select_option("busy")
    visit.page.locator("select[name=machine]").select_option("Other CPU, 16 cores")
    assert shown(visit) == ["busy effect=20%"]
    again = visits.open(visit.page.url.replace(address, address), 390)
    assert shown(again) == ["busy effect=20%"]
    assert again.page.locator("select[name=machine]").input_value() == "Other CPU, 16 cores"
    again.page.get_by_role("button", name="Show all").click()
    assert len(shown(again)) == 4
    assert again.page.evaluate("location.hash") == ""
    again.page.locator("input[name=q]").fill("nothing like it")
    assert shown(again) == []
    assert again.page.locator("#nothing").is_visible()
    assert (visit.asked, visit.complaints, again.asked, again.complaints) == ([], [], [], [])


def test_sorting_and_metrics(visits: Any, built: Path) -> None:
    visit = visits.open((built / "index.html").as_uri(), 1440)
    visit.page.locator("select[name=metric]").select_option("throughput")
    head = visit.page.get_by_role("button", name="what encryption adds")
    head.click()
    share = "() => [...document.querySelectorAll('#book tbody tr')].map(r => (JSON.parse(r.dataset.figures).throughput || {size: 9}).size)"
    costs = visit.page.evaluate(share)
    assert costs == sorted(costs)
    assert visit.page.locator("th.cost").get_attribute("aria-sort") == "ascending"
    head.click()
    assert visit.page.evaluate(share) == sorted(costs, reverse=True)
    assert visit.page.evaluate("location.hash") == "#metric=throughput&sort=-cost"
    values = visit.page.locator("#book .value").all_text_contents()
    assert len(values) == len(costs) == 4
    assert all("fewer" in value for value in values), "encryption costs throughput in every cell of this book"
    visit.page.locator("select[name=metric]").select_option("p99")
    first = visit.page.locator("#book tbody tr").first.locator(".value").text_content()
    assert first == "not measured", "these cells have no phase of latency"


def test_the_address_of_an_older_book_shows_everything(visits: Any, built: Path) -> None:
    visit = visits.open((built / "index.html").as_uri() + "#engine=oracle&metric=joules&sort=colour", 1440)
    assert len(shown(visit)) == 4
    assert visit.complaints == []


def test_without_javascript_the_table_is_complete(chromium: Any, built: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto((built / "index.html").as_uri())
        assert page.locator("#book tbody tr").count() == 4
        assert not page.locator("#filters").is_visible()
    finally:
        context.close()


def test_a_record_cannot_run_code_on_a_page(visits: Any, runs: Path, tmp_path: Path) -> None:
    attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"]}"
    shutil.copytree(runs / "run-1", tmp_path / "run")
    for name in ("plan.json", "result.json"):
        value = json.loads((tmp_path / "run" / name).read_bytes())
        value["machine"]["cpu"] = attack
        value["cells"][0]["version"] = attack
        (tmp_path / "run" / name).write_text(json.dumps(value))
    done = book(tmp_path / "run", "-o", tmp_path / "book")
    assert done.exit_code == 0, done.exception
    for path in (tmp_path / "book").rglob("*.html"):
        visit = visits.open(path.as_uri(), 1440)
        assert visit.page.title() != "owned"
        assert (visit.asked, visit.complaints) == ([], [])


def test_the_grid_of_the_projects_own_book_is_accepted() -> None:
    from ciphercost.plan import specs

    paths = sorted((Path(__file__).parents[2] / "book" / "grid").glob("*.toml"))
    cells = 0
    for path in paths:
        spec = toml.load(path)
        assert tomllib.loads(path.read_text())["cells"]
        assert specs.plan(spec).cells
        cells += len(spec.cells)
    assert cells >= 60
