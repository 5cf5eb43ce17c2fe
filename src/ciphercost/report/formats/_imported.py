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
        imported_cost = imported.costs[key]
        known = cell.overhead.get(key)
        shown = known or Estimate(
            imported_cost.ratio,
            imported_cost.within_low or imported_cost.ratio,
            imported_cost.within_high or imported_cost.ratio,
        )
        # Without an interval it is unknown how many digits are significant; one decimal is generous.
        rough = shown if known or imported_cost.within_low else Estimate(imported_cost.ratio, 0.9, 1.1)
        yield from figure_row(
            label, worded(rough, more, less), interval(known, more, less) if known else "NO INTERVAL", levels(cell, key)
        )
        if imported_cost.within_low and imported_cost.within_high:
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
        words = ", ".join(f"{name.removeprefix('host_')} {share['mean']:.1f}" for name, share in table.items())
        yield from wrap(f"CPU time, {arm}: {words} %", "  ", "    ")


WORKLOADS = {"TPC-B (sort of)": "tpcb", "select only": "point-select"}
"""pgbench's built-in scripts, and the ciphercost workload that does the same."""


ENGINES = {
    "postgres": "postgresql",
    "pg": "postgresql",
    "sqlcipher": "sqlite",
}
"""Other names of engines, as tools and tables use them."""
NO_TARGETS = ("null", "url")
"""Engines that measure ciphercost itself, or need more than a name."""
FIRST_LAYERS: tuple[Layer, ...] = ("transit", "rest", "column")


SEVERAL = {
    "database": ("mysql", "mariadb", "postgresql"),
    "mysql or mariadb": ("mysql", "mariadb"),
    "redis or valkey": ("redis", "valkey"),
}
"""Engines that a tool can't tell apart."""
ANY, OWN_SITE = "SERVER", "url"
"""Instead of an engine's name: unknown, or the user's own web server."""


def engine_of(cell: Cell) -> str:
    """The engine that a cell's figures name: the tool, the files' names, or a factor (`dbms=MySQL 8.0`); empty: none."""
    names: list[str]
    stated = cell.imported.server if cell.imported else ""
    for text in (stated, cell.engine, *cell.factors.values()):
        if text in SEVERAL:
            continue
        names = [text.lower(), *re.findall(r"[a-z]+", text.lower())]
        for word in names:
            if (name := ENGINES.get(word, word)) in engines.names() and name not in NO_TARGETS:
                return name
    return ""


def target(cell: Cell) -> tuple[str, str]:
    """(engine, mechanism) of a run that would measure this cell. The engine has this mechanism.

    ANY if the figures don't tell which server it was, and the mechanism doesn't either.
    """
    mechanism = mechanisms.find(cell.mechanism)
    engine = engine_of(cell)
    if not engine and cell.engine == "web" and (mechanism is None or mechanism.name == "tls"):
        return OWN_SITE, "tls"
    if not engine and mechanism is not None:
        # The only server that has the mechanism, or its family's first.
        fits = [name for name in engines.names() if name not in NO_TARGETS and mechanism.serves(engines.get(name))]
        if fits and (mechanism.layer != "transit" or len(fits) == 1):
            engine = next((name for name in ("postgresql", "mysql") if name in fits), fits[0])
    if not engine:
        return ANY, mechanism.name if mechanism is not None else "tls"
    if mechanism is not None and mechanism.serves(engines.get(engine)):
        return engine, mechanism.name
    layers = (mechanism.layer, *FIRST_LAYERS) if mechanism is not None else FIRST_LAYERS
    has = [name for layer in layers for name in mechanisms.of(engines.get(engine), layer)]
    return engine, has[0] if has else "tls"


def among(cell: Cell) -> tuple[str, ...]:
    """The engines that ANY may be."""
    return SEVERAL.get((cell.imported.server if cell.imported else "") or cell.engine, ()) or SEVERAL.get(
        cell.engine, ()
    )


def real_answer(result: Result) -> str:
    """The command that measures the imported cells properly."""
    targets = {f"{engine}:{mechanism}": cell for cell in result.cells for engine, mechanism in [target(cell)]}
    words = ["ciphercost run", *targets]
    cell = result.cells[-1]
    if f"{OWN_SITE}:tls" in targets:
        return "ciphercost run url:tls --url http://YOUR-SITE/ --url https://YOUR-SITE/"
    if len(targets) == 1 and (workload := WORKLOADS.get(cell.workload)):
        words += ["--workload", workload, *(["--clients", str(cell.clients)] if cell.clients else [])]
        words += ["--set", f"scale={cell.factors['scale']}"] if workload == "tpcb" and "scale" in cell.factors else []
    if any(name.startswith(f"{ANY}:") for name in targets):
        known = list(dict.fromkeys(name for cell in result.cells for name in among(cell)))
        which = " or ".join([", ".join(known[:-1]), known[-1]]) if known else "`ciphercost list engines` names them"
        return f"{' '.join(words)}\n  (SERVER: yours, which these files don't name:\n  {which})"
    return " ".join(words)
