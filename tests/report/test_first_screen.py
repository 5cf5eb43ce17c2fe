"""The first screen: what is added, to what, what it means elsewhere, what it protects and what limits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import browser
import results
from ciphercost import engines
from ciphercost.estimate import plausible
from ciphercost.model.result import Added, Cell, Part, Parts, Result, Unit, UnitCost, Warning_
from ciphercost.model.slices import Proof, Witness
from ciphercost.model.spec import ARMS
from ciphercost.report import first_screen, formats
from ciphercost.report.formats import html, terminal
from ciphercost.report.plots import Subject, elsewhere
from ciphercost.report.words import added_text, operation_text, verdict_text

WORDS = 30
"""Most words of the answer."""
LINES = 12
"""Most lines of the terminal's first screen of `quick`."""


def added(mean: float, half: float = 0.4) -> Added:
    return Added(mean, mean - half, mean + half, half / 2, 8)


def cell(mean: float = 3.15, half: float = 0.4, **more: Any) -> Cell:
    return results.cell(**{"added": {"server_cpu": added(mean, half), "client_cpu": added(0.9, 0.1)}} | more)


def embedded(**more: Any) -> Cell:
    return results.cell(
        "sqlite",
        "sqlcipher",
        layer="rest",
        regime="one-core",
        embedded=True,
        overhead={"throughput": results.estimate(0.4), "client_cpu_per_op": results.estimate(2.6)},
        arms={"plain": {"client_cpu_us_per_op": 5.31}, "encrypted": {"client_cpu_us_per_op": 13.8}},
        added={"client_cpu": added(8.5, 0.8)},
        **more,
    )


def split(
    request: float = 6.0, byte: float = 0.6, handshake: float = 1700.0, worst: float = 1.0, half: float = 0.1
) -> Result:
    """Three cells, and the parts that they were fitted to."""
    arms = {arm: figures | {"connects": 0, "operations": 100} for arm, figures in results.cell().arms.items()}
    many = {arm: figures | {"wire_bytes_per_op": 80_000.0} for arm, figures in arms.items()}
    each_opens = {arm: figures | {"connects": 100, "operations": 100} for arm, figures in arms.items()}
    connects = cell(handshake, 40.0, workload="connect", arms=each_opens)
    cells = [cell(request, arms=arms), cell(50.0, workload="bulk-read", arms=many), connects]
    three = {
        name: Part(value, value - half * abs(value), value + half * abs(value))
        for name, value in (("handshake_us", handshake), ("request_us", request), ("byte_ns", byte))
    }
    return results.result(*cells, parts=[Parts("postgresql", "tls", "server", **three, cells=[0, 1, 2], worst=worst)])  # type: ignore[arg-type]


# ── the sentence ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_answer_has_what_is_added_its_interval_its_base_and_the_ratio() -> None:
    sentence = verdict_text.sentences(results.result(cell()))[0]
    for figure in ("3.15 µs", "2.75–3.55", "12.8 → 15.9 µs", "25.0 % more"):
        assert figure in sentence
    assert "times" not in sentence, "one form for a ratio"


def test_the_parts_lead_where_they_explain_the_cells() -> None:
    sentence = verdict_text.sentences(split())[0]
    assert re.findall(r"([\d.,]+ [nµm]s)", sentence) == ["6.00 µs", "0.600 ns", "1.70 ms"]
    assert "% more" not in sentence, "the parts have no ratio: each operation has its own"


@pytest.mark.parametrize(
    "off", [split(worst=9.0), split(request=-0.5), split(half=1.5)], ids=["far off the fit", "below 0", "all may be 0"]
)
def test_parts_that_do_not_explain_the_cells_do_not_lead(off: Result) -> None:
    sentence = verdict_text.sentences(off)[0]
    assert "each byte" not in sentence
    assert "point-select" in sentence


def test_parts_do_not_lead_where_a_light_operation_beside_them_costs_something_else() -> None:
    """A transaction of many statements, recorded by an older version, looks like one request in the fit."""
    split_run = split(request=57.9)
    other = cell(2.6, 0.2, workload="search")
    against = msgspec.structs.replace(split_run, cells=[*split_run.cells, other])
    assert "each byte" not in verdict_text.sentences(against)[0]
    assert first_screen.carried(against) is None
    agreeing = msgspec.structs.replace(split_run, cells=[*split_run.cells, cell(50.0, 5.0, workload="search")])
    assert "each byte" in verdict_text.sentences(agreeing)[0]
    several = msgspec.structs.replace(
        split_run, cells=[*split_run.cells, cell(410.0, 20.0, workload="tpcb", statements=7.0)]
    )
    assert "each byte" in verdict_text.sentences(several)[0], "seven requests cost seven times as much"
    assert "tpcb" not in [mark.name for mark in elsewhere.marks(several)]


@pytest.mark.parametrize(
    "run_result",
    [
        results.result(cell()),
        split(),
        results.result(cell(), cell(50.0, workload="bulk-read")),
        results.result(cell(), cell(0.1, 0.4, workload="insert"), cell(0.1, 0.4, workload="scan")),
        results.result(*(cell(number, workload=f"w{number}") for number in range(1, 30))),
        results.result(embedded()),
    ],
    ids=["one", "parts", "two", "unseen", "many", "embedded"],
)
def test_the_answer_has_at_most_thirty_words(run_result: Result) -> None:
    # The interval of each figure, and units, are no words that a reader reads.
    sentence = re.sub(r"\([^)]*\)|[·→]", "", verdict_text.sentences(run_result)[0])
    assert len(sentence.split()) <= WORDS, sentence


def test_what_can_not_be_told_from_nothing_has_no_ratio() -> None:
    sentence = verdict_text.sentences(results.result(cell(0.1, 0.4)))[0]
    assert "from 0" in sentence
    assert "−0.30 to 0.50 µs" in sentence
    assert "more" not in sentence


def test_a_client_that_encrypts_is_named_as_the_one_who_pays() -> None:
    client_cell = cell(0.1, 0.4, mechanism="client-aes-gcm-256", layer="column")
    added = added_text.of(client_cell)
    assert added is not None
    assert (added.whose, added.added.mean) == ("client CPU", 0.9)


def test_nothing_is_added_where_the_ratio_is_not_the_cost() -> None:
    for other in (results.cell(), cell(layer="control"), cell(warnings=[Warning_(plausible.FASTER, "surely faster")])):
        assert added_text.of(other) is None


@given(st.floats(-1e7, 1e7), st.floats(0, 1e6))
def test_an_interval_has_the_unit_and_the_digits_of_its_figure(value: float, half: float) -> None:
    figure, ends = added_text.time(value, half), added_text.span(value - half, value + half, value)
    number, unit = figure.split()
    assert unit in ("ns", "µs", "ms")
    scale = {"ns": 1e3, "µs": 1.0, "ms": 1e-3}[unit]
    low, high = (float(bound.replace(",", "").replace("−", "-")) for bound in re.split(r" to |–", ends))
    assert low <= float(number.replace(",", "").replace("−", "-")) <= high
    for printed, true in ((low, value - half), (high, value + half)):
        assert printed == pytest.approx(true * scale, rel=0.006, abs=max(0.051, 0.06 * half) * scale)


# ── the screen ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_screen_says_from_which_length_on_it_is_worth_worrying_about() -> None:
    screen = first_screen.of(results.result(cell(5.0, 0.2)))
    assert re.findall(r"([\d.]+) %", screen.elsewhere) == ["0.25", "1"]
    assert "less than 500 µs of CPU" in screen.elsewhere
    assert "less than 200 µs of CPU" in first_screen.of(split(request=2.0)).elsewhere
    unseen = first_screen.of(results.result(cell(0.1, 0.4))).elsewhere
    assert "more than 50 µs of CPU" in unseen, "the upper end counts"
    assert first_screen.of(results.result(cell(-5.0, 0.4))).elsewhere == "", "encryption does not save time"
    assert "depends on how many pages" in first_screen.of(results.result(embedded())).elsewhere
    backup = embedded(workload="backup")
    backup.overhead["duration"] = results.estimate(1.2)
    assert "depends on how large your data are" in first_screen.of(results.result(backup)).elsewhere


@given(st.floats(0.01, 1e6))
def test_the_length_is_that_at_which_the_addition_is_one_per_cent(us: float) -> None:
    match = re.search(
        r"less than ([\d.e+]+) (µs|ms|s) of CPU", first_screen.of(results.result(cell(us, us / 9))).elsewhere
    )
    assert match is not None
    assert float(match[1]) * {"µs": 1.0, "ms": 1e3, "s": 1e6}[match[2]] == pytest.approx(100 * us, rel=0.051)


@pytest.mark.parametrize(
    ("unit", "us", "words"),
    [
        (
            "page read",
            12.4,
            "1,000 pages read a second take 1.2 % of a core; pages that stay in the cache cost nothing",
        ),
        ("value opened", 2.0, "1,000 values opened a second take 0.2 % of a core."),
        ("value searched", 1500.0, "1,000 searches of 2,000 rows a second take 1.5 cores."),
    ],
)
def test_at_rest_and_in_columns_it_is_a_share_of_a_core(unit: Unit, us: float, words: str) -> None:
    cost = UnitCost("sqlite", "sqlcipher", "process", unit, Part(us, us * 0.9, us * 1.1), [0], rows=2000)
    screen = first_screen.of(results.result(embedded(), costs=[cost]))
    assert words in screen.elsewhere
    assert screen.further is not None
    assert screen.further.command.startswith(f"{first_screen.PREDICT} --")
    unsure = msgspec.structs.replace(cost, us=Part(us, -us, 3 * us))
    assert "%" not in first_screen.of(results.result(embedded(), costs=[unsure])).elsewhere


@pytest.mark.parametrize(
    ("run_result", "command"),
    [
        (results.result(cell()), first_screen.PREDICT),
        (results.result(cell(), cell(50.0, workload="bulk-read")), "ciphercost run postgresql:tls --split"),
        (results.result(embedded()), "ciphercost run sqlite:sqlcipher --sql FILE"),
        (
            results.result(cell(mechanism="pgcrypto-cbc-256", layer="column")),
            "ciphercost run postgresql:pgcrypto-cbc-256 --split",
        ),
        (results.result(cell(0.1, mechanism="client-aes-gcm-256", layer="column")), None),
        (results.result(results.failed()), None),
        (results.result(cell(layer="control", mechanism="none")), None),
    ],
    ids=["one", "two operations", "at rest without counts", "in columns", "by the client", "failed", "control"],
)
def test_the_screen_ends_with_what_to_do_next(run_result: Result, command: str | None) -> None:
    further = first_screen.of(run_result).further
    assert (further and further.command) == command


def test_what_many_mechanisms_protect_is_looked_up_below() -> None:
    cells = [cell(mechanism=name, protects=f"against {name}") for name in ("tls", "ssh", "ipsec")]
    (line,) = first_screen.of(results.result(*cells)).protects
    assert "3 mechanisms" in line
    assert "table below" in line
    assert len(first_screen.of(results.result(*cells[:2])).protects) == 1


@pytest.mark.parametrize(
    ("mean", "words"), [(19.0, "not worth"), (20.0, "perhaps worth"), (21.0, "worth")], ids=["below", "at", "above"]
)
def test_the_verdict_is_that_of_the_interval(mean: float, words: str) -> None:
    """1 % of 2 ms are 20 µs."""
    text = first_screen.of(results.result(cell(mean, 0.5))).elsewhere
    assert text.lower().startswith(f"{words} worrying about")


def test_connections_and_answers_have_their_costs_where_it_matters() -> None:
    screen = first_screen.of(split())
    assert re.findall(r"([\d.,]+ [nµm]s)", screen.answer[0]) == ["6.00 µs"], "one cost in the headline"
    assert {"600 µs", "1.70 ms", "2 ms"} == set(re.findall(r"([\d.,]+ [nµm]s)", screen.elsewhere))
    assert "connections" in first_screen.of(results.result(cell())).elsewhere


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({}, "query"),
        ({"engine": "nginx"}, "request"),
        ({"engine": "valkey"}, "command"),
        ({"engine": "unheard-of"}, "operation"),
        ({"statements": 7.0}, "operation"),
        ({"arms": {"plain": {"connects": 9, "operations": 9}}}, "operation"),
        ({"layer": "rest"}, "operation"),
    ],
    ids=str,
)
def test_an_operation_has_the_readers_word(more: dict[str, Any], word: str) -> None:
    measured = cell(**{key: value for key, value in more.items() if key != "engine"})
    assert operation_text.of(msgspec.structs.replace(measured, engine=more.get("engine", "postgresql"))) == word


def test_every_server_has_a_word_for_its_operations() -> None:
    known = [engines.get(name) for name in engines.names()]
    assert {engine.name for engine in known if operation_text.of_engine(engine.name) == "operation"} == {
        engine.name for engine in known if engine.embedded or engine.name == "command"
    }


def trust(**more: Any) -> str:
    return first_screen.of(results.result(cell(**more))).basis


def test_the_trust_line_says_what_was_proven_and_by_whom() -> None:
    proofs = [Proof(arm, witness, True, "") for arm in ARMS for witness in ("wire", "client", "server")]
    assert "with TLS and without" in trust(proofs=proofs)
    assert "(client, server, captured bytes agree)" in trust(proofs=proofs)
    assert "agree" not in trust(proofs=proofs[:1]), "one witness agrees with nobody"
    assert "with sqlcipher and without" in trust(mechanism="sqlcipher")
    assert "NOT PROVEN" in trust(status="unproven")
    assert "neither arm is encrypted" in trust(layer="control")


def test_the_trust_line_says_what_the_intervals_contain() -> None:
    assert "more without --quick" in trust(mode="quick", sessions=1, warnings=[])
    assert "8 starts of the server" in trust(sessions=8, warnings=[])
    not_restarted = Warning_("not-restarted", "ciphercost can't restart your own server")
    assert "Your server was not restarted" in trust(sessions=8, warnings=[not_restarted])
    late, paced = Warning_("late", "1 %"), Warning_("paced", "bbr paces both arms; use cubic")
    assert "The warning below does not change" in trust(sessions=8, warnings=[late])
    assert "None of the 2 warnings below" in trust(sessions=8, warnings=[late, late])
    assert "warning" not in trust(warnings=[late, paced]), "the one that limits it stands on the screen"


def test_a_limit_names_the_figure_that_it_changes() -> None:
    paced = [Warning_("paced", "bbr paces both arms; use cubic")]
    one, other = cell(), cell(50.0, workload="bulk-read", warnings=paced)
    (limit,) = first_screen.of(results.result(one, other)).limits
    assert "(bulk-read)" in limit
    assert limit.endswith(": bbr paces both arms"), "without what to do about it"
    (alone,) = first_screen.of(results.result(other)).limits
    assert "bulk-read" not in alone
    many = [cell(50.0, workload=f"w{number}", warnings=paced) for number in range(3)]
    assert "3 of 4 cells" in first_screen.of(results.result(one, *many)).limits[0]


@pytest.mark.parametrize("name", ["terminal", "md", "html"])
def test_every_report_begins_with_the_same_screen(name: str) -> None:
    run_result = results.result(
        cell(warnings=[Warning_("paced", "bbr paces both arms; use cubic"), Warning_("late", "1 %")])
    )
    screen = first_screen.of(run_result)
    (limit,) = screen.limits
    assert limit.endswith(": bbr paces both arms")
    text = formats.get(name)(run_result)
    first = text.partition({"terminal": "── details", "md": "<details", "html": "</header>"}[name])[0]
    plain = " ".join(re.sub(r"<[^>]+>", "", first).split())
    for sentence in (screen.answer[0], screen.protects[0], screen.limits[0]):
        assert sentence.split(" (95")[0] in plain


def of_quick() -> Result:
    """As `quick` gives it at its longest: two mechanisms, every witness, and a warning that limits the answer."""
    split_run = split(request=17.9, handshake=3380.0, byte=1.18)
    paced = Warning_("paced", "TCP's bbr paces both arms; that may hide the cost, so run `sysctl`")
    seen: list[Witness] = ["client", "server", "wire"]
    in_transit = [
        msgspec.structs.replace(
            cell,
            version="15.18",
            mode="quick",
            sessions=1,
            protects="data on the network from being read or changed between client and server",
            proofs=[Proof(arm, witness, True, "") for arm in ARMS for witness in seen],
            warnings=[paced] if cell.workload == "bulk-read" else [],
        )
        for cell in split_run.cells
    ]
    stored = [Proof(arm, "disk", True, "") for arm in ARMS]
    protects = "against a stolen or copied database file; not against a process that reads the application's memory"
    pages = [
        embedded(version="3.53.4", mode="quick", sessions=1, protects=protects, proofs=stored, workload=workload)
        for workload in ("point-select", "insert")
    ]
    read, written = (Part(us, 0.9 * us, 1.1 * us) for us in (12.4, 20.3))
    costs = [
        UnitCost("sqlite", "sqlcipher", "process", "page read", read, [3, 4]),
        UnitCost("sqlite", "sqlcipher", "process", "page written", written, [3, 4]),
    ]
    return msgspec.structs.replace(split_run, cells=[*in_transit, *pages], costs=costs)


def test_the_terminals_first_screen_of_quick_is_short() -> None:
    lines = terminal.render(of_quick()).splitlines()
    assert lines.index(terminal.RULE) <= LINES, "\n".join(lines[:20])


def test_the_terminals_first_screen_answers_five_questions() -> None:
    screen = " ".join(" ".join(terminal.render(of_quick()).partition(terminal.RULE)[0].split()).split())
    for answer in (
        "0.89 % more",
        "Not worth worrying about for queries of 2 ms",
        "tls protects data on the network",
        "Proven:",
        "more without --quick",
        "large answers (bulk-read) may cost more",
        first_screen.PREDICT,
    ):
        assert answer in screen


HEIGHTS = {390: 844, 1440: 900}
"""Of the first screen, by width."""


@pytest.fixture
def visits(chromium: Any) -> Iterator[browser.Visits]:
    with browser.Visits(chromium) as visits:
        yield visits


@pytest.mark.parametrize("width", HEIGHTS)
def test_the_pages_first_screen_answers_five_questions(visits: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "report.html"
    path.write_text(html.render(of_quick()))
    page = visits.open(path.as_uri(), width).page
    for text in ("Not worth worrying about", "protects data", "Proven:", "may cost more", "Next,", "Measured on"):
        box = page.get_by_text(text).first.bounding_box()
        assert box["y"] + box["height"] <= HEIGHTS[width], text


def test_no_option_of_a_command_breaks_on_a_phone(visits: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    options = " ".join(f"--some-long-option-{number} {number}" for number in range(20))
    path.write_text(
        html.render(msgspec.structs.replace(of_quick(), command=f"ciphercost run postgresql:tls {options}"))
    )
    page = visits.open(path.as_uri(), 390).page
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    lines = page.locator(".word").evaluate_all("words => words.map(word => word.getClientRects().length)")
    assert len(lines) > 40
    assert set(lines) == {1}


def test_the_page_shows_the_line_of_what_it_means_elsewhere_first() -> None:
    run_result = results.result(cell())
    (plot,) = elsewhere.plots(Subject(run_result))
    assert plot.charts
    assert [row[0] for row in plot.table.rows[:5]] == ["10 µs", "100 µs", "1 ms", "2 ms", "10 ms"]
    shown = [mark["name"] for mark in plot.charts["wide"].data["values"]]
    assert shown == ["3.1 % at 100 µs", "0.16 % at 2 ms"], "a mark tells of what length its share is"
    assert "point-select" in plot.drawn()
    assert plot.title in html.render(run_result).partition("</header>")[0]
    assert not list(elsewhere.plots(Subject(results.result(embedded()))))


@pytest.mark.parametrize("mean", [-0.1, 0.0])
def test_an_addition_of_nothing_or_less_has_no_line(mean: float) -> None:
    run_result = results.result(cell(mean, 0.4))
    assert first_screen.carried(run_result) is not None
    assert not list(elsewhere.plots(Subject(run_result)))
    assert html.render(run_result)


def test_marks_are_the_workloads_that_belong_beside_the_line() -> None:
    assert [mark.name for mark in elsewhere.marks(split())] == ["point-select"], "others send much or open connections"
