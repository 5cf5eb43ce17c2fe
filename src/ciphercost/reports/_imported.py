"""imported: figures that `import` read of other tools -> lines for the terminal; loudly not ours. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost import engines, mechanisms
from ciphercost.layout import figure_row, wrap
from ciphercost.model import ARMS, Cell, Estimate, Imported, Result
from ciphercost.words import LEVELS, METRICS, interval, levels, number, proof_line, runs_of, verdict, worded


def lines(cell: Cell, imported: Imported) -> Iterator[str]:
    """One cell, below its heading; an interval only where runs give one."""
    loud, semicolon, further = cell.reason.partition(";")
    yield from wrap(loud.upper() + semicolon + further, "  ")
    yield from wrap(f"made by {imported.tool}: {runs_of(cell)}", "  ", "    ")
    if imported.costs:
        yield from figure_row("what these runs show", "", "95 % interval", "plain → encrypted")
    for key, label, more, less in METRICS:
        if key not in imported.costs:
            continue
        own = imported.costs[key]
        known = cell.overhead.get(key)
        shown = known or Estimate(own.ratio, own.within_low or own.ratio, own.within_high or own.ratio)
        # Without an interval nothing tells how many digits may be trusted: one behind the point is many.
        rough = shown if known or own.within_low else Estimate(own.ratio, 0.9, 1.1)
        yield from figure_row(
            label, worded(rough, more, less), interval(known) if known else "NO INTERVAL", levels(cell, key)
        )
        if own.within_low and own.within_high:
            text = f"within these two runs alone {interval(shown)}: the least that an interval would hold, as runs differ by more than their seconds do"
            yield from wrap(text, "    ", "    ")
    if len(cell.arms) == 1:
        (arm, own_level) = next(iter(cell.arms.items()))
        for key, label, *_ in METRICS:
            read, unit = LEVELS[key]
            if (value := read(own_level)) is not None and value:
                yield f"  {label:<25} {arm}: {number(value)} {unit}"
    yield from _shares(cell)
    yield from wrap(f"verdict: {verdict(cell)}", "  ", "           ")
    yield from wrap(proof_line(cell), "  ", "          ")
    for warning in cell.warnings[1:]:
        yield from wrap(f"! {warning.text}", "  ", "    ")


def _shares(cell: Cell) -> Iterator[str]:
    """Of sar's and atop's rows: where the CPU's time went, % by arm."""
    tables = {arm: cell.arms[arm]["host"] for arm in ARMS if cell.arms.get(arm, {}).get("host")}
    for arm, table in tables.items():
        words = ", ".join(f"{name.removeprefix('host_')} {each['mean']:.1f}" for name, each in table.items())
        yield from wrap(f"CPU time, {arm}: {words} %", "  ", "    ")


WORKLOADS = {"TPC-B (sort of)": "tpcb", "select only": "point-select"}
"""pgbench's own, and which of ours does the same."""


def real_answer(result: Result) -> str:
    """The command that measures what the imported figures were to tell."""
    known = {"web": "nginx", "mysql or mariadb": "mysql"}
    targets = {}
    for cell in result.cells:
        engine = known.get(cell.engine, cell.engine)
        mechanism = cell.mechanism if cell.mechanism in mechanisms.names() else "tls"
        targets[f"{engine if engine in engines.names() else 'postgresql'}:{mechanism}"] = cell
    words = ["ciphercost run", *targets]
    if len(targets) == 1 and (workload := WORKLOADS.get(cell.workload)):
        words += ["--workload", workload, *(["--clients", str(cell.clients)] if cell.clients else [])]
        words += ["--set", f"scale={cell.factors['scale']}"] if workload == "tpcb" and "scale" in cell.factors else []
    return " ".join(words)
