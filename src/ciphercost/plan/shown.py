"""Which of a cell's factors its workload can't show, so that "no difference" is no answer about them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.load import workloads
from ciphercost.mechanisms import Acts, Factor
from ciphercost.model.constrained_types import EARLY
from ciphercost.plan.planned import PlannedCell

WHEN: dict[Acts, str] = {
    "connection": "acts when a connection opens",
    "handshake": "acts mostly when a connection opens",
    "write": "acts when data is written",
    "start": "acts before the load, when the data is opened",
}
CODE = "factor-not-shown"
"""Code of the warning."""


def not_shown(planned: PlannedCell) -> Iterator[str]:
    """A line for each factor that the cell asks for and that its workload can't show, or hardly: when it acts, and what to use instead."""
    for factor in planned.mechanism.factors:
        asked = factor.name in {*planned.spec.factors, *planned.spec.versus}
        if asked and not _shows(planned, factor) and planned.factors.get(factor.name) != EARLY:
            yield f"{factor.name} {WHEN[factor.acts]}{_once(planned, factor)}; {_instead(planned, factor)}"


def _shows(planned: PlannedCell, factor: Factor) -> bool:
    if factor.acts in ("connection", "handshake"):
        # A storm's own figures are those of new connections.
        return planned.opens or planned.storm is not None
    if factor.acts == "write":
        return not planned.program.read_only
    return factor.acts != "start"


def _once(planned: PlannedCell, factor: Factor) -> str:
    """What the database does instead of what a connection does, if it is embedded."""
    return ", i.e. a database file" if factor.acts == "connection" and planned.engine.embedded else ""


def _instead(planned: PlannedCell, factor: Factor) -> str:
    name = planned.spec.script_names or planned.program.name
    language = planned.engine.language
    if factor.acts == "start":
        return f"no workload shows it, and {name} does not; `start_time` in result.json has it"
    if factor.acts == "write":
        fits = workloads.fitting(lambda workload: not workload.read_only and language in workload.languages)
        return (
            f"{name} only reads, so it can't show it: use --workload {fits.replace(', ', ' or ', 1).partition(',')[0]}"
        )
    only = "its records are in every operation" if factor.acts == "handshake" else ""
    kept = f"{name} keeps its connections, so it {'hardly shows it' if only else 'does not show it'}"
    return f"{kept}{f' ({only})' if only else ''}: use --workload connect or --per-request"
