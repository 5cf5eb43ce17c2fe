"""Terminal lines for figures imported from other tools. They state clearly that ciphercost did not measure them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ciphercost import engines, mechanisms
from ciphercost.estimate.levels import LEVELS
from ciphercost.estimate.notation import interval, number, worded
from ciphercost.model.result import Cell, Estimate, Imported, Result
from ciphercost.model.spec import ARMS, Layer
from ciphercost.report.layout import figure_row, wrap
from ciphercost.report.words.cell_text import proof_line, runs_of
from ciphercost.report.words.figure_text import METRICS, levels
from ciphercost.report.words.verdict_text import verdict


def lines(cell: Cell, imported: Imported) -> Iterator[str]:
    """One cell, below its heading. It has an interval only if its runs give one."""
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
        # Without an interval it is unknown how many digits are significant; one decimal is generous.
        rough = shown if known or own.within_low else Estimate(own.ratio, 0.9, 1.1)
        yield from figure_row(
            label, worded(rough, more, less), interval(known, more, less) if known else "NO INTERVAL", levels(cell, key)
        )
        if own.within_low and own.within_high:
            text = (
                f"within these two runs: {interval(shown, more, less)}; an interval over several runs would be wider, "
                "because runs differ more than the seconds within a run"
            )
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
    """Shares of CPU time by arm, in %, from rows of sar or atop."""
    tables = {arm: cell.arms[arm]["host"] for arm in ARMS if cell.arms.get(arm, {}).get("host")}
    for arm, table in tables.items():
        words = ", ".join(f"{name.removeprefix('host_')} {each['mean']:.1f}" for name, each in table.items())
        yield from wrap(f"CPU time, {arm}: {words} %", "  ", "    ")


WORKLOADS = {"TPC-B (sort of)": "tpcb", "select only": "point-select"}
"""pgbench's built-in scripts, and the ciphercost workload that does the same."""


ENGINES = {
    "web": "nginx",
    "mysql or mariadb": "mysql",
    "postgres": "postgresql",
    "pg": "postgresql",
    "sqlcipher": "sqlite",
}
"""Other names of engines, as tools and tables use them."""
NO_TARGETS = ("null", "url")
"""Engines that measure ciphercost itself, or need more than a name."""
FIRST_LAYERS: tuple[Layer, ...] = ("transit", "rest", "column")


def engine_of(cell: Cell) -> str:
    """The engine named by a cell's engine or factors (`dbms=MySQL 8.0`); empty: none."""
    names: list[str]
    for text in (cell.engine, *cell.factors.values()):
        names = [text.lower(), *re.findall(r"[a-z]+", text.lower())]
        for word in names:
            if (name := ENGINES.get(word, word)) in engines.names() and name not in NO_TARGETS:
                return name
    return ""


def target(cell: Cell) -> tuple[str, str]:
    """(engine, mechanism) of a run that would measure this cell. The engine has this mechanism."""
    engine = engine_of(cell)
    own = mechanisms.get(cell.mechanism) if cell.mechanism in mechanisms.names() else None
    if not engine:
        # An engine that has the mechanism, if the mechanism is known.
        fits = [
            name for name in ("postgresql", "mysql", *engines.names()) if own is None or own.serves(engines.get(name))
        ]
        engine = fits[0] if fits else "postgresql"
    if own is not None and own.serves(engines.get(engine)):
        return engine, own.name
    layers = (own.layer, *FIRST_LAYERS) if own is not None else FIRST_LAYERS
    has = [name for layer in layers for name in mechanisms.of(engines.get(engine), layer)]
    return engine, has[0] if has else "tls"


def real_answer(result: Result) -> str:
    """The command that measures the imported cells properly."""
    targets = {f"{engine}:{mechanism}": cell for cell in result.cells for engine, mechanism in [target(cell)]}
    words = ["ciphercost run", *targets]
    cell = result.cells[-1]
    if len(targets) == 1 and (workload := WORKLOADS.get(cell.workload)):
        words += ["--workload", workload, *(["--clients", str(cell.clients)] if cell.clients else [])]
        words += ["--set", f"scale={cell.factors['scale']}"] if workload == "tpcb" and "scale" in cell.factors else []
    return " ".join(words)
