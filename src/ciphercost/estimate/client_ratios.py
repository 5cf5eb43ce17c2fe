"""What one cell's client costs compared with another cell's, arm by arm. Pure."""

from __future__ import annotations

import math

import numpy as np

from ciphercost.estimate import statistics
from ciphercost.estimate.tally import Arms
from ciphercost.estimate.to_estimate import to_estimate
from ciphercost.model.result import Estimate
from ciphercost.model.spec import ARMS, Arm, Mode

CLIENT_FIGURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "throughput": (("work",), ("seconds",)),
    "server_cpu": (("server_cpu_ns",), ("work",)),
    "client_cpu": (("client_user_ns", "client_system_ns"), ("work",)),
}
"""By figure: the fields whose sums are divided, numerator and denominator."""


def client_ratios(mine: Arms, reference: Arms, mode: Mode, most_nu: int | None) -> dict[str, Estimate]:
    """Each figure ÷ the reference's: `throughput_plain`, `server_cpu_plain`, `client_cpu_plain`, ….

    Pairs are the sessions that both share (full mode), or their blocks in the order they ran (quick mode).
    """
    ratios = {}
    for arm in ARMS:
        for name, (above, below) in CLIENT_FIGURES.items():
            client_logs, other = (_by_session(blocks, arm, above, below, mode) for blocks in (mine, reference))
            pairs = [
                pair
                for session in client_logs
                for pair in zip(client_logs[session], other.get(session, ()), strict=False)
            ]
            values = np.array([a - b for a, b in pairs if math.isfinite(a) and math.isfinite(b)])
            if len(values) < 2:
                continue
            interval = (
                statistics.session_interval(values, most_nu=most_nu)
                if mode == "full"
                else statistics.block_interval(values)
            )
            ratios[f"{name}_{arm}"] = to_estimate(interval, mode, "client ÷ reference")
    return ratios


def _by_session(
    blocks: Arms, arm: Arm, above: tuple[str, ...], below: tuple[str, ...], mode: Mode
) -> dict[int, list[float]]:
    """By session: log of the sums' ratio in one arm, one value per session (full mode) or one per block."""
    over, under = blocks.by_block(arm, *above), blocks.by_block(arm, *below)
    logs: dict[int, list[float]] = {}
    for session in dict.fromkeys(blocks.sessions.tolist()):
        here = blocks.sessions == session
        a, b = (
            (over[here], under[here])
            if mode == "quick"
            else (over[here].sum(keepdims=True), under[here].sum(keepdims=True))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            logs[int(session)] = [float(value) for value in np.log(a / b)]
    return logs
