"""Real runs tell what a page, an opening and a value cost, from counters of the database and from what the workload does."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec

import steady
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix
from ciphercost.report import formats
from ciphercost.runs import conclude, pipeline
from conftest import RequireServer


def measured(cells: list[CellSpec], tmp_path: Path) -> tuple[dict[str, object], str]:
    """The run's unit costs by unit, and its report."""
    spec = Spec(cells, mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
    result, directory = steady.measured(partial(pipeline.run, spec), tmp_path)
    assert [(cell.status, cell.reason) for cell in result.cells] == [("ok", "")] * len(cells)
    assert conclude.result_of(directory) == result
    return {cost.unit: cost for cost in result.costs}, formats.get("terminal")(result)


def test_pages_of_sqlite_are_counted_in_the_measured_slices_without_a_profile(tmp_path: Path) -> None:
    sqlcipher = CellSpec("sqlite", "sqlcipher", regime="one-core", workload="insert")
    # The cache has room for a tenth of the pages, so nearly every row's page is read and decrypted again.
    reads = msgspec.structs.replace(sqlcipher, workload="point-select", rows=4000, cache="small")
    costs, text = measured([reads, sqlcipher, msgspec.structs.replace(sqlcipher, workload="connect")], tmp_path)
    assert set(costs) == {"page read", "page written", "opening"}
    read, written = (msgspec.to_builtins(costs[unit]) for unit in ("page read", "page written"))
    assert 0.5 < read["units"][0] < 6, "the leaf of each row, and at most every level of the tree above it"
    assert written["units"][0] == 0 < 0.5 < written["units"][1] < 12
    assert read["bytes"] == 4096
    assert all(cost["us"]["high"] > cost["floor_us"] / 2 > 0 for cost in (read, written)), "no cheaper than its cipher"
    assert "per page read" in text
    assert "per opening" in text


def test_split_in_columns_tells_what_a_value_costs(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("mariadb", "11.8")
    cell = CellSpec("mariadb", "aes-cbc-128", version="11.8")
    costs, text = measured(matrix.split(cell), tmp_path)
    assert set(costs) == {"value sealed", "value opened", "value searched"}
    opened, searched = (msgspec.to_builtins(costs[unit]) for unit in ("value opened", "value searched"))
    assert (searched["rows"], searched["end"]) == (2000, "server")
    assert searched["us"]["value"] > abs(opened["us"]["value"]), "with a random IV it opens the value of every row"
    assert "per search of 2,000 rows" in " ".join(text.split())
