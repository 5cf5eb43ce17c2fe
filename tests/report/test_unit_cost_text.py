"""What a page, an opening and a value cost, in the headline and in the terminal's table."""

from __future__ import annotations

from ciphercost.model.result import Part, UnitCost
from ciphercost.report.words import unit_cost_text

READ = UnitCost("sqlite", "sqlcipher", "process", "page read", Part(1.9, 1.7, 2.1), [0, 1], [1.0, 0.5], bytes=4096)
WRITTEN = UnitCost("sqlite", "sqlcipher", "process", "page written", Part(2.6, 2.4, 2.8), [0, 1], [0.0, 2.0])
OPENING = UnitCost("sqlite", "sqlcipher", "process", "opening", Part(120e3, 110e3, 130e3), [2], measure="time")
UNSURE = UnitCost("sqlite", "sqlcipher", "process", "page written", Part(2.6, -1.0, 6.2), [0, 1])


def test_the_headline_has_what_each_page_and_opening_adds() -> None:
    headline = unit_cost_text.headline([READ, WRITTEN, OPENING])
    assert "1.90 µs of process CPU (95 % CI 1.70–2.10) to each page read" in headline
    assert "2.60 µs (2.40–2.80) to each page written" in headline
    assert "120 ms of time (110–130) to each opening" in headline
    assert unit_cost_text.headline([READ], counted=True).endswith("to each page read (1 per operation)")


def test_one_cost_may_be_unsure_but_not_all_and_not_one_off_the_model() -> None:
    assert "at most 6.2 µs" in unit_cost_text.headline([READ, UNSURE])
    off = UnitCost("sqlite", "sqlcipher", "process", "page read", Part(1.9, 1.7, 2.1), [0, 1], worst=9.0)
    below = UnitCost("sqlite", "sqlcipher", "process", "page read", Part(-1.9, -2.1, -1.7), [0, 1])
    for costs in ([UNSURE], [off, WRITTEN], [below, WRITTEN], [OPENING], []):
        assert unit_cost_text.headline(costs) == ""


def test_an_opening_stands_beside_the_pages_of_its_mechanism() -> None:
    other = UnitCost("mariadb", "mariadb-tde", "server", "page", Part(5.0, 4.0, 6.0), [3])
    rows = list(unit_cost_text.rows([READ, WRITTEN, OPENING, other]))
    assert [[cost.unit for cost in row.costs] for row in rows] == [["page read", "page written", "opening"], ["page"]]
    assert [unit_cost_text.unit(cost) for row in rows for cost in row.costs][-1] == "page read or written"
