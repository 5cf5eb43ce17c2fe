"""merge: answers of several agents to the same slice, as if one agent had made all of the load. Pure.

Counts, CPU time and bytes add up, histograms cell by cell. No percentile is ever averaged.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence

import msgspec

from ciphercost.model import histogram
from ciphercost.model.slices import AgentSlice

SUMMED = (
    "operations", "errors", "rows", "cpu_user_ns", "cpu_system_ns", "bytes_sent", "bytes_received", "segments_sent",
    "segments_received", "connects", "resumed", "early", "late", "threads", "work", "sealed", "opened", "retries", "jit_ms", "gc_ms",
    "process_cpu_ns",
)  # fmt: skip
ALL = operator.attrgetter(*SUMMED)
CHECKSUMS = 2**64
KINDS = 16
"""Kinds of errors that an answer names; see PROTOCOL.md."""


def merge(answers: Sequence[AgentSlice]) -> AgentSlice:
    """One answer for all of them. Raises ValueError for none, for different arms, or for histograms of different layouts.

    `seconds` is the mean, because every agent counted the same window, up to what `start_skew` reports. `checksum` is the sum
    modulo 2⁶⁴, as each agent's is over its rows: two arms whose agents ran the same operations still have the same one.
    """
    if not answers:
        raise ValueError("no answers to merge")
    first = answers[0]
    if len(answers) == 1:
        return first
    if any(answer.arm != first.arm for answer in answers):
        raise ValueError("only answers of one arm can be merged")
    summed = dict(zip(SUMMED, map(sum, zip(*map(ALL, answers), strict=True)), strict=True))
    return msgspec.structs.replace(
        first,
        **summed,
        seconds=sum(answer.seconds for answer in answers) / len(answers),
        checksum=checksum([answer.checksum for answer in answers]),
        histogram=histogram.encode(histogram.decode_sum([answer.histogram for answer in answers])),
        first_error=next((answer.first_error for answer in answers if answer.first_error), ""),
        error_kinds=error_kinds([answer.error_kinds for answer in answers]),
        encrypted=all(answer.encrypted for answer in answers),
    )


def checksum(texts: Sequence[str]) -> str:
    """The sum of checksums modulo 2⁶⁴, in 16 hex digits; empty if an agent reports none."""
    if not all(texts):
        return ""
    return f"{sum(int(text, 16) for text in texts) % CHECKSUMS:016x}"


def error_kinds(texts: Sequence[str]) -> str:
    """Counts by kind, most frequent first, as one agent writes them."""
    counts: Counter[str] = Counter()
    for entry in " ".join(texts).split():
        kind, _, count = entry.partition("=")
        counts[kind] += int(count)
    others = counts.pop("other", 0)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    others += sum(count for _, count in ordered[KINDS:])
    shown = [*ordered[:KINDS], *([("other", others)] if others else [])]
    return " ".join(f"{kind}={count}" for kind, count in shown)


def deal(total: int, members: int) -> list[int]:
    """`total` connections or operations over members, as evenly as possible; the first ones get one more."""
    share, more = divmod(total, members)
    return [share + (number < more) for number in range(members)]
