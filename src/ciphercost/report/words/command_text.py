"""Text on a cell whose load a command of the user's made. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.estimate.notation import interval, number, worded
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import ARMS

NOT_SEEN = "NOT PROVEN: nothing shows what the commands send; measured with --unproven"


def load(cell: Cell) -> Iterator[str]:
    """How long the tool took to start in each slice, and in which figures that is; nothing for a load that agents made."""
    arms = [cell.arms.get(arm, {}) for arm in ARMS]
    if not all("process_s" in arm for arm in arms):
        return
    if all("operation" in arm for arm in arms):
        yield from operation(cell)
        return
    tool = cell.client or "the command"
    if any(arm["whole_process"] for arm in arms):
        seconds = " and ".join(f"{number(arm['process_s'])} s ({name})" for name, arm in zip(ARMS, arms, strict=True))
        yield (
            f"load by {tool}: it reports no time of its own, so its start-up is in every figure and dilutes the cost; a process took {seconds}"
        )
        return
    seconds = " and ".join(f"{number(arm['startup_s'])} s ({name})" for name, arm in zip(ARMS, arms, strict=True))
    yield (
        f"load by {tool}: start-up took {seconds} of each slice; its own clock leaves that out of rates and latencies, CPU time contains it"
    )


def operation(cell: Cell) -> Iterator[str]:
    """What one execution of an operator's task took, by size, and what it did to the traffic meanwhile."""
    arms = {arm: cell.arms[arm] for arm in ARMS}
    what = arms["plain"]["operation"]
    by = f" by {arms['plain']['tool']}" if arms["plain"]["tool"] else ""
    seconds = " and ".join(f"{number(arm['process_s'])} s ({name})" for name, arm in arms.items())
    yield f"{what}{by}: one took {seconds} on average"
    if all(arm.get("output_bytes") for arm in arms.values()):
        sizes = " and ".join(f"{number(arm['output_bytes'] / 1e6)} MB ({name})" for name, arm in arms.items())
        each = [f"{number(arm['process_s'] / arm['output_bytes'] * 1e9)} s ({name})" for name, arm in arms.items()]
        yield f"it made {sizes}: {' and '.join(each)} per GB"
    for name, arm in arms.items():
        if traffic := arm.get("traffic"):
            estimate = Estimate(traffic["ratio"], traffic["low"], traffic["high"])
            yield (
                f"traffic meanwhile ({name}): {worded(estimate, 'more', 'fewer')} operations/s "
                f"(95 % CI {interval(estimate, 'more', 'fewer')}): {number(traffic['quiet'])} → {number(traffic['meanwhile'])} /s"
            )
