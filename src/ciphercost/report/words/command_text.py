"""Text on a cell whose load a command of the user's made. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.estimate.notation import number
from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS

NOT_SEEN = "NOT PROVEN: nothing shows what the commands send; measured with --unproven"


def load(cell: Cell) -> Iterator[str]:
    """How long the tool took to start in each slice, and in which figures that is; nothing for a load that agents made."""
    arms = [cell.arms.get(arm, {}) for arm in ARMS]
    if not all("process_s" in arm for arm in arms):
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
