"""Cells from other tools' runs. The units are runs, which are neither paired nor proven. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.imported_copies import SURE_DIGITS, digits, once, place, printed
from ciphercost.estimate.imported_costs import IMPORTED, compared, cost, estimate, values
from ciphercost.estimate.imported_warnings import alone, follow, order_of, same_rate, warnings
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import UNREGISTERED, CellFacts, RunFacts
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.result import Cell, Estimate, Imported, ImportedCost, ImportedFile, Warning_
from ciphercost.model.spec import ARMS, Arm, CellSpec

REASON = "imported: not paired, not proven"


def key(reading: Reading) -> tuple[object, ...]:
    """What runs must have in common to be compared."""
    return (
        reading.kind,
        reading.tool,
        reading.engine,
        reading.workload,
        reading.clients,
        tuple(sorted(reading.factors.items())),
    )


def specs(record: ImportedRecord, engine: str, mechanism: str) -> list[CellFacts]:
    """The cells of a record. Sets each reading's cell number."""
    numbers: dict[tuple[object, ...], int] = {}
    cell_facts: list[CellFacts] = []
    several = len({reading.server for reading in record.readings if reading.server}) > 1
    for reading in record.readings:
        cell_key = (*key(reading), reading.server if several else "")
        if cell_key not in numbers:
            numbers[cell_key] = len(cell_facts)
            spec = CellSpec(
                engine=engine or (reading.server if several else "") or reading.engine,
                mechanism=mechanism,
                workload=reading.workload,
                clients=reading.clients,
                factors=reading.factors,
            )
            cell_facts.append(CellFacts(spec=spec, clients=reading.clients, status="unproven", reason=REASON))
        reading.cell = numbers[cell_key]
    return cell_facts


def cells(facts: RunFacts, record: ImportedRecord) -> list[Cell]:
    """Every cell with its figures; p-values are corrected for the number of cells (Holm)."""
    imported_cells = []
    for number, known in enumerate(facts.cells):
        readings = [reading for reading in record.readings if reading.cell == number]
        if not readings:
            raise UsageError(f"imported.json has no readings of cell {number + 1}; import the files again")
        files = {name for reading in readings for name in reading.file.split(", ")}
        imported_cells.append(cell(known, readings, [file for file in record.files if file.name in files]))
    tested = [
        (number, name)
        for number, imported_cell in enumerate(imported_cells)
        if (name := imported_metric(imported_cell.overhead))
    ]
    corrected = statistics.holm([imported_cells[number].overhead[name].p_value or 0.0 for number, name in tested])
    for (number, name), p_value in zip(tested, corrected, strict=True):
        estimate = msgspec.structs.replace(imported_cells[number].overhead[name], p_value=p_value)
        imported_cells[number] = msgspec.structs.replace(
            imported_cells[number], overhead={**imported_cells[number].overhead, name: estimate}
        )
    twice = twice_published(facts, record)
    return [
        msgspec.structs.replace(
            imported_cell,
            warnings=[*imported_cell.warnings, *alone(imported_cell, imported_cells), *twice.get(number, [])],
        )
        for number, imported_cell in enumerate(imported_cells)
    ]


def twice_published(facts: RunFacts, record: ImportedRecord) -> dict[int, list[Warning_]]:
    """By cell: the warning that one of its runs equals another cell's to the last digit. Pure."""
    first: dict[tuple[object, ...], Reading] = {}
    by_cell: dict[int, list[Warning_]] = {}
    for reading in record.readings:
        if digits(reading) < SURE_DIGITS:
            continue
        first_reading = first.setdefault((reading.arm, *printed(reading)), reading)
        if first_reading.cell != reading.cell and reading.cell not in by_cell:
            other = facts.cells[first_reading.cell].spec
            factors = " ".join(f"{name}={value}" for name, value in other.factors.items())
            text = (
                f"{place(reading)}: this {reading.arm} run equals one of another cell ({' '.join(filter(None, (other.workload, factors)))}) to "
                "the last digit: is it the same run twice?"
            )
            by_cell[reading.cell] = [Warning_("run-of-another-cell", text)]
    return by_cell


def cell(known: CellFacts, readings: list[Reading], files: list[ImportedFile]) -> Cell:
    """One cell from all runs that can be compared."""
    by_arm: dict[Arm, list[Reading]] = {arm: [reading for reading in readings if reading.arm == arm] for arm in ARMS}
    by_arm, minded = once(by_arm)
    readings = [reading for arm in ARMS for reading in by_arm[arm]]
    names = list(dict.fromkeys(name for reading in readings for name in reading.figures))
    costs: dict[str, ImportedCost] = {}
    overhead: dict[str, Estimate] = {}
    smallest = None
    for name in names:
        if not compared(name) or not all(any(name in run.figures for run in by_arm[arm]) for arm in ARMS):
            continue
        costs[name], interval = cost(name, by_arm["plain"], by_arm["encrypted"])
        if interval is not None:
            minded += [
                warning for warning in follow(name, interval) if warning.code not in {known.code for known in minded}
            ]
            overhead[name] = estimate(costs[name], interval)
            if name == "throughput":
                smallest = math.exp(interval.smallest_effect()) - 1
    tools = dict.fromkeys(f"{reading.tool} {reading.version}".strip() for reading in readings)
    order = order_of(by_arm)
    encryption = next((reading.encryption for reading in by_arm["encrypted"] if reading.encryption), {})
    registered = known.registered or UNREGISTERED
    return Cell(
        engine=known.spec.engine,
        version="",
        layer=known.layer or registered.layer,
        mechanism=known.spec.mechanism,
        workload=known.spec.workload,
        clients=known.clients,
        status="unproven",
        mode="imported",
        factors=known.spec.factors,
        overhead=overhead,
        arms={arm: level(by_arm[arm]) for arm in ARMS if by_arm[arm]},
        warnings=[*warnings(readings, by_arm, costs, order, list(tools)), *minded, *same_rate(by_arm)],
        reason=reason(by_arm, overhead),
        encryption={f"{name} (as {readings[0].tool} says)": value for name, value in encryption.items()},
        smallest_effect=smallest,
        embedded=registered.embedded,
        protects=registered.protects,
        mechanism_factors=registered.factors,
        imported=Imported(", ".join(tools), files, costs, order, server(readings)),
    )


def server(readings: list[Reading]) -> str:
    """The server that the runs name, if they agree; empty: none, or several."""
    named = {reading.server for reading in readings if reading.server}
    return next(iter(named)) if len(named) == 1 else ""


def reason(by_arm: dict[Arm, list[Reading]], overhead: dict[str, Estimate]) -> str:
    if not all(by_arm.values()):
        only = next(arm for arm in ARMS if by_arm[arm])
        return f"{REASON}; only runs of the {only} arm: levels but no cost"
    return REASON if overhead else f"{REASON}; only one run of an arm: no interval, so no cost can be stated"


def level(runs: Sequence[Reading]) -> dict[str, object]:
    """One arm's levels: geometric means over runs, so that their quotient is the ratio, and CPU shares with their variance."""
    levels: dict[str, object] = {
        "runs": len(runs),
        "operations": sum(run.operations for run in runs),
        "errors": sum(run.errors for run in runs),
        "seconds": math.fsum(run.seconds for run in runs),
    }
    names = dict.fromkeys(name for run in runs for name in run.figures)
    latency = {}
    host = {}
    for name in names:
        logs = values(name, runs)
        mean = math.exp(float(np.mean(logs))) if len(logs) else 0.0
        if name.startswith("latency_"):
            latency[name.removeprefix("latency_")] = mean
        elif name.startswith("host_") and name not in ("host_busy", "host_cpu_per_op"):
            figures = np.array([run.figures[name] for run in runs if name in run.figures])
            variance = float(np.var(figures, ddof=1)) if len(figures) > 1 else 0.0
            middle = float(figures.mean())
            host[name] = {
                "mean": middle,
                "variance": variance,
                "cv": math.sqrt(variance) / middle if middle else 0.0,
            }
        else:
            levels[
                {"client_cpu_per_op": "client_cpu_us_per_op", "host_cpu_per_op": "host_cpu_us_per_op"}.get(name, name)
            ] = mean
    return levels | ({"latency_ms": latency} if latency else {}) | ({"host": host} if host else {})


def imported_metric(overhead: Mapping[str, Estimate]) -> str:
    """The metric of an imported cell's verdict; empty: none."""
    return next((key for key in (*IMPORTED, *overhead) if key in overhead), "")
