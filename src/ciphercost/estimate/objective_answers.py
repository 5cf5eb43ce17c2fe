"""How many requests of an arm's slices are slower than an objective allows, those without an answer included. Pure.

A rate keeps p99 ≤ 5 ms exactly if at most 1 % of the requests take longer than 5 ms. The share is used, and not the quantile, because its mean
does not depend on how many requests there are; the quantile of few requests in a queue is too low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ciphercost.estimate.histogram import above, quantiles
from ciphercost.model import checked
from ciphercost.model.errors import UsageError
from ciphercost.model.histogram import Histogram, decode, merge
from ciphercost.model.slices import SliceRecord

STEADY = 4.0
"""Standard deviations by which the number of answers may fall behind a Poisson process's requests before the rest counts as unanswered."""


def latency(records: Sequence[SliceRecord], share: float) -> float:
    """The quantile, seconds, of the requests of an arm's slices; infinite if it lies among those without an answer.

    Raises UsageError if a histogram is damaged.
    """
    whole, lost = answers(records)
    done = whole.total if whole else 0
    position = share * (done + lost)
    if whole is None or position > done:
        return math.inf
    return float(quantiles(whole, [position / done])[0]) / 1e9


def slow(records: Sequence[SliceRecord], limits: Sequence[float]) -> tuple[list[float], float]:
    """(requests slower than each limit in seconds, all requests) of an arm's slices. Raises UsageError if a histogram is damaged."""
    whole, lost = answers(records)
    if whole is None:
        return [max(lost, 1.0)] * len(limits), max(lost, 1.0)
    return [above(whole, limit * 1e9) + lost for limit in limits], whole.total + lost


def answers(records: Sequence[SliceRecord]) -> tuple[Histogram | None, float]:
    """Latencies of an arm's slices, None without any, and the number of requests without an answer.

    Failed operations have no answer. Neither have the requests by which the answers fall behind the rate, beyond what chance explains.
    """
    due, done, failed = 0.0, 0, 0
    decoded: list[Histogram] = []
    for record in records:
        agent = record.agent
        assert agent is not None
        due += record.rate * agent.seconds
        done += agent.operations
        failed += agent.errors
        if agent.operations:
            decoded.append(_decoded(record, agent.histogram))
    lost = failed + max(0.0, due - done - failed - STEADY * math.sqrt(due))
    return (merge(decoded) if decoded else None), lost


def _decoded(record: SliceRecord, text: str) -> Histogram:
    try:
        histogram = decode(text)
    except ValueError as error:
        raise UsageError(f"{checked.place(record)}: {error}") from None
    if record.agent is not None and histogram.total != record.agent.operations:
        raise UsageError(
            f"{checked.place(record)}, position {record.position}: the histogram holds {histogram.total} latencies, "
            f"but the slice has {record.agent.operations} operations"
        )
    return histogram
