"""The front page's table: a row for each cell of each checked record. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ciphercost.estimate import levels
from ciphercost.gallery.check import Checked
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.model.spec import CellSpec
from ciphercost.plan import conditions
from ciphercost.report.words import cell_text, figure_text

METRICS: dict[str, str] = {
    "cpu": "CPU time per operation",
    "throughput": "operations per second",
    "p99": "latency p99",
}
"""Metrics of the selector: their names in the page's address and their titles. Each row has those that its cell measured."""


class Figure(NamedTuple):
    """One metric of one cell."""

    cost: str
    interval: str
    verdict: str
    share: float
    """The cost as a share, for sorting and for the bar: 0.25 is 25 % worse."""
    levels: str
    name: str
    """What exactly it is: `server CPU per operation`, `process CPU per operation`."""


class Machine(NamedTuple):
    """What distinguishes one machine from another. Two machines that are alike in all of this count as one."""

    cpu: str
    cores: int
    memory_gb: int
    virtual: bool
    kernel: str
    node: str = ""
    """Which machine of a run over machines it was; these may be alike in everything else."""

    @property
    def label(self) -> str:
        return f"{self.cpu}, {self.cores} core{'s' * (self.cores != 1)}"


class Row(NamedTuple):
    """One cell of the book."""

    slug: str
    """Name of its page."""
    run: str
    number: int
    engine: str
    version: str
    mechanism: str
    layer: str
    workload: str
    settings: str
    machine: Machine
    figures: dict[str, Figure]
    """By metric."""
    estimates: dict[str, tuple[str, Estimate]]
    """By metric: what exactly was measured, as a key of `Cell.overhead`, and its ratio."""
    proof: str
    reason: str
    disturbed: bool
    """Every slice was disturbed, so its figures are not to be relied on."""
    hashed: str
    alike: str
    """Equal for cells that differ only in the machine and the versions of programs."""

    @property
    def title(self) -> str:
        return f"{self.engine} {self.version}".strip()


LAYERS = {"transit": "in transit", "rest": "at rest", "column": "in columns", "control": "control"}


def rows(checked: Sequence[Checked]) -> list[Row]:
    """All rows, in the order of engine, layer, mechanism, workload."""
    made = [
        _row(each, number) for each in checked for number, cell in enumerate(each.result.cells) if cell.imported is None
    ]
    order = list(LAYERS)
    return sorted(
        made, key=lambda row: (row.engine, order.index(row.layer), row.mechanism, row.workload, row.settings, row.slug)
    )


def _row(checked: Checked, number: int) -> Row:
    result, cell = checked.result, checked.result.cells[number]
    spec = checked.facts.spec.cells[number]
    settings = _settings(cell, spec)
    return Row(
        slug=slug(result, number),
        run=result.id,
        number=number,
        engine=cell.engine,
        version=cell.version,
        mechanism=cell.mechanism,
        layer=cell.layer,
        workload=cell.workload,
        settings=settings,
        machine=machine(result.machine),
        figures=dict(_figures(cell)),
        estimates={name: (key, cell.overhead[key]) for name, key in _keys(cell).items()},
        proof=_proof(cell),
        reason=cell_text.without_number(cell) if not cell.overhead else cell.reason,
        disturbed=cell.disturbed,
        hashed=checked.label,
        alike=" ".join((cell.engine, cell.mechanism, cell.workload, settings, str(cell.rows))),
    )


def slug(result: Result, number: int) -> str:
    """The name of a cell's page: `20261121-120000-ab12-1`. Only letters that are safe in a file name and an address."""
    return f"{re.sub(r'[^A-Za-z0-9-]', '-', result.id)[:64]}-{number + 1}"


def machine(facts: Mapping[str, Any]) -> Machine:
    memory = facts.get("memory", 0)
    return Machine(
        cpu=re.sub(r"\((?:R|TM)\)", "", str(facts.get("cpu", "unknown CPU"))),
        cores=int(facts.get("cores", 0) or 0),
        memory_gb=round(memory / 1e9) if isinstance(memory, int | float) else 0,
        virtual=bool(facts.get("virtual")),
        kernel=str(facts.get("kernel", "")),
        node=" ".join(str(facts[name]) for name in ("over_machines", "node") if name in facts),
    )


def _settings(cell: Cell, spec: CellSpec) -> str:
    """What was asked for beside engine, mechanism and workload."""
    words = [f"{name}={value}" for name, value in spec.factors.items()]
    words += [f"{cell.clients} client{'s' * (cell.clients != 1)}", cell.regime]
    words += ["per request"] * spec.per_request + [cell.client] * bool(cell.client)
    words += filter(None, [conditions.worded(cell.conditions)])
    words += ["quick"] * (cell.mode == "quick")
    return ", ".join(words)


def _figures(cell: Cell) -> list[tuple[str, Figure]]:
    return [(name, _figure(cell, key)) for name, key in _keys(cell).items()]


def _keys(cell: Cell) -> dict[str, str]:
    """By metric of the selector: the key of `overhead` that this cell has for it."""
    keys = {"cpu": figure_text.cpu_metric(cell), "throughput": "throughput", "p99": "latency_p99"}
    return {name: key for name, key in keys.items() if key in cell.overhead}


def _figure(cell: Cell, key: str) -> Figure:
    estimate = cell.overhead[key]
    share, *_ = figure_text.loss(key, estimate)
    return Figure(
        figure_text.cost(key, estimate),
        figure_text.bounds(key, estimate),
        figure_text.resolution(cell, key),
        round(share, 6),
        figure_text.levels(cell, key) if key in levels.LEVELS else "",
        figure_text.quantity(cell, key),
    )


def _proof(cell: Cell) -> str:
    if cell.layer == "control":
        return "control"
    if cell.status == "unproven":
        return "not proven"
    witnesses = sorted({each.witness for each in cell.proofs if each.passed})
    return f"proven: {', '.join(witnesses)}" if cell.status == "ok" and witnesses else cell.status.replace("-", " ")


def alone(result: Result, number: int, slug_: str) -> Result:
    """The result of one cell, with the spec that repeats it. `result` is not changed."""
    cell = msgspec.structs.replace(result.cells[number], beside={}, control=None, against_reference=None)
    spec = result.spec
    if spec is not None:
        own = msgspec.structs.replace(spec.cells[number], group="", variant="")
        spec = msgspec.structs.replace(spec, cells=[own], seed=result.seed)
    return msgspec.structs.replace(
        result, cells=[cell], spec=spec, parts=[], curves=[], study=None, command=f"ciphercost run {slug_}.toml"
    )
