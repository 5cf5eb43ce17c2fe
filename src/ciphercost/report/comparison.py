"""How the costs of runs differ, cell by cell, with intervals; what else differs; and a gate on a budget. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ciphercost.host.procfs import alike
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Result
from ciphercost.report import compare_units, disturbed
from ciphercost.report.compare_pair import compared_pair, corrected
from ciphercost.report.comparison_types import Alone, Comparison, Differences, Gate, Pair, Run, Side
from ciphercost.report.cost_gate import gate, gated_runs
from ciphercost.report.match_cells import changes, match, without_partner

MACHINE = (
    "cpu",
    "cores",
    "aes",
    "vaes",
    "virtual",
    "kernel",
    "governor",
    "clocksource",
    "memory",
    "congestion_control",
)
"""Keys of the result's `machine` that identify it."""
FORMAT = 1
DONE, FAILED, OVER, UNRESOLVED = 0, 1, 3, 4
"""Exit statuses. FAILED: a cell has no number; OVER: a budget is exceeded; UNRESOLVED: --strict needs a verdict and there is none."""


def compare(
    runs: Sequence[Run], *, limit: float | None = None, strict: bool = False, margin: float | None = None
) -> Comparison:
    """Compare all runs with the first, the reference. With one run, only check `limit`.

    `limit`: the highest acceptable cost (0.1: 10 %). `margin`: as in a run; None: the largest of the runs' own margins.
    Raises UsageError for a single run without a limit, and if a run is given twice.
    """
    if len(runs) < 2 and limit is None:
        raise UsageError("compare needs two runs, or one run with --fail-over, e.g. --fail-over 10%")
    if twice := [
        run.name for number, run in enumerate(runs) if run.result.id in [earlier.result.id for earlier in runs[:number]]
    ]:
        raise UsageError(f"{twice[0]} is given twice; give different runs")
    specs = [run.result.spec for run in runs]
    margin = margin if margin is not None else max((spec.margin for spec in specs if spec), default=0.01)
    pairs, alone = [], []
    for number, run in enumerate(runs[1:], start=1):
        matched, left = match(runs[0].result.cells, run.result.cells)
        pairs += [compared_pair(runs[0], run, number, numbers, margin) for numbers in matched]
        alone += list(without_partner(runs[0].result.cells, run.result.cells, number, left))
    pairs = corrected(pairs)
    gates = (
        []
        if limit is None
        else [cell_gate for number in gated_runs(runs) for cell_gate in gate(runs[number].result, number, limit)]
    )
    return Comparison(
        format=FORMAT,
        runs=[
            Side(
                run.name,
                run.result.id,
                run.result.started,
                _mode(run.result),
                len(run.result.cells),
                run.result.command,
            )
            for run in runs
        ],
        margin=margin,
        differences=[_differences(runs[0].result, run.result, number) for number, run in enumerate(runs[1:], start=1)],
        pairs=pairs,
        alone=alone,
        limit=limit,
        gates=gates,
        strict=strict,
        exit_status=status(pairs, alone, gates, limit, strict=strict),
        disturbed=list(_disturbed(runs)),
        units=[
            change
            for number, run in enumerate(runs[1:], start=1)
            for change in compare_units.changes(runs[0].result, run.result, number)
        ],
    )


def _disturbed(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        if warning := disturbed.warning(run.result.cells):
            yield f"{run.name}: {warning}" if len(runs) > 1 else warning


def status(
    pairs: Iterable[Pair], alone: Iterable[Alone], gates: Iterable[Gate], limit: float | None, *, strict: bool
) -> int:
    """The exit status. Without a gate and without `strict` it is always DONE."""
    outcomes = {gate.outcome for gate in gates}
    if "failed" in outcomes:
        return FAILED
    if "fail" in outcomes:
        return OVER
    if not strict:
        return DONE
    if limit is None:
        open_ = any(pair.verdict in (None, "unresolved") for pair in pairs) or any(True for _ in alone)
        return UNRESOLVED if open_ else DONE
    return UNRESOLVED if "unresolved" in outcomes else DONE


def _mode(result: Result) -> str:
    return result.cells[0].mode if result.cells else "full"


def _differences(reference: Result, other: Result, run: int) -> Differences:
    names = dict.fromkeys([*MACHINE, *reference.machine, *other.machine])
    tools = [{f"tool {name}": value for name, value in result.tool.items()} for result in (reference, other)]
    specs = [
        {"time of a cell, s": f"{spec.time:g}", "sessions": str(spec.sessions)} if spec else {}
        for spec in (reference.spec, other.spec)
    ]
    machine = [
        change
        for change in changes(reference.machine, other.machine, names)
        if not alike(change.name, reference.machine.get(change.name), other.machine.get(change.name))
    ]
    return Differences(run, machine, changes(*tools) + changes(*specs))
