"""OpenMetrics 1.0 text, for Prometheus and what reads its format. Without timestamps, as the specification recommends.

Figures have the labels that stay the same from run to run; versions, the machine and the run's id are in `_info` families, so a newer
run continues the same time series. Join them by `cell`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from ciphercost.estimate import failures
from ciphercost.model.constrained_types import Status, Verdict
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import ARMS
from ciphercost.report import cell_ids, tracked
from ciphercost.report.words import figure_text, pair_text

PREFIX = "ciphercost"
GAUGES = (
    ("cost_ratio", "ratio", "encrypted / plain: above 1, the encrypted arm has more of the metric"),
    ("cost_lower_bound_ratio", "low", "lower bound of the 95 % interval of encrypted / plain"),
    ("cost_upper_bound_ratio", "high", "upper bound of the 95 % interval of encrypted / plain"),
)
"""Families with a figure's value, bound by bound: name, field of the estimate, help."""


class Sample(NamedTuple):
    """One line. `suffix` is `_info` in a family of that type."""

    labels: Mapping[str, str]
    value: float = 1
    suffix: str = ""


class Family(NamedTuple):
    """A metric family: its name without the prefix, type, unit and help."""

    name: str
    type: str
    unit: str
    help: str
    samples: Iterable[Sample]


def render(result: Result) -> str:
    """The exposition. It ends in `# EOF`, without the last line end."""
    lines = [line for family in _families(result) for line in _lines(family)]
    return "\n".join([*lines, "# EOF"])


def _families(result: Result) -> Iterator[Family]:
    cells = list(zip(cell_ids.ids(result), result.cells, strict=True))
    figures = [
        (_labels(name, cell) | {"metric": metric}, estimate)
        for name, cell in cells
        if tracked.has_cost(cell)
        for metric, estimate in tracked.with_failures(cell).overhead.items()
    ]
    for name, bound, help_ in pair_text.worded(GAUGES, pair_text.of(result.cells)):
        samples = [Sample(labels, getattr(estimate, bound)) for labels, estimate in figures]
        yield Family(name, "gauge", "ratio", help_, samples)
    failed = [(cell, _labels(name, cell), cell.failures) for name, cell in cells if cell.failures is not None]
    counts = (
        ("failed_slices", "slices that failed, lead-ins included", ("plain", "encrypted")),
        (
            "slices",
            "all slices of a cell in which some failed, lead-ins included",
            ("plain_slices", "encrypted_slices"),
        ),
        ("failed_operations", "operations that failed in other slices", ("plain_operations", "encrypted_operations")),
    )
    for name, help_, fields in counts if failed else ():
        samples = [
            Sample(labels | {"arm": pair_text.name(cell, arm)}, getattr(of, field))
            for cell, labels, of in failed
            for arm, field in zip(ARMS, fields, strict=True)
        ]
        yield Family(name, "gauge", "", help_, samples)
    yield _states(
        "verdict",
        "whether the arms differ",
        [(_labels(*named_cell), named_cell[1].verdict) for named_cell in cells],
        get_args(Verdict),
    )
    yield _states(
        "status",
        "ok: proven and measured; a cell with another status has no figures",
        [(_labels(*named_cell), named_cell[1].status) for named_cell in cells],
        get_args(Status),
    )
    yield Family(
        "cell",
        "info",
        "",
        "versions and counts behind a cell's figures",
        [Sample(_about(*named_cell), 1, "_info") for named_cell in cells],
    )
    yield Family("run", "info", "", "the run and its machine", [Sample(_run(result), 1, "_info")])
    if (started := _seconds(result.started)) is not None:
        yield Family(
            "run_started_timestamp_seconds", "gauge", "seconds", "when the run began, Unix time", [Sample({}, started)]
        )


def _states(name: str, help_: str, cells: Iterable[tuple[dict[str, str], str | None]], states: Iterable[str]) -> Family:
    """A StateSet: the label with the family's name has the state, and the value is 1 for the one that holds."""
    states = list(states)
    samples = [
        Sample(labels | {f"{PREFIX}_{name}": state}, int(state == held)) for labels, held in cells for state in states
    ]
    return Family(name, "stateset", "", help_, samples)


def _labels(name: str, cell: Cell) -> dict[str, str]:
    return {
        "cell": name,
        "engine": cell.engine,
        "mechanism": cell.mechanism,
        "layer": cell.layer,
        "workload": cell.workload,
        "regime": cell.regime,
        "clients": str(cell.clients),
        "variant": cell.variant,
    }


def _about(name: str, cell: Cell) -> dict[str, str]:
    return {
        "cell": name,
        "version": cell.version,
        "mode": cell.mode,
        "sessions": str(cell.sessions),
        "blocks": str(cell.blocks),
        "protocol": cell.encryption.get("protocol", ""),
        "cipher": cell.encryption.get("cipher", ""),
        "disturbed": "yes" if cell.disturbed else "no",
        "failures": "differ" if failures.differ(cell.failures) else "",
    }


def _run(result: Result) -> dict[str, str]:
    machine = {name: str(result.machine.get(name, "")) for name in ("cpu", "cores", "kernel")}
    return {"run": result.id, "seed": str(result.seed), "tool_version": result.tool.get("version", "")} | machine


def _seconds(started: str) -> float | None:
    """Unix time; None if the run doesn't say when it began."""
    try:
        return datetime.datetime.fromisoformat(started).timestamp()
    except ValueError:
        return None


def _lines(family: Family) -> Iterator[str]:
    """TYPE, UNIT and HELP, then the samples."""
    name = f"{PREFIX}_{family.name}"
    yield f"# TYPE {name} {family.type}"
    if family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {escaped(family.help)}"
    for sample in family.samples:
        # An empty label is the same as none.
        labels = ",".join(f'{key}="{escaped(value)}"' for key, value in sample.labels.items() if value)
        yield f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {sample.value!r}"


def escaped(text: str) -> str:
    """A label's value or a help text: backslash, quote and line end are escaped; other control characters become U+FFFD."""
    return figure_text.printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
