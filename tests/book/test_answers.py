"""The first screen of the results book: what encryption adds to a statement of the reader's own size, in words and in Chromium."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import click
import msgspec
import pytest

import browser
import results
from ciphercost.book import answers, axes, pages
from ciphercost.book.check import Checked
from ciphercost.book.rows import ASKED_FIRST, Figure, Row, rows
from ciphercost.commands import cli
from ciphercost.model.facts import RunFacts
from ciphercost.model.result import Added, Cell
from ciphercost.model.slices import Proof
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import registry_facts
from ciphercost.plan.resolve import resolve
from ciphercost.report.words import added_text

PROVEN = [Proof(arm, "wire", True, "", 1) for arm in ("plain", "encrypted")]
WIDTHS = [(390, "light"), (390, "dark"), (768, "light"), (1440, "light"), (1440, "dark")]


def cell(
    engine: str = "postgresql", mechanism: str = "tls", *, plain: float = 12.0, added: float = 6.0, **more: Any
) -> Cell:
    """A cell that adds this CPU time, µs ± 10 %."""
    key = "client_cpu" if more.get("embedded") else "server_cpu"
    ratio = (plain + added) / plain
    return results.cell(
        engine,
        mechanism,
        **{
            "overhead": {"throughput": results.estimate(0.8), f"{key}_per_op": results.estimate(ratio)},
            "added": {key: Added(added, added - abs(added) / 10, added + abs(added) / 10, added / 20, 8)},
            "arms": {
                arm: {"operations": 1000, "throughput": 1e4, f"{key}_us_per_op": us, "wire_bytes_per_op": 80.0}
                for arm, us in (("plain", plain), ("encrypted", plain + added))
            },
            "proofs": PROVEN,
        }
        | more,
    )


def connecting(engine: str) -> Cell:
    connect_cell = cell(engine, plain=2_000, added=1_700, workload="connect")
    arms = {arm: figures | {"connects": 1000} for arm, figures in connect_cell.arms.items()}
    return msgspec.structs.replace(connect_cell, arms=arms)


def record(cells: list[Cell], number: int = 0, cpu: str = "Test CPU", **factors: str) -> Checked:
    """A record of these cells, as if checked."""
    one = msgspec.structs.replace(
        results.result(*cells), id=f"20261121-120000-{number:06x}", machine=results.MACHINE | {"cpu": cpu}
    )
    specs = [CellSpec(cell.engine, cell.mechanism, factors=factors) for cell in cells]
    planned = registry_facts.planned([resolve(CellSpec("postgresql", "tls"))] * len(cells))
    return Checked(RunFacts(2, one.id, one.started, one.tool, one.machine, 7, Spec(specs), planned), one, "complete")


SERVERS = ("apache", "memcached", "valkey", "nginx", "mysql", "postgresql", "mariadb")
MANY = [
    *(cell(engine, added=2 + number) for number, engine in enumerate(SERVERS)),
    connecting("postgresql"),
    cell("postgresql", plain=300, added=250, workload="bulk-read"),
    cell("sqlite", "sqlcipher", layer="rest", embedded=True, plain=15.6, added=18.6, workload="insert"),
    cell("postgresql", "pgcrypto-cbc-256", layer="column", plain=2_000, added=2_000, workload="hospital"),
    cell("nginx", "none", layer="control"),
]


def test_each_answer_says_what_it_protects_and_what_to_do_next() -> None:
    every_answer = answers.of(rows([record(MANY)]))
    assert {answer.layer for answer in every_answer} == {"transit", "rest", "column"}
    for answer in every_answer:
        assert answer.lead.protects is not None
        words, commands = answer.further
        assert words.startswith("measure ")
        for command in commands:
            name = command.split()[1]
            options = {option for param in commands_of(name) for option in param.opts}
            assert {word for word in command.split() if word.startswith("--")} <= options
        assert f"{answer.engine}:{answer.mechanism}" in commands[0]


def commands_of(name: str) -> list[click.Parameter]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command.params


# ── what is carried over


@pytest.mark.parametrize(
    ("us", "levels", "change"),
    [
        (10, "10 → 16.0 µs", (60, "% more")),
        (3, "3 → 9.0 µs", (3, "times")),
        (1_000, "1 → 1.0060 ms", (0.6, "% more")),
        (10_000, "10 → 10.0060 ms", (0.06, "% more")),
    ],
)
def test_the_same_addition_for_statements_of_other_sizes(us: float, levels: str, change: tuple[float, str]) -> None:
    added = added_text.of(cell())
    assert added
    at = answers.at_size(added, us)
    number, _, form = at.change.partition(" ")
    assert (at.levels, float(number), form) == (levels, *change)
    assert ("times" in at.change) == ("times" in at.interval), "one form for the figure and its interval"


def test_what_cannot_be_told_from_nothing_has_an_upper_bound_only() -> None:
    unseen = cell(added=0.5)
    unseen = msgspec.structs.replace(unseen, added={"server_cpu": Added(0.5, -1.0, 2.0, 0.7, 8)})
    added = added_text.of(unseen)
    assert added
    at = answers.at_size(added, 100)
    assert not at.levels
    assert "at most 2 %" in at.change


@pytest.mark.parametrize("layer", ["rest", "column"])
def test_nothing_is_carried_over_where_pages_or_values_decide(layer: str) -> None:
    tde = cell("mysql", "innodb-tde", layer=layer)
    if layer == "rest":
        costs = tde.overhead | {"machine_cpu_per_op": results.estimate(1.5)}
        arms = {
            arm: figures | {"machine_cpu_us_per_op": figures["server_cpu_us_per_op"]}
            for arm, figures in tde.arms.items()
        }
        tde = msgspec.structs.replace(tde, overhead=costs, arms=arms, added={"machine_cpu": tde.added["server_cpu"]})
    (answer,) = answers.of(rows([record([tde])]))
    assert not answer.sizes
    assert answer.depends


def test_a_short_statement_with_usual_settings_stands_for_the_others() -> None:
    long = cell(plain=5, added=250, workload="bulk-read")
    long = msgspec.structs.replace(
        long, arms={arm: figures | {"wire_bytes_per_op": 1e6} for arm, figures in long.arms.items()}
    )
    usual = record([connecting("postgresql"), long, cell(), cell(disturbed=True, plain=3)])
    special = record([cell(plain=2, added=1)], 1, version="1.2")
    (answer,) = answers.of(rows([special, usual]))
    assert (answer.lead.workload, answer.lead.choices, answer.lead.disturbed) == ("point-select", 0, False)
    assert answer.connection
    assert answer.connection.connects
    assert {row.workload for row in answer.others} >= {"bulk-read"}


def test_only_connections_were_measured() -> None:
    (answer,) = answers.of(rows([record([connecting("nginx")])]))
    assert not answer.sizes
    assert not answer.depends


def test_cpu_models_stand_side_by_side_where_both_measured_the_same_cell() -> None:
    both = rows([record([cell()], 0, "One CPU"), record([cell(added=9)], 1, "Other CPU")])
    (answer,) = answers.of(both)
    assert {answer.lead.machine.cpu, *(row.machine.cpu for row in answer.elsewhere)} == {"One CPU", "Other CPU"}
    names = pages.names([row.machine for row in both])
    assert not answers.cpu_models(both, names)
    different = rows([record([cell()], 0, "One CPU"), record([cell("mysql")], 1, "Other CPU")])
    assert all(not other.elsewhere for other in answers.of(different))
    assert "one CPU model" in answers.cpu_models(different, pages.names([row.machine for row in different]))


# ── order, proof, scale


def test_the_best_known_servers_with_tls_come_first() -> None:
    ordered = rows([record(MANY)])
    engines = list(dict.fromkeys(row.engine for row in ordered))
    assert engines[: len(ASKED_FIRST)] == list(ASKED_FIRST)
    assert {row.mechanism for row in ordered[: len(SERVERS)]} == {"tls"}
    assert [row.layer for row in ordered] == sorted(
        (row.layer for row in ordered), key=["transit", "rest", "column", "control"].index
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "both arms proven"),
        ({"proofs": PROVEN[1:]}, "encrypted arm only"),
        ({"proofs": PROVEN[:1]}, "plain arm only"),
        ({"proofs": [*PROVEN[1:], Proof("plain", "wire", False, "", 1)]}, "encrypted arm only"),
        ({"proofs": [], "status": "unproven", "overhead": {}}, "not proven"),
        ({"layer": "control", "proofs": []}, "control: no encryption"),
    ],
)
def test_proof_in_words(more: dict[str, Any], words: str) -> None:
    (row,) = rows([record([cell(**more)])])
    assert row.proof == words


def with_sizes(metric: str, *sizes: float) -> list[Row]:
    (row,) = rows([record([cell()])])
    return [
        row._replace(figures={metric: Figure("", "", "", (size, size * 0.9, size * 1.1), "", "")}) for size in sizes
    ]


@pytest.mark.parametrize("metric", ["cpu", "throughput", "p99"])
@pytest.mark.parametrize("sizes", [(), (0.5,), (0.3, 0.31), (1e-3, 40.0), (0.15, 3e5), (-4.0,), (2e7, -1.0, 0.0)])
def test_labels_of_an_axis_have_room_and_bars_stay_inside(metric: str, sizes: tuple[float, ...]) -> None:
    sized = with_sizes(metric, *sizes)
    axis = axes.of(sized)[metric]
    places = [place for place, _ in axis.ticks]
    assert len(places) >= 2
    assert places[0] == 0
    assert places[-1] <= 1
    assert all(second - first >= axes.LEAST_GAP for first, second in itertools.pairwise(places))
    assert len({label for _, label in axis.ticks}) == len(places)
    for row in sized:
        assert all(0 <= position <= 100 for position in axis.positions(row.figures[metric]))


def test_a_bar_ends_at_the_tick_of_its_value() -> None:
    axis = axes.of(with_sizes("cpu", 1.0, 1e6))["cpu"]
    assert {label: place for place, label in axis.ticks}["10 ms"] == pytest.approx(axis.at(1e4))


def test_the_book_has_the_same_figure_as_the_cells_page() -> None:
    one = cell()
    (row,) = rows([record([one])])
    figure = row.figures["cpu"]
    assert f"{figure.cost} per operation ({figure.interval}): {figure.levels}" == added_text.line(one)


# ── in the browser


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a front page, of servers on two CPU models."""
    many = [record(MANY), record([cell(added=9)], 1, "Other CPU")]
    path = tmp_path_factory.mktemp("front") / "index.html"
    path.write_text(pages.index(pages.book(many, rows(many))))
    return path.as_uri()


@pytest.fixture
def visits(chromium: Any) -> Iterator[browser.Visits]:
    with browser.Visits(chromium) as visits:
        yield visits


OVERLAPS = """
() => {
  const boxes = [...document.querySelectorAll('.axis:not([hidden]) .tick')].map(box => box.getBoundingClientRect());
  return boxes.slice(1).filter((box, number) => box.left < boxes[number].right + 2).length
    + boxes.filter(box => box.left < 0 || box.right > document.documentElement.clientWidth + 1).length;
}
"""


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_the_first_screen_is_accessible_and_fits(visits: Any, front: str, width: int, scheme: str) -> None:
    visit = visits.open(front, width, scheme)
    answer = visit.page.locator(".answer:visible")
    assert answer.count() == 1
    box = answer.locator(".at:visible").bounding_box()
    assert box["y"] + box["height"] < 900, "the answer is on the first screen"
    for text in ("worth worrying about", "It matters", "protects", "Proven", "measure on your CPU", "measured"):
        box = answer.get_by_text(text, exact=text == "measured").locator("visible=true").first.bounding_box()
        assert box["y"] + box["height"] < (844 if width == 390 else 900), text
    assert visit.faults() == []
    visit.open_all()
    for metric in ("cpu", "throughput", "p99"):
        visit.page.locator("#filters select[name=metric]").select_option(metric)
        assert visit.page.locator(".axis:visible").count() == 1
        assert visit.page.evaluate(OVERLAPS) == 0
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.page.evaluate(browser.CLIPPED) == []
    assert (visit.asked, visit.complaints) == ([], [])


def test_choosing_server_mechanism_and_size(visits: Any, front: str) -> None:
    visit = visits.open(front, 1440)
    page = visit.page
    answer = page.locator(".answer:visible")
    assert answer.get_attribute("data-server") == "postgresql"
    page.locator("select[name=size]").select_option("10")
    assert "A query of 10 µs" in answer.locator(".at:visible").text_content()
    page.locator("select[name=server]").select_option("nginx")
    assert page.locator("select[name=with] option").all_text_contents() == ["tls"], "controls encrypt nothing"
    assert float(answer.locator(".adds strong").text_content().removesuffix(" µs")) == 2 + SERVERS.index("nginx")
    page.locator("select[name=server]").select_option("postgresql")
    page.locator("select[name=with]").select_option("pgcrypto-cbc-256")
    assert "values" in answer.locator(".at:visible").text_content()
    assert page.locator("select[name=size]").is_disabled(), "the size has no influence here"
    assert page.evaluate("location.hash") == "#with=pgcrypto-cbc-256&size=10"
    again = visits.open(page.url, 390)
    assert again.page.locator(".answer:visible").get_attribute("data-with") == "pgcrypto-cbc-256"
    again.page.locator("select[name=with]").select_option("tls")
    assert "A query of 10 µs" in again.page.locator(".answer:visible .at:visible").text_content()
    assert (visit.complaints, again.complaints) == ([], [])


def test_an_unknown_choice_in_the_address_shows_the_usual_answer(visits: Any, front: str) -> None:
    visit = visits.open(f"{front}#server=oracle&with=magic&size=7", 1440)
    assert visit.page.locator(".answer:visible").get_attribute("data-server") == "postgresql"
    assert visit.page.locator("select[name=size]").input_value() == str(answers.USUAL)
    assert visit.complaints == []


def test_without_javascript_a_table_answers(chromium: Any, front: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(front)
        assert not page.locator("#choose").is_visible()
        table = page.locator("#sizes tbody tr")
        assert table.count() == len(SERVERS) + 2
        first = [float(text.partition(" ")[0]) for text in table.first.locator(".share").all_text_contents()]
        assert first == pytest.approx([70, 7, 0.7, 0.07])
        widths = page.evaluate("[...document.querySelectorAll('.bar .fill')].map(bar => bar.offsetWidth)")
        assert max(widths) > 10
    finally:
        context.close()


def test_an_estimate_of_one_form_has_no_second() -> None:
    text = pages.index(pages.book([record(MANY)], rows([record(MANY)])))
    assert "×" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
