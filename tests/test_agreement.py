"""agreement: what a study's report says of its replication, by a criterion that is stated; every study's tables on every report."""

from __future__ import annotations

import importlib
import re
from typing import Any

import msgspec
import pytest

import results
from ciphercost import studies
from ciphercost.model import StudyFigure, StudyResult
from ciphercost.reports import html, md, terminal
from ciphercost.studies import agreement
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
        ([DIRECTION, DIRECTION], "direction"),
        ([DIRECTION, OPPOSITE], "partly"),
        ([OPPOSITE, NO_COST], "not"),
        ([OPPOSITE, OPEN], "not"),
        ([OPEN], "open"),
        ([WITHIN, UNKNOWN], "replicated"),
        ([UNKNOWN], ""),
        ([], ""),
    ],
    ids=str,
)
def test_a_verdict_on_all_of_them(figures: list[StudyFigure], expected: str) -> None:
    assert agreement.verdict(Judged(figures)) == expected
    assert agreement.counted(Judged(figures)).startswith(agreement.HEADS[expected])


def test_where_two_quantities_differ_in_kind_only_their_direction_is_compared() -> None:
    judged = Judged([WITHIN, DIRECTION], direction_only=True)
    assert agreement.verdict(judged) == "direction"
    assert "interval" not in agreement.counted(judged)
    assert "can't be compared" in " ".join(judged.criterion.split())


def test_what_was_not_measured_is_counted() -> None:
    assert "of 2 published costs, 1 lies within our 95 % interval, 1 was not measured here" in agreement.counted(
        Judged([WITHIN, UNKNOWN])
    )


def made(name: str) -> StudyResult:
    """A study's result of the made-up record of its own tests."""
    module: Any = importlib.import_module(f"test_study_{studies.folder(name)}")
    if name == "jdbc-tls":
        return module.STUDY.compare(module.kept(), module.CELLS)  # type: ignore[no-any-return]
    return module.compared(*module.PAIR) if name == "postgres-tde" else module.compared()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", studies.names())
def test_every_report_begins_with_the_verdict_and_has_the_studys_tables(name: str) -> None:
    study = made(name)
    report = studies.get(name).report(study)
    assert report.verdict.startswith(tuple(agreement.HEADS.values()))
    assert "Criterion: " in report.criterion
    assert "published on " in report.criterion
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
    assert [" ".join(each.split()) for each in first.head[1:]] == [
        "as published",
        "the same here",
        "our method (95 %)",
        "published cost",
    ]
    assert first.rows


def test_a_study_without_figures_is_not_judged() -> None:
    study = studies.get("mysql-tls")
    report = study.report(study.compare(study.begin("mysql"), []))
    assert report.verdict.startswith("Not judged")
