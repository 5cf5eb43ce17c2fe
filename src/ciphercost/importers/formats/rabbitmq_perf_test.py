"""Reads RabbitMQ PerfTest's summary, which is the end of its output in its default and its compact form. Pure.

A message counts when a consumer received it, or, in a run without consumers, when it was sent.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, differ, digits, line_of, number
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

NAME = r"(?:id: [^,]*, )?"
RATE = re.compile(rf"{NAME}(sending|receiving) rate avg: {NUMBER} msg/s\s*")
LATENCY = re.compile(
    rf"{NAME}(consumer|confirm) latency min/median/75th/95th/99th "
    r"(\d+)/(\d+)/(\d+)/(\d+)/(\d+) (ms|µs)\s*"
)
TIME = re.compile(rf"(?:id: [^,]*, time:? {NUMBER} ?s,.*|{NUMBER}s(?:\s+{NUMBER} msg/s)+.*)")
"""A line of each second."""
REFUSED = re.compile(r".*\b(nacked|returned): ([1-9]\d*|0?\.\d+) msg/s.*")
MARK = re.compile(rf"^{NAME}(?:sending|receiving) rate avg: \S+ msg/s\s*$|^id: [^,]*, time:? \S+ ?s, ", re.MULTILINE)
APART = 0.05
"""Relative difference between sent and received above which the queue grew or shrank."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with its summary."""
    runs: list[Run] = []
    run = Run()
    for line in lines:
        if lines.cut and not LATENCY.fullmatch(line):
            break  # a last line without its end may lack digits
        if run.rates and not (RATE.fullmatch(line) or LATENCY.fullmatch(line)):
            runs.append(run)
            run = Run()
        run.take(line, lines.number)
    if run.began:
        runs.append(run)
    return [each.reading(lines.number) for each in runs]


class Run:
    """One run, while it is read."""

    def __init__(self) -> None:
        self.began = 0
        self.seconds = 0.0
        self.rates: dict[str, str] = {}
        self.latencies: dict[str, dict[str, float]] = {}
        self.refused: set[str] = set()

    def take(self, line: str, number_: int) -> None:
        if match := TIME.fullmatch(line):
            self.seconds = number(match[1] or match[2])
            if match := REFUSED.fullmatch(line):
                self.refused.add(match[1])
        elif match := RATE.fullmatch(line):
            self.rates[match[1]] = match[2]
        elif match := LATENCY.fullmatch(line):
            unit = 1.0 if match[7] == "ms" else 1e-3
            self.latencies[match[1]] = {"latency_p50": int(match[3]) * unit, "latency_p99": int(match[6]) * unit}
        else:
            return
        self.began = self.began or number_

    def reading(self, end: int) -> Reading:
        """Return the run. Raises Bad if its summary is missing, or no message went through."""
        if missing := [name for name in ("sending", "receiving") if name not in self.rates]:
            raise Bad(
                end,
                f"the run that begins on line {self.began or 1} has no line '{missing[0]} rate avg'; import PerfTest's whole output",
            )
        sent, received = (number(self.rates[name]) for name in ("sending", "receiving"))
        if not sent and not received:
            raise Bad(self.began, "no message was sent or received, so there is nothing to compare")
        consumed = received > 0
        rate = self.rates["receiving" if consumed else "sending"]
        latencies = self.latencies.get("consumer" if consumed else "confirm", {})
        notes = []
        if sent and received and differ(sent, received, APART):
            text = f"{sent:,.0f} messages were sent and {received:,.0f} received per second, so the queue's length changed during the run"
            notes.append(Warning_("queue-changed", text))
        if self.refused:
            notes.append(Warning_("errors", f"some messages were {' and '.join(sorted(self.refused))}"))
        if not any(latencies.values()):
            text = "the output has no latency, so only throughput is compared; "
            notes.append(Warning_("no-latency", text + "PerfTest prints that of consumers and of confirms (--confirm)"))
        return Reading(
            tool="rabbitmq-perf-test",
            line=self.began,
            engine="rabbitmq",
            workload="publish and consume" if sent and received else "consume" if consumed else "publish",
            operations=round(number(rate) * self.seconds),
            seconds=self.seconds,
            digits=digits(rate),
            figures={"throughput": number(rate)} | above_zero(latencies),
            notes=notes,
        )
