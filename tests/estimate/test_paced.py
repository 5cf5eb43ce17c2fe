"""The warning that the machine's congestion control paces connections within it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from ciphercost.estimate import connection_warnings
from ciphercost.estimate.estimator import CellEstimator
from ciphercost.host import procfs
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import CellEstimate
from ciphercost.model.spec import CellSpec
from simulate import records


def estimate(size: float) -> CellEstimate:
    """An estimate whose plain arm moves this many bytes per operation."""
    estimator = CellEstimator()
    for record in records(np.random.default_rng(1).normal(0, 0.01, (8, 4)), np.ones(8)):
        estimator.add(record)
    cell_estimate = estimator.finish("quick", 0.01)
    arms = cell_estimate.arms | {"plain": cell_estimate.arms["plain"] | {"wire_bytes_per_op": size}}
    return msgspec.structs.replace(cell_estimate, arms=arms)


@pytest.mark.parametrize(
    ("control", "size", "url", "warned"),
    [
        ("bbr", 1e6, "", True),
        ("bbr", 1e4, "", False),
        ("cubic", 1e6, "", False),
        ("bbr", 1e6, "http://staging/", False),
    ],
)
def test_large_responses_of_our_own_server_under_bbr_are_warned_of(
    control: str, size: float, url: str, warned: bool
) -> None:
    known = CellFacts(spec=CellSpec("nginx", "tls", url=url))
    warnings = connection_warnings.paced({"congestion_control": control}, known, estimate(size))
    assert [warning.code for warning in warnings] == ["paced"] * warned


def test_records_without_the_machines_congestion_control_and_cells_without_figures_have_no_warning() -> None:
    known = CellFacts(spec=CellSpec("nginx", "tls"))
    assert connection_warnings.paced({}, known, estimate(1e6)) == []
    assert connection_warnings.paced({"congestion_control": "bbr"}, known, None) == []


def test_the_record_has_this_machines() -> None:
    assert str(procfs.machine()["congestion_control"]).replace("_", "").replace(" ", "").isalnum()
