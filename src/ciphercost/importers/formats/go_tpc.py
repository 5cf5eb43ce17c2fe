"""Reads go-tpc's final summary of TPC-C and TPC-H (`--output plain`). Pure.

TPC-C prints rates per minute (TPM). A run's throughput is the sum of all kinds of transactions, its latency their mean by count. TPC-H
prints the mean time of each query, so each query is a workload with latency only.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import (
    NUMBER,
    Bad,
    Lines,
    above_zero,
    differ,
    digits,
    errors_among,
    line_of,
    number,
)
from ciphercost.importers.formats._whole import rows
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(r"^[^\S\n]*(?:\[(?:Current|Summary)\] (?:\w+ +- |Q\d+: [\d.]+s)|tpmC: [\d.]+, )", re.MULTILINE)
OWN = re.compile(r"\[(?:Current|Summary)\] .*|tpmC: .*|Finished:?.*|Got signal.*|begin to .*|\d{4}/\d\d/\d\d .*")
KIND = re.compile(
    rf"\s*\[Summary\] (\w+) +- Takes\(s\): {NUMBER}, Count: (\d+), TPM: {NUMBER}, Sum\(ms\): {NUMBER}, .*"
)
QUERY = re.compile(rf"\s*\[Summary\] (Q\d+): {NUMBER}s\s*")
TOTAL = re.compile(rf"\s*tpmC: {NUMBER}, (?:tpmTotal: {NUMBER}, )?efficiency: {NUMBER}%\s*")
FAILED, NEW_ORDER = "_ERR", "NEW_ORDER"
TOLERANCE = 0.02


class Kind:
    """One kind of transaction, as its line of the summary gives it."""

    def __init__(self, match: re.Match[str]) -> None:
        self.seconds, self.count, self.rate = number(match[2]), int(match[3]), number(match[4]) / 60
        self.digits = digits(match[4])
        self.sum = number(match[5])


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run of TPC-C, which ends with `tpmC`, and per query of TPC-H."""
    every = rows(lines, "go-tpc", complete=TOTAL)
    readings: list[Reading] = []
    kinds: dict[str, Kind] = {}
    began = 0
    for at, row in enumerate(every, 1):
        if match := KIND.fullmatch(row):
            if match[1] in kinds:
                raise Bad(
                    at, f"the summary that begins on line {began} has {match[1]} twice; put each run into its own file"
                )
            began = began or at
            kinds[match[1]] = Kind(match)
        elif kinds and (match := TOTAL.fullmatch(row)):
            readings.append(reading(kinds, began, number(match[1]) / 60))
            kinds, began = {}, 0
        elif match := QUERY.fullmatch(row):
            readings.append(of_query(match, at))
    if kinds:
        raise Bad(
            len(every),
            f"the summary that begins on line {began} has no line 'tpmC' at its end; import go-tpc's whole output",
        )
    if not readings:
        raise Bad(
            len(every), "the output has no line '[Summary] …', which has the result; import go-tpc's whole output"
        )
    return readings


def of_query(match: re.Match[str], line: int) -> Reading:
    if not number(match[2]) > 0:
        raise Bad(line, f"{match[1]} took less than the hundredth of a second that go-tpc prints; use a larger scale")
    return Reading(
        tool="go-tpc",
        line=line,
        engine="database",
        workload=f"tpch {match[1]}",
        digits=digits(match[2]),
        figures={"latency_mean": number(match[2]) * 1e3},
    )


def reading(kinds: dict[str, Kind], line: int, orders: float) -> Reading:
    """Return one run. `orders`: new orders per second that its last line states."""
    good = [kind for name, kind in kinds.items() if not name.endswith(FAILED) and kind.count]
    wrong = sum(kind.count for name, kind in kinds.items() if name.endswith(FAILED))
    done = sum(kind.count for kind in good)
    if not done:
        raise Bad(line, "go-tpc completed no transaction, so there is nothing to compare")
    rate = sum(kind.rate for kind in good)
    notes = errors_among(line, wrong, done + wrong, "transactions failed")
    new_orders = kinds[NEW_ORDER].rate if NEW_ORDER in kinds else 0.0
    if differ(new_orders, orders, TOLERANCE):
        text = f"{new_orders * 60:,.1f} new orders per minute, but tpmC is {orders * 60:,.1f}"
        notes.append(Warning_("contradiction", f"{text}; a figure is wrong or from another run"))
    # The histogram's mean is rounded to its buckets; the sum is exact.
    figures = {"throughput": rate, "latency_mean": sum(kind.sum for kind in good) / done}
    return Reading(
        tool="go-tpc",
        line=line,
        engine="database",
        workload="tpcc",
        operations=done,
        errors=wrong,
        seconds=max(kind.seconds for kind in good),
        digits=min(kind.digits for kind in good),
        figures=above_zero(figures),
        notes=notes,
    )
