"""Capacity at an objective, as result.json holds it. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.estimate import Estimate


class AtRate(msgspec.Struct, frozen=True):
    """What one arm did at one rate of the open loop."""

    latency_ms: float | None
    """The objective's quantile. None: the arm did not keep up with the rate."""
    p50_ms: float | None
    """Median of the answered requests. None: there are none."""
    done_per_s: float
    """Answered operations per second."""
    requests: int
    """Answered requests, over all sessions."""


class LoadPoint(msgspec.Struct, frozen=True):
    """Both arms at one rate: a point of the load–latency curve."""

    rate: float
    """Requests per second."""
    plain: AtRate
    encrypted: AtRate


class ObjectiveArm(msgspec.Struct, frozen=True, omit_defaults=True):
    """One arm's capacity at an objective: the highest rate that keeps it, operations per second."""

    kind: Literal["within", "below", "above", "unknown"]
    """within: between rates that were tried. below: under the lowest, which is `high`. above: over the highest, which is `low`. unknown:
    not bracketed."""
    rate: float | None = None
    """Without an interval of its own: a machine that gets slower and faster moves both arms' capacities, and not their ratio."""
    low: float | None = None
    high: float | None = None
    """One end, if the capacity is known from one side."""
    fastest_ms: float | None = None
    """below: the objective's quantile at the lowest rate. None: the arm did not keep up with that."""


class AllRequests(msgspec.Struct, frozen=True):
    """Slow requests of all blocks below both capacities, ÷ the share that the objective allows."""

    plain: float
    encrypted: float
    low: float
    """95 % interval of encrypted − plain, of what the arms' own curves do not explain."""
    high: float
    blocks: int
    agree: bool
    """Whether the arms may be alike in that, and surely don't differ much. Without that there is no ratio."""
    late_plain: float = 0.0
    """Requests so late that hardly a queue explains them, ÷ the share that the objective allows."""
    late_encrypted: float = 0.0
    stalled_plain: int = 0
    """Blocks in which these are more than a tenth of what the objective allows."""
    stalled_encrypted: int = 0
    watched_s: float = 0.0
    """Seconds of each arm that show such requests. 0: a result of an older version."""


class ObjectiveCapacity(msgspec.Struct, frozen=True, omit_defaults=True):
    """What encryption costs in rate, at a latency that must be kept."""

    objective: str
    """`p99=5ms`."""
    arms: dict[str, ObjectiveArm]
    curve: list[LoadPoint]
    ratio: Estimate | None = None
    """Encrypted ÷ plain capacity. None: at least one of them is not known; then there may be a bound."""
    at_most: float | None = None
    """The ratio is below this, because the encrypted arm keeps no rate that was tried, or the plain arm keeps all of them."""
    at_least: float | None = None
    reason: str = ""
    """Why there is no ratio."""
    all_requests: AllRequests | None = None
    """None: too few blocks, or a result of an older version."""
