"""The HTML page in a real browser: no requests or console errors; phone, dark mode, print and screen reader."""

from __future__ import annotations

import html as html_module
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import browser
import fake
import records
import results
from ciphercost import commands
from ciphercost.estimate import trace
from ciphercost.host import supervisor
from ciphercost.model.result import Result, Warning_
from ciphercost.model.slices import Finding
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import advice
from ciphercost.report.formats import html
from ciphercost.report.words import cell_text, figure_text, verdict_text
from ciphercost.runs import conclude, html_page, pipeline

LARGEST = 3_000_000
SMALLEST_TEXT = 12.0
GRID = 30


@cache
def result_of(directory: Path) -> Result:
    """A record's result. Every test that asks for it gets the same, which nobody changes."""
    return conclude.result_of(directory)


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of PostgreSQL with TLS, and its page."""
    directory = records.unpacked("postgresql-tls", tmp_path_factory.mktemp("quick"))
    html.write(result_of(directory), directory, directory / html_page.NAME)
    return directory


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty cells of one experiment, from the fake agent with virtual time."""
    place = tmp_path_factory.mktemp("grid")
    cells = [
        CellSpec(
            "null", "busy", regime="one-core", group="1", variant=f"effect={number}%", factors={"effect": f"{number}%"}
        )
        for number in range(1, GRID + 1)
    ]
    with fake.in_place(place, "--effect 0.2 --sd 0.05"):
        pipeline.run(Spec(cells=cells, seed=7, mode="quick", sessions=1, time=2.0), place / "run")
    return place / "run"


@pytest.fixture(scope="session")
def lost(quick: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without any number, whose every text is an attack."""
    result = result_of(quick)
    attack = "<script>fetch('http://203.0.113.1/')</script><img src=x onerror=alert(1)>\"'&amp;" + "x" * 300
    broken = msgspec.structs.replace(
        result.cells[0],
        status="failed",
        reason=attack,
        version=attack,
        variant=attack,
        overhead={},
        arms={},
        factors={attack: attack},
        encryption={attack: attack, "server_library": attack},
        config_diff=[f"{attack}: {attack} | {attack}", attack],
        warnings=[Warning_("x", attack)],
        findings=[Finding("x", "high", attack, attack)],
        client=attack,
    )
    shown = msgspec.structs.replace(result.cells[0], variant=attack, workload=attack, warnings=[Warning_("x", attack)])
    attacked = msgspec.structs.replace(
        result, cells=[broken, shown], command=attack, machine={"cpu": attack, attack: attack}
    )
    path = tmp_path_factory.mktemp("lost") / html_page.NAME
    traces = trace.read(quick)
    path.write_text(html.render(attacked, [*traces, *traces]))
    nothing = msgspec.structs.replace(result, cells=[broken, broken])
    (path.parent / "nothing.html").write_text(html.render(nothing))
    return path


@pytest.fixture(scope="session")
def pages(quick: Path, grid: Path, lost: Path) -> dict[str, Path]:
    html.write(result_of(grid), grid, grid / html_page.NAME)
    return {
        "quick": quick / html_page.NAME,
        "grid": grid / html_page.NAME,
        "attacked": lost,
        "nothing": lost.parent / "nothing.html",
    }


NAMES = ("quick", "grid", "attacked", "nothing")


@pytest.fixture
def visit(chromium: Any, pages: dict[str, Path]) -> Iterator[Any]:
    with browser.Visits(chromium) as visits:

        def go(name: str, width: int = 1440, scheme: str = "light") -> browser.Visit:
            return visits.open(pages[name].as_uri(), width, scheme)

        yield go


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [375, 1440])
def test_a_page_makes_no_request_has_no_console_errors_and_is_readable(visit: Any, name: str, width: int) -> None:
    opened = visit(name, width)
    opened.open_all()
    assert opened.asked == []
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    texts = opened.page.evaluate(browser.TEXTS)
    assert len(texts) > 30
    assert [(text, size) for text, size in texts if size < SMALLEST_TEXT - 0.05] == []
    assert opened.page.evaluate(browser.CUT) == []


@pytest.mark.parametrize("name", ["quick", "grid"])
@pytest.mark.parametrize("width", [1300, 1440])
def test_no_table_is_clipped_on_a_desk(visit: Any, name: str, width: int) -> None:
    opened = visit(name, width)
    opened.open_all()
    assert opened.page.evaluate(browser.CLIPPED) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(visit: Any, name: str, scheme: str) -> None:
    opened = visit(name, 1440, scheme)
    if name != "grid":
        opened.open_all()
    assert opened.faults() == []


def test_violations_and_requests_are_detected(visit: Any) -> None:
    """The two tests above can fail."""
    opened = visit("quick", 375)
    with opened.page.expect_console_message():
        opened.page.evaluate(
            "document.querySelector('h1').innerHTML = '<img src=\"http://203.0.113.1/x\"><p style=\"font-size:9px;width:900px;color:#eee\">small</p>'"
        )
    assert opened.complaints, "the page's policy blocks the picture"
    assert opened.page.evaluate("document.documentElement.scrollWidth") > 375
    assert ["small", 9] in opened.page.evaluate(browser.TEXTS)
    assert any("color-contrast" in fault for fault in opened.faults())
    assert any("image-alt" in fault for fault in opened.faults())


def test_plots_have_a_mark_for_each_cell_and_slice(visit: Any, grid: Path) -> None:
    result = result_of(grid)
    opened = visit("grid")
    drawn = opened.page.evaluate(
        """() => [...document.querySelectorAll('section[aria-labelledby=h-cost] svg[role=img]')].filter(s => s.checkVisibility())
            .map(s => [s.querySelectorAll('path').length, [...s.querySelectorAll('text')].map(t => t.textContent)])"""
    )
    assert len(drawn) == 1, "one of two widths is shown"
    marks, texts = drawn[0]
    assert marks == GRID
    for name in cell_text.names(result.cells):
        assert name in texts
    opened.open_all()
    cells = opened.page.evaluate(
        """() => [...document.querySelectorAll('details.cell')].map(cell =>
            [...cell.querySelectorAll('svg[role=img]')].map(s => s.querySelectorAll('path').length))"""
    )
    assert len(cells) == GRID
    for latency, slices in cells:
        assert latency == 2, "a line per arm"
        assert slices >= 30


def test_every_plot_has_a_description_and_its_figures(visit: Any) -> None:
    opened = visit("quick")
    labels = opened.page.evaluate(
        "[...document.querySelectorAll('svg[role=img]')].map(s => s.getAttribute('aria-label'))"
    )
    assert len(labels) >= 6
    assert all(len(label) > 40 and re.search(r"\d", label) for label in labels)
    assert opened.page.evaluate("[...document.querySelectorAll('figure')].every(f => f.querySelector('table caption'))")


def test_dark_mode_and_print_change_the_plots_too(visit: Any) -> None:
    ink = "getComputedStyle(document.querySelector('main svg text[fill=\"var(--ink)\"]')).fill"
    light, dark = visit("quick"), visit("quick", scheme="dark")
    assert light.page.evaluate(ink) != dark.page.evaluate(ink)
    dark.page.emulate_media(media="print")
    assert dark.page.evaluate(ink) == "rgb(0, 0, 0)"
    assert dark.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_print_shows_what_is_folded_on_a_screen(visit: Any) -> None:
    height = "document.querySelector('details.cell .body').getBoundingClientRect().height"
    folded = "[...document.querySelectorAll('details:not([open])')].filter(d => d.getBoundingClientRect().height < 60).length"
    opened = visit("grid")
    assert opened.page.evaluate(folded) >= GRID
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate(height) > 300
    assert opened.page.evaluate(folded) == 0


def test_the_keyboard_reaches_every_fold(visit: Any) -> None:
    opened = visit("quick")
    opened.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = false; })")
    reached = 0
    for _ in range(60):
        opened.page.keyboard.press("Tab")
        reached += opened.page.evaluate(
            "document.activeElement.tagName === 'SUMMARY' && document.activeElement.checkVisibility()"
        )
    assert reached >= opened.page.evaluate(
        "[...document.querySelectorAll('summary')].filter(s => s.checkVisibility()).length"
    )


def test_nothing_of_a_record_becomes_markup(pages: dict[str, Path], visit: Any) -> None:
    for name in ("attacked", "nothing"):
        text = pages[name].read_text()
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
        assert visit(name).page.evaluate("document.querySelectorAll('script, img, [onerror]').length") == 0


def test_the_answer_comes_first_even_if_there_is_none(visit: Any, quick: Path) -> None:
    opened = visit("quick")
    assert opened.page.inner_text("h1") == verdict_text.sentences(result_of(quick))[0]
    for sentence in verdict_text.sentences(result_of(quick))[1:]:
        assert sentence in opened.page.inner_text("header")
    assert opened.page.evaluate("document.querySelector('header figure').getBoundingClientRect().bottom") < 900
    assert visit("nothing").page.inner_text("h1").startswith("No cost was measured")


def test_the_page_has_the_same_figures_as_the_terminal(visit: Any, quick: Path) -> None:
    opened = visit("quick")
    opened.open_all()
    text = opened.page.inner_text("body")
    for row in figure_text.rows(result_of(quick).cells[0]):
        assert row.cost in text
        assert row.interval in text
        assert row.levels in text


def test_a_budget_is_a_line_and_a_verdict_by_the_intervals_end() -> None:
    run_result = results.result(results.cell(overhead={"throughput": results.estimate(0.8, 0.05)}))  # 16 to 24 %
    for budget, verdict in ((0.25, "within"), (0.2, "not resolved"), (0.15, "over")):
        text = html.render(run_result, budget=budget)
        assert f">{verdict}</td>" in text
        assert "The dashed line is the budget" in text
        assert "Cheapest mechanisms within the budget" in text
    assert "budget" not in html.render(run_result).partition("<body>")[2]


def test_a_page_is_small(pages: dict[str, Path]) -> None:
    for path in pages.values():
        assert path.stat().st_size < LARGEST


def test_a_run_writes_its_page_and_prints_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(html_page.SWITCH, raising=False)
    command = [
        "run",
        "null:busy",
        "--quick",
        "--time",
        "4s",
        "--no-latency",
        "-o",
        str(tmp_path / "run"),
        "--no-progress",
    ]
    done = CliRunner().invoke(commands.cli, command)
    assert f"as a web page:\n  {tmp_path / 'run' / html_page.NAME}\n" in done.output
    page = tmp_path / "run" / html_page.NAME
    assert "<h1>" in page.read_text()
    assert page.stat().st_mode & 0o077 == 0


def test_an_import_writes_its_page_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(html_page.SWITCH, raising=False)
    table = tmp_path / "old.csv"
    table.write_text("arm,tps\n" + "".join(f"plain,{n}\ntls,{n * 0.8}\n" for n in (100, 101, 103)))
    command = ["import", str(table), "--columns", "arm=arm,throughput=tps", "-o", str(tmp_path / "run")]
    done = CliRunner().invoke(commands.cli, command)
    assert done.exit_code == 0, done.output
    assert f"as a web page:\n  {tmp_path / 'run' / html_page.NAME}\n" in done.output
    page = (tmp_path / "run" / html_page.NAME).read_text()
    assert "NOT PAIRED" in page.upper()
    assert "20.0 % fewer" in page


def test_a_run_survives_a_page_that_can_not_be_drawn(
    quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(html_page.SWITCH, raising=False)
    messages: list[str] = []
    (tmp_path / "result.json").write_text("{")
    with supervisor.Supervisor("test-draw") as supervising:
        html_page.page(tmp_path, supervising, messages.append)
        assert "could not write report.html" in messages[0]
        assert not (tmp_path / html_page.NAME).exists()
        # There is a result, but a slice is damaged, so the page would show half a record.
        (tmp_path / "result.json").write_bytes((quick / "result.json").read_bytes())
        (tmp_path / "plan.json").write_bytes((quick / "plan.json").read_bytes())
        (tmp_path / "slices.jsonl").write_text('{"cell": 0}\n')
        html_page.page(tmp_path, supervising, messages.append)
        assert "slices.jsonl, line 1" in messages[1]
        monkeypatch.setenv(html_page.SWITCH, "off")
        html_page.page(tmp_path, supervising, messages.append)
        assert len(messages) == 2


def test_report_draws_the_page_and_every_plot_again(quick: Path, tmp_path: Path) -> None:
    for form, begins in (("svg", b"<svg "), ("png", b"\x89PNG")):
        done = CliRunner().invoke(commands.cli, ["report", str(quick), "--format", form, "-o", str(tmp_path / form)])
        assert done.exit_code == 0, done.output
        files = sorted((tmp_path / form).iterdir())
        assert [path.stem for path in files] == ["elsewhere", "forest", "latency-cell-1", "slices-cell-1", "where-cpu"]
        assert all(path.read_bytes().startswith(begins) for path in files)
    page = tmp_path / "within.html"
    asked = ["report", str(quick), "--format", "html", "-o", str(page), "--max-cost"]
    for limit in ("99%", "0.01%"):
        status = advice.advise(result_of(quick), (), float(limit[:-1]) / 100).exit_status
        assert CliRunner().invoke(commands.cli, [*asked, limit]).exit_code == status
        assert "Cheapest mechanisms within the budget" in page.read_text()
    page = tmp_path / "again.html"
    done = CliRunner().invoke(commands.cli, ["report", str(quick), "--format", "html", "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert page.read_text() == (quick / html_page.NAME).read_text()


def test_the_details_have_everything_that_a_cell_can_have() -> None:
    rich = results.cell(
        "mysql",
        layer="rest",
        client="MySQL Connector/J 9.7.0",
        chatter={arm: {"INSERT INTO t VALUES (?)": 1.0, "commit": 1.0} for arm in ("plain", "encrypted")},
        traffic={
            arm: {"round_trips": 2.0, "bytes_sent": 120.0, "bytes_received": 80.0} for arm in ("plain", "encrypted")
        },
        client_against_reference={"client_cpu_plain": results.estimate(1.5)},
        against_reference=results.estimate(0.9),
        storage={"random_read": results.estimate(0.7), "fsync_latency": results.estimate(1.2)},
        stored={"plain": {"table_bytes": 1000, "index_bytes": 0}, "encrypted": {"table_bytes": 1500, "index_bytes": 0}},
        key_life={"rotation_s": 0.25},
        handshakes={"full": 30, "resumed": 10},
        config_diff=["ssl: off | on"],
        conditions={"delay": "10ms"},
    )
    run_result = msgspec.structs.replace(results.result(), cells=[rich, results.cell("mariadb")])
    text = html_module.unescape(re.sub(r"<[^>]*>", " ", html.render(run_result)))
    for expected in (
        "MySQL Connector/J 9.7.0",
        "1 × INSERT INTO t VALUES (?)",
        "2 → 2 round trips",
        "client CPU, plain arm, against the client of ",
        "10.0 % fewer (",
        "random read",
        "20.0 % higher",
        "stored bytes, tables: 50.0 % more",
        "key rotation: 0.25 s",
        "40 handshakes under load, 10 resumed",
        "10ms round trip added",
    ):
        assert expected in " ".join(text.split()), expected


def test_result_without_slices_is_a_page_without_their_plots(quick: Path) -> None:
    result: Result = result_of(quick)
    text = html.render(result)
    assert "Latency, ms" not in text
    assert "Latency, ms" in html.render(result, trace.read(quick))


@pytest.mark.parametrize(
    ("typed", "repeated"),
    [
        ("ciphercost run postgresql:tls", "ciphercost run postgresql:tls --seed 7"),
        ("ciphercost run postgresql:tls --seed 5", "ciphercost run postgresql:tls --seed 5"),
        ("ciphercost run grid.toml -o here", "ciphercost run grid.toml -o here"),
        ("ciphercost run 'my grid.toml'", "ciphercost run 'my grid.toml'"),
    ],
)
def test_the_command_that_repeats_a_run_is_one_that_run_accepts(typed: str, repeated: str) -> None:
    page = html.render(results.result(results.cell(), command=typed))
    text = html_module.unescape(re.sub(r"</?span[^>]*>", "", page))
    assert f'aria-label="Command">{repeated}</pre>' in text
