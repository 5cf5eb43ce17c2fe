"""What `import ciphercost` offers: cells by name, short reprs, run options, and data frames of polars and pandas."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciphercost
from ciphercost import api
from ciphercost.model import result as results
from ciphercost.model.errors import UnknownCell, UsageError
from ciphercost.model.result import Estimate
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.report import figures, formats, frames, notebook
from ciphercost.report.words import figure_text
from repetitions import examples
from results import cell, failed, mixed, recorded, result

CELLS = [
    CellSpec("postgresql", "tls"),
    CellSpec("postgresql", "tls", workload="connect"),
    CellSpec("postgresql", "tls", workload="connect", version="17", factors={"cipher": "chacha20"}),
    CellSpec("sqlite", "sqlcipher", regime="one-core"),
]


def several() -> api.Result:
    cells = [
        cell(),
        cell(workload="connect"),
        cell(workload="connect", version="17.6", factors={"version": "1.3", "cipher": "chacha20"}),
        cell("sqlite", "sqlcipher", layer="rest", regime="one-core", version="3.53"),
    ]
    return api.Result.of(result(*cells, spec=Spec(cells=CELLS)))


@pytest.mark.parametrize(
    ("key", "number"),
    [
        (0, 0),
        (-1, 3),
        ("sqlite:sqlcipher", 3),
        ("sqlcipher", 3),
        ("postgresql:tls point-select", 0),
        ("postgresql:tls connect", 1),  # the full name of a cell is that cell, although another has the same words
        ("postgresql@17:tls", 2),
        ("postgresql@17.6:tls", 2),
        ("cipher=chacha20", 2),
        ("connect cipher=chacha20", 2),
        ("sqlite one-core", 3),
    ],
)
def test_a_cell_by_number_or_by_words_that_only_it_has(key: str | int, number: int) -> None:
    result = several()
    assert result[key] is result.cells[number]
    assert isinstance(key, int) or key in result


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            "mysql:tls",
            ["no cell is 'mysql:tls'; this run has 4 cells: ", "'sqlite:sqlcipher point-select one-core' (3)"],
        ),
        (
            "postgresql:tls",
            [
                "fits 3 cells; add words",
                "'postgresql:tls connect' (1)",
                "'postgresql@17:tls connect cipher=chacha20' (2)",
            ],
        ),
        (4, ["no cell 4", "4 cells"]),
        (-5, ["no cell -5"]),
        ("", ["no cell is ''"]),
    ],
)
def test_an_unknown_or_ambiguous_cell_is_a_key_error_that_lists_the_cells(key: str | int, words: list[str]) -> None:
    with pytest.raises(KeyError) as caught:
        several()[key]
    assert isinstance(caught.value, ciphercost.errors.UnknownCell)
    assert isinstance(caught.value, UsageError)
    for word in words:
        assert word in str(caught.value)
    assert "sqlite" not in str(caught.value) or "fits" not in str(caught.value)


def test_a_key_of_another_type_is_a_usage_error() -> None:
    for key in (1.5, None, True, b"sqlite"):
        with pytest.raises(UsageError, match="by its number or its words"):
            several()[key]  # type: ignore[index]


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=8))
@settings(max_examples=examples(100), deadline=None)
def test_every_name_is_unique_and_finds_its_cell(specs: list[CellSpec]) -> None:
    cells = [cell(spec.engine, spec.mechanism, workload=spec.workload) for spec in specs]
    collection = api.Result.of(result(*cells, spec=Spec(cells=specs)))
    names = collection.names()
    assert len(set(names)) == len(names) == len(collection)
    assert [collection[name] for name in names] == collection.cells


def test_a_result_is_a_collection_of_its_cells() -> None:
    collection = several()
    assert list(collection) == collection.cells
    assert all(isinstance(cell, ciphercost.Cell) for cell in collection)
    assert collection[1] in collection
    assert ("mysql" in collection, "tls" in collection) == (False, True)
    assert len(api.Result.of(result())) == 0
    with pytest.raises(UnknownCell, match="no cells"):
        api.Result.of(result())[0]


def test_a_result_of_cells_is_written_as_any_other() -> None:
    for name in ("json", "csv", "md", "terminal", "junit"):
        assert formats.get(name)(api.Result.of(mixed())) == formats.get(name)(mixed())


# ── repr ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cell_is_one_line_with_target_cost_interval_and_verdict() -> None:
    costs = {"throughput": Estimate(0.8, 0.784, 0.816)}
    assert repr(api.Cell.of(cell(overhead=costs))) == (
        "<ciphercost.Cell postgresql:tls point-select: 20.0 % fewer operations/s (95 % CI 18.4–21.6 %), differs>"
    )
    assert repr(api.Cell.of(failed("no space\nleft\x1b[31m"))) == (
        "<ciphercost.Cell postgresql:tls point-select: FAILED, no space left\ufffd[31m>"
    )
    for shown_cell in api.Result.of(mixed()):
        assert "\n" not in repr(shown_cell)
        assert len(repr(shown_cell)) < 300
        assert shown_cell.verdict is None or repr(shown_cell).endswith((f"{shown_cell.verdict}>", "unresolved>"))


def test_the_repr_of_a_result_is_a_line_for_each_cell_and_not_for_hundreds() -> None:
    first = mixed().cells[0].overhead["throughput"]
    assert f"{figure_text.cost('throughput', first)} ({figure_text.bounds('throughput', first)})" in repr(
        api.Result.of(mixed())
    )
    many = api.Result.of(result(*[cell(variant=f"v={n}") for n in range(200)]))
    lines = repr(many).splitlines()
    assert len(lines) == notebook.MOST + 2
    assert f" {200 - notebook.MOST} more" in lines[-1]


# ── run ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_takes_one_target_with_options_of_the_run_and_of_the_cell(tmp_path: Path) -> None:
    result = ciphercost.run(
        "null:busy",
        tmp_path / "run",
        mode="quick",
        time="2s",
        latency=False,
        regime="one-core",
        factors={"effect": "50%"},
    )
    assert result["null:busy"] is result[0]
    assert result.names() == ["null:busy point-select one-core effect=50%"]
    assert ciphercost.load(tmp_path / "run")["null:busy"].factors["effect"] == "50%"


def test_options_of_cells_apply_to_every_cell_and_text_is_parsed() -> None:
    options = {"workload": "connect", "time": "3m", "precision": "2%", "mode": "quick"}
    spec = api.plan(["postgresql:tls", CellSpec("mysql", "tls", clients=2)], options).spec
    assert [cell.workload for cell in spec.cells] == ["connect", "connect"]
    assert (spec.cells[1].clients, spec.time, spec.precision, spec.sessions) == (2, 180.0, 0.02, 1)


# ── data frames ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pandas_has_the_rows_of_polars(tmp_path: Path) -> None:
    import pandas  # both take long to import
    import polars

    for run_result in (api.Result.of(mixed()), ciphercost.load(recorded(tmp_path / "run"))):
        one, other = run_result.to_pandas(), run_result.to_polars()
        assert list(one.columns) == other.columns == list(figures.COLUMNS)
        known = [
            {key: None if pandas.isna(value) else value for key, value in row.items()} for row in one.to_dict("records")
        ]
        assert known == other.to_dicts()
        kinds = {polars.String: "string", polars.Int64: "Int64", polars.Float64: "float64"}
        assert [str(dtype) for dtype in one.dtypes] == [kinds[type(dtype)] for dtype in other.dtypes]


def test_pandas_needs_no_polars_and_its_absence_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert len(frames.cells_of_pandas(mixed())) > 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        api.Result.of(mixed()).to_pandas()


def test_a_cell_has_the_fields_of_the_record_and_no_more() -> None:
    assert api.Cell.__struct_fields__ == results.Cell.__struct_fields__
    assert api.Result.__struct_fields__ == results.Result.__struct_fields__
