"""The front page's table: a row for each cell of each checked record. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ciphercost import mechanisms
from ciphercost.book.check import Checked
from ciphercost.estimate import levels
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.model.spec import ARMS, CellSpec
from ciphercost.plan import conditions
from ciphercost.report import first_screen
from ciphercost.report.words import added_text, cell_text, figure_text
from ciphercost.report.words.added_text import AddedCost

ASKED_FIRST = ("postgresql", "mysql", "mariadb", "nginx", "valkey")
"""Servers that most readers look for, in this order. The others follow by the alphabet."""

METRICS: dict[str, str] = {
    "cpu": "CPU time added per operation",
    "throughput": "operations per second",
    "p99": "latency p99",
}
"""Metrics of the selector: their names in the page's address and their titles. Each row has those that its cell measured."""


class Figure(NamedTuple):
    """One metric of one cell."""

    cost: str
    interval: str
    verdict: str
    size: tuple[float, float, float] | None
    """The cost and its interval, for sorting and for the bar: µs of CPU time, or a share, where 0.25 is 25 % worse. None: a
    control's CPU time, which no encryption added."""
    levels: str
    """`17.2 → 20.9 µs`, and of CPU time the ratio."""
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
    added: AddedCost | None
    """What encryption adds to an operation; None: unknown, or a control."""
    choices: int
    """How many settings differ from the usual ones."""
    connects: bool
    """Each operation opens a connection."""
    wire_bytes: float | None
    """What an operation sends and receives without encryption."""
    estimates: dict[str, tuple[str, Estimate]]
    """By metric: what exactly was measured, as a key of `Cell.overhead`, and its ratio."""
    proof: str
    trust: str
    """What was proven and what the intervals contain, in sentences."""
    protects: str
    """What the mechanism protects, or protects against."""
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


def _protects(cell: Cell) -> str:
    """As this version words it; an unknown mechanism has the words of its record."""
    mechanism = mechanisms.find(cell.mechanism)
    return cell.protects if mechanism is None else mechanisms.protection(mechanism)


def rows(checked: Sequence[Checked]) -> list[Row]:
    """All rows, in the order in which people ask: layer, the best-known servers, usual settings, short operations first."""
    all_rows = [
        _row(checked_run, number)
        for checked_run in checked
        for number, cell in enumerate(checked_run.result.cells)
        if cell.imported is None and cell.pair is None  # the book tells what encryption adds to none
    ]
    return sorted(all_rows, key=_order)


def _order(row: Row) -> tuple[object, ...]:
    known = row.engine in ASKED_FIRST
    return (
        list(LAYERS).index(row.layer),
        ASKED_FIRST.index(row.engine) if known else len(ASKED_FIRST),
        row.engine,
        row.mechanism,
        bool(row.choices),
        row.connects,
        row.added.plain if row.added else float("inf"),
        row.workload,
        row.settings,
        row.slug,
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
        added=added_text.of(cell),
        choices=len(spec.factors) + spec.per_request + bool(cell.client),
        connects=_connects(cell),
        wire_bytes=levels.level(cell, "plain", "wire_bytes_per_op"),
        estimates={name: (key, cell.overhead[key]) for name, key in _keys(cell).items()},
        proof=_proof(cell),
        trust=_trust(cell),
        protects=_protects(cell),
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


def _connects(cell: Cell) -> bool:
    plain = cell.arms.get("plain", {})
    return bool(plain.get("connects", 0) > plain.get("operations", 0) / 2)


def _figures(cell: Cell) -> list[tuple[str, Figure]]:
    return [(name, _cpu(cell, key) if name == "cpu" else _figure(cell, key)) for name, key in _keys(cell).items()]


def _keys(cell: Cell) -> dict[str, str]:
    """By metric of the selector: the key of `overhead` that this cell has for it."""
    added = added_text.of(cell)
    cpu = added.key if added else figure_text.cpu_metric(cell)
    keys = {"cpu": cpu, "throughput": "throughput", "p99": "latency_p99"}
    return {name: key for name, key in keys.items() if key in cell.overhead}


def _cpu(cell: Cell, key: str) -> Figure:
    """CPU time, as the cell's own page leads with it: what is added, to what, and the ratio."""
    cost = added_text.of(cell)
    if cost is None:
        return _figure(cell, key)._replace(size=None)
    whose = "" if cost.key == "server_cpu_per_op" else f"{cost.whose}: "
    return Figure(
        *added_text.figures(cost),
        "differs" if added_text.seen(cost) else "unresolved",
        (cost.added.mean, cost.added.low, cost.added.high),
        f"{whose}{added_text.base(cost)}",
        f"{cost.whose} per operation",
    )


def _figure(cell: Cell, key: str) -> Figure:
    estimate = cell.overhead[key]
    return Figure(
        figure_text.cost(key, estimate),
        figure_text.bounds(key, estimate),
        figure_text.resolution(cell, key),
        figure_text.loss(key, estimate),
        figure_text.levels(cell, key) if key in levels.LEVELS else "",
        figure_text.quantity(cell, key),
    )


def _trust(cell: Cell) -> str:
    """What was proven, what the intervals contain, and which warning changes which figure."""
    limits = [f"{limit[0].upper()}{limit[1:]}." for limit in first_screen.limits([cell])]
    return " ".join([first_screen.basis([cell], "on its page"), *limits])


def _proof(cell: Cell) -> str:
    """Which arms were proven to be what they claim to be, before any load."""
    if cell.layer == "control":
        return "control: no encryption"
    proven = {proof.arm for proof in cell.proofs if proof.passed} - {
        proof.arm for proof in cell.proofs if not proof.passed
    }
    if cell.status == "unproven" or not proven:
        return "not proven"
    return "both arms proven" if len(proven) == len(ARMS) else f"{proven.pop()} arm only"


def alone(result: Result, number: int, slug_: str) -> Result:
    """The result of one cell, with the spec that repeats it. `result` is not changed."""
    cell = msgspec.structs.replace(result.cells[number], beside={}, control=None, against_reference=None)
    spec = result.spec
    if spec is not None:
        cell_spec = msgspec.structs.replace(spec.cells[number], group="", variant="")
        spec = msgspec.structs.replace(spec, cells=[cell_spec], seed=result.seed)
    return msgspec.structs.replace(
        result, cells=[cell], spec=spec, parts=[], curves=[], study=None, command=f"ciphercost run {slug_}.toml"
    )
