"""What a study's report says about its replication, by a stated criterion; every study's tables in every report."""

from __future__ import annotations

import importlib
import re
from typing import Any

import msgspec
import pytest

import results
from ciphercost import studies
from ciphercost.model.study import Bound, StudyFigure, StudyResult
from ciphercost.report.formats import _study, html, md, terminal
from ciphercost.studies import agreement, costs
from ciphercost.studies.agreement import Judged


def cost(published: float | None, low: float | None = None, high: float | None = None) -> StudyFigure:
    ours = (low + high) / 2 if low is not None and high is not None else None
    return StudyFigure("insert", "time", "ratio", "cost", published=published, ours=ours, low=low, high=high)


WITHIN, DIRECTION, OPPOSITE, NO_COST, OPEN, UNKNOWN = (
    cost(1.10, 1.05, 1.15),
    cost(1.50, 1.05, 1.15),
    cost(0.80, 1.05, 1.15),
    cost(1.50, 0.98, 1.02),
    cost(1.01, 0.98, 1.02),
    cost(1.10),
)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (WITHIN, "within"),
        (DIRECTION, "direction"),
        (OPPOSITE, "differs"),
        (NO_COST, "differs"),
        (OPEN, "open"),
        (UNKNOWN, ""),
        (cost(None, 1.1, 1.2), ""),
        (cost(1.0, 1.1, 1.2), "differs"),
        (cost(0.5, 0.7, 0.8), "direction"),
    ],
    ids=str,
)
def test_a_published_cost_beside_our_interval(figure: StudyFigure, expected: str) -> None:
    assert agreement.agreement(figure) == expected


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([WITHIN, WITHIN], "replicated"),
        ([WITHIN, DIRECTION], "partly"),
        ([WITHIN, OPEN], "partly"),
        ([WITHIN, OPPOSITE], "partly"),
        ([DIRECTION, DIRECTION], "direction"),
        # "Partly" alone would promise that some published size lies within our interval.
        ([DIRECTION, OPPOSITE], "direction-partly"),
        ([DIRECTION, OPEN], "direction-partly"),
        ([OPPOSITE, NO_COST], "not"),
        ([OPPOSITE, OPEN], "not-partly"),
        ([OPEN], "open"),
        ([OPEN, OPEN, OPEN], "open"),
        # What was not measured here rules out a verdict on the whole study.
        ([WITHIN, UNKNOWN], "partly"),
        ([DIRECTION, UNKNOWN], "direction-partly"),
        ([OPPOSITE, UNKNOWN], "not-partly"),
        ([OPEN, UNKNOWN], "open"),
        ([UNKNOWN], ""),
        ([], ""),
    ],
    ids=str,
)
def test_a_verdict_on_all_of_them(figures: list[StudyFigure], expected: str) -> None:
    assert agreement.verdict(Judged(figures)) == expected
    assert agreement.counted(Judged(figures)).startswith(f"{agreement.HEADS[expected]}: ")


def test_an_interval_that_includes_no_change_leaves_a_direction_open() -> None:
    """If sizes can't be compared, such an interval shows nothing, whatever was published."""
    judged = Judged([NO_COST], direction_only=True)
    assert judged.of(NO_COST) == "open"
    assert agreement.verdict(judged) == "open"
    assert "includes no change" in judged.criterion


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ([OPEN] * 3, "Direction and size not resolved: none of the 3 published costs was resolved here"),
        ([OPPOSITE] * 2, "Replicated neither in direction nor in size: none of the 2 published costs was confirmed"),
        ([WITHIN] * 4, "Replicated in direction and size: all 4 published costs lie within our 95 % interval"),
        ([WITHIN], "Replicated in direction and size: the one published cost lies within our 95 % interval"),
        ([OPEN], "Direction and size not resolved: the one published cost was not resolved here"),
        (
            [DIRECTION] * 2 + [UNKNOWN] * 6,
            "Replicated in direction only, and only in part: of 8 published costs, 2 have",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_costs_are_counted_in_plain_words(figures: list[StudyFigure], words: str) -> None:
    assert agreement.counted(Judged(figures)).startswith(words)


def test_a_published_cost_that_is_compared_twice_is_counted_once() -> None:
    """One published pair of arms beside two mechanisms here counts once, with the less favourable answer."""
    fscrypt = msgspec.structs.replace(DIRECTION, operation="fscrypt")
    gocryptfs = msgspec.structs.replace(DIRECTION, operation="gocryptfs")
    both = Judged([fscrypt, gocryptfs], printed_once=True)
    assert agreement.counted(both).startswith(f"{agreement.HEADS['direction']}: the one published cost ")
    assert "each of 2 costs" in agreement.counted(both)
    opposite = msgspec.structs.replace(
        OPPOSITE, operation="gocryptfs", published=DIRECTION.published, low=0.8, high=0.9
    )
    assert agreement.verdict(Judged([fscrypt, opposite], printed_once=True)) == "not"
    missing = msgspec.structs.replace(UNKNOWN, operation="gocryptfs")
    assert agreement.verdict(Judged([fscrypt, missing], printed_once=True)) == "direction"
    real = study_result("postgres-tde")
    assert "of 2 published" not in studies.get("postgres-tde").report(real).verdict


def test_what_was_compared_is_stated_in_the_studys_own_words() -> None:
    """The driver alone compares a new driver with an old one: neither encrypts."""
    study = study_result("jdbc-tls")
    report = studies.get("jdbc-tls").report(study)
    assert "driver alone, cold, encrypted" not in report.compared
    assert "without TLS ÷ the old driver" in report.compared
    assert report.sheets[0].title == "What the upgrade changed"
    assert studies.get("mysql-tls").report(study_result("mysql-tls")).sheets[0].title == "What encryption changed: time"


@pytest.mark.parametrize("name", studies.names())
def test_one_sentence_stands_between_the_verdict_and_its_table(name: str) -> None:
    """The criterion stands below the table."""
    study = study_result(name)
    report = studies.get(name).report(study)
    assert report.compared.startswith("Compared: ")
    assert "published on " in report.compared
    assert report.compared.count(". ") == 0
    assert "Criterion: " in report.sheets[0].note
    text = " ".join(_study.render(study).split())
    assert text.index(report.compared) < text.index(report.sheets[0].title) < text.index("Criterion: ")


@pytest.mark.parametrize("name", studies.names())
def test_a_verdict_on_a_disturbed_machine_says_so(name: str) -> None:
    cells = [results.cell(disturbed=True), results.cell(variant="other")]
    study = study_result(name)
    result = msgspec.structs.replace(results.result(*cells), study=study)
    verdict = studies.get(name).report(study, result.cells).verdict
    assert verdict.endswith(agreement.unreliable(cells))
    assert "every slice of 1 of 2 cells" in agreement.unreliable(cells)
    assert " ".join(verdict.split()) in " ".join(terminal.render(result).split())
    comment = md.render(result)
    assert comment.index("Every slice") < comment.index("This verdict is unreliable") < comment.index("|")
    headline = re.search(r"<h1>(.*?)</h1>", html.render(result), re.DOTALL)
    assert headline is not None
    assert "This verdict is unreliable" in headline[1].replace("\xa0", " ")


@pytest.mark.parametrize(
    ("figure", "ours", "low", "high", "wanted"),
    [
        ("time", 1.18, 1.06, 1.31, "18 % more (6–31 %)"),
        ("TPS", 0.75, 0.736, 0.764, "25.0 % fewer (23.6–26.4 %)"),
        ("time", 8.4, 7.96, 8.8, "8.40 times (7.96–8.80)"),
        # What includes no change has no estimate.
        ("time", 1.036, 0.972, 1.104, "2.8 % less to 10.4 % more"),
        ("time", 3.3, 0.0, 100_020.4, "too wide"),
        ("time", 1.02, 0.42, 2.52, "too wide"),
        ("time", 1.5, -0.2, 3.2, "too wide"),
        ("time", 1.178, 1.178, 1.178, "17.80 % more (exact)"),
        ("time", 1.33, None, None, "33.0 % more"),
        ("time", 6.0, None, None, "6.00 times"),
        ("time", 0.9999, None, None, "no change"),
        ("time", None, None, None, "-"),
    ],
)
def test_a_cost_with_its_interval(
    figure: str, ours: float | None, low: float | None, high: float | None, wanted: str
) -> None:
    assert costs.with_interval(StudyFigure("x", figure, "ratio", "cost", ours=ours, low=low, high=high)) == wanted


def test_an_interval_and_a_spread_have_a_direction() -> None:
    assert costs.bounds(0.736, 0.765, "TPS") == "23.5–26.4 % fewer"
    assert costs.bounds(1.2, 1.2) == "20.0 % more"
    assert costs.plus_minus(1.046, 0.044) == "4.6 ± 4.4 % more"
    assert costs.plus_minus(2.5, 0.2) == "2.50 ± 0.2 times"
    assert costs.plus_minus(1.0, 0.044) == "no change ± 4.4 %"
    assert costs.plus_minus(None, None) == "-"


SIGNED = re.compile(r"[+-]\d[\d.,]* ?(?:%|to .*%)|\(\s*[+-]\d|\d%")
"""`+3.6 %`, `(-2.8 to +10.4)`, `10%`: a cost has no sign but a word, or `times` from a doubling on."""


@pytest.mark.parametrize("name", studies.names())
def test_every_cost_of_a_study_is_in_the_notation_of_all_reports(name: str) -> None:
    report = studies.get(name).report(study_result(name))
    texts = [report.verdict, report.compared, *report.findings]
    texts += [text for sheet in report.sheets for row in sheet.rows for text in (*row, sheet.title, sheet.note)]
    assert [text for text in texts if SIGNED.search(text)] == []


def test_where_two_quantities_differ_in_kind_only_their_direction_is_compared() -> None:
    judged = Judged([WITHIN, DIRECTION], direction_only=True)
    assert agreement.verdict(judged) == "direction"
    assert "interval" not in agreement.counted(judged)
    assert "can't be compared" in " ".join(judged.criterion.split())


def test_what_was_not_measured_is_counted() -> None:
    counted = agreement.counted(Judged([WITHIN, UNKNOWN]))
    assert "of 2 published costs, 1 lies within" in counted
    assert "1 was not measured" in counted


def study_result(name: str) -> StudyResult:
    """The result of the record that the study's own tests build."""
    module: Any = importlib.import_module(f"test_study_{studies.folder(name)}")
    if name == "jdbc-tls":
        return module.STUDY.compare(module.kept(), module.CELLS)  # type: ignore[no-any-return]
    return module.compared(*module.PAIR) if name == "postgres-tde" else module.compared()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", studies.names())
def test_every_report_begins_with_the_verdict_and_has_the_studys_tables(name: str) -> None:
    study = study_result(name)
    report = studies.get(name).report(study)
    assert report.verdict.startswith((*agreement.HEADS.values(), *agreement.HEADS_OF_LIMITS.values()))
    result = msgspec.structs.replace(results.result(results.cell()), study=study)
    text = terminal.render(result)
    assert " ".join(text.split()).startswith(report.verdict)
    page = html.render(result)
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.replace("\xa0", " ").replace("&#39;", "'")))
    headline = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert headline is not None
    assert re.sub(r"<[^>]*>", "", headline[1]) == report.verdict
    assert page.count('<table class="sheet">') == len(report.sheets) >= 2
    comment = md.render(result)
    assert comment.count("| --- |") >= len(report.sheets)
    for sheet in report.sheets:
        assert all(len(row) in (1, len(sheet.head)) for row in sheet.rows)
        assert sheet.title.split("`")[0] in plain
        for row in sheet.rows:
            for cell in row:
                assert " ".join(cell.split()) in " ".join(text.split()), cell
                assert " ".join(cell.split()).replace("'", "") in plain.replace("'", ""), cell
    first = report.sheets[0]
    assert [" ".join(heading.split()) for heading in first.head[1:]] == [
        "as published",
        "the same here",
        "our method (95 %)",
        "published cost",
    ]
    assert first.rows


def test_a_study_without_figures_is_not_judged() -> None:
    study = studies.get("mysql-tls")
    report = study.report(study.compare(study.begin("mysql"), []))
    assert report.verdict.startswith("Direction and size not judged")


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def limit(kind: Bound, published: float, low: float, high: float) -> StudyFigure:
    return msgspec.structs.replace(cost(published, low, high), bound=kind)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (limit("most", 1.05, 0.99, 1.04), "holds"),
        (limit("most", 1.05, 1.01, 1.05), "holds"),
        (limit("most", 1.05, 1.02, 1.08), "open"),
        (limit("most", 1.05, 1.06, 1.08), "fails"),
        (limit("most", 1.05, 0.5, 0.6), "holds"),
        (limit("least", 1.0, 1.01, 1.04), "holds"),
        (limit("least", 1.0, 0.99, 1.04), "open"),
        (limit("least", 1.0, 0.90, 0.99), "fails"),
        (limit("either", 1.05, 0.96, 1.04), "holds"),
        (limit("either", 1.05, 0.90, 0.94), "fails"),
        (limit("either", 1.05, 0.94, 1.00), "open"),
        (limit("either", 1.05, 0.94, 1.06), "open"),
    ],
    ids=str,
)
def test_a_published_limit_holds_if_our_whole_interval_is_within_it(figure: StudyFigure, expected: str) -> None:
    assert agreement.agreement(figure) == expected


HOLDS, FAILS, BETWEEN = (limit("most", 1.05, 1.01, 1.02), limit("most", 1.05, 1.1, 1.2), limit("most", 1.05, 1.0, 1.1))


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ([HOLDS, HOLDS], "Published limits hold: all 2 published costs hold as limits"),
        ([HOLDS, FAILS], "Published limits hold in part: of 2 published costs, 1 holds as a limit, 1 does not hold"),
        ([FAILS], "Published limits do not hold: the one published cost does not hold as a limit"),
        ([BETWEEN], "Published limits not resolved: the one published cost was not resolved here"),
        ([HOLDS, WITHIN], "Replicated in direction and size: of 2 published costs, 1 lies within our 95 % interval, 1"),
        ([HOLDS, OPEN], "Partly replicated in direction and size"),
        ([FAILS, UNKNOWN], "Replicated neither in direction nor in size, as far as this run shows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_are_counted_in_plain_words(figures: list[StudyFigure], words: str) -> None:
    assert agreement.counted(Judged(figures)).startswith(words)


def test_a_limit_has_its_own_criterion() -> None:
    assert Judged([HOLDS]).criterion == agreement.LIMITS
    both = Judged([HOLDS, WITHIN]).criterion
    assert both.startswith(agreement.CRITERION)
    assert agreement.LIMITS.removeprefix("Criterion: a ") in both
    assert Judged([WITHIN]).criterion == agreement.CRITERION


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (limit("most", 1.05, 1, 1), "at most 5.0 % more"),
        (limit("least", 1.2, 1, 1), "at least 20.0 % more"),
        (limit("least", 1.0, 1, 1), "not less"),
        (limit("most", 1.0, 1, 1), "not more"),
        (limit("either", 1 / 0.97, 1, 1), "at most 3.1 % apart"),
        (cost(1.05), "5.0 % more"),
        (cost(None), "-"),
    ],
    ids=str,
)
def test_a_limit_is_printed_as_one(figure: StudyFigure, words: str) -> None:
    assert costs.claimed(figure) == words
