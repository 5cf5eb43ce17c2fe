"""Reads the output of `nats bench`: of natscli from 0.2 on (`bench pub`, `bench js …`), and of before. Pure.

One run is one line `NATS … stats`, or with several clients `… aggregated stats`.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import Bad, Lines, digits, line_of, set_rate, with_thousands
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

FIGURE = r"(\d[\d,]*(?:\.\d+)?)"
RATE = rf"{FIGURE} msgs/sec ~ \S+ \w+/sec"
STARTING = re.compile(r"(?:\d\d:\d\d:\d\d )?Starting (.+?) benchmark \[(.*)\]\s*")
STATS = re.compile(rf"NATS (.+?)( aggregated)? stats: {RATE}(.*)")
OLD = re.compile(rf"(Pub/Sub|Pub|Sub|Request|Reply|JS pub/sub) stats: {RATE}(.*)")
LATENCIES = re.compile(r"(?:latencies per operation|avg latencies) .*")
ONE_LATENCY = re.compile(rf"\b(avg|P50|P99)(?:: | ){FIGURE}us\b")
BARE_LATENCY = re.compile(rf"\s*~ {FIGURE}us\s*")
"""natscli 0.2's mean."""
MARK = re.compile(
    rf"^[^\S\n]*(?:{STATS.pattern}|{OLD.pattern}|(?:\d\d:\d\d:\d\d )?Starting .* benchmark \[[^\]]*msgs?=)",
    re.MULTILINE,
)
FIGURES = {"avg": "latency_mean", "P50": "latency_p50", "P99": "latency_p99"}
BUFFERED = "Core NATS publisher"
"""It waits for nothing: what it sends goes into the client's buffer."""
WAITS = re.compile(r"\bsynchronous|request|KV ", re.IGNORECASE)
"""Loads whose clients wait for each answer. Elsewhere the time of a message, which 0.2 and 0.3 print, is one by the rate."""
EVERY_ONE = ("Core NATS subscriber", "JetStream ordered ephemeral consumer")
"""Each client of these receives all messages."""


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run."""
    readings: list[Reading] = []
    began, settings = 0, {}
    for line in lines:
        text = line.strip()
        if match := STARTING.fullmatch(text):
            _finished(began, lines.number)
            began = lines.number
            settings = dict(_pair(word) for word in match[2].split(", "))
        elif lines.cut:
            break  # a last line without its end may lack digits
        elif match := STATS.fullmatch(text):
            readings.append(reading(match[1], match[3], match[4], settings, began or lines.number))
            began = 0
        elif match := OLD.fullmatch(text):
            # Below the sum of a run with both ends stand its publishers and its subscribers.
            if began or not readings:
                readings.append(reading(match[1], match[2], match[3], settings, began or lines.number))
                began = 0
        elif LATENCIES.fullmatch(text) and readings:
            _add(readings[-1], text)
    _finished(began, lines.number)
    return readings


def _finished(began: int, line: int) -> None:
    """Raise Bad if a run that began has no result."""
    if began:
        raise Bad(line, f"the run that begins on line {began} has no line 'stats: … msgs/sec'; import the whole output")


def _pair(word: str) -> tuple[str, str]:
    """(name, value) of `msgs=1,000`. Values hold no comma with a space."""
    name, _, value = word.partition("=")
    return name, value


def _count(text: str) -> int:
    return int(with_thousands(text)) if re.fullmatch(FIGURE, text) else 0


def _add(run: Reading, text: str) -> None:
    """Add the latencies in a text. Changes the run."""
    for name, value in ONE_LATENCY.findall(text) if WAITS.search(run.workload) else ():
        if with_thousands(value) > 0:
            run.figures[FIGURES[name]] = with_thousands(value) / 1e3


def reading(title: str, rate: str, rest: str, settings: dict[str, str], line: int) -> Reading:
    """Return one run. Raises Bad if no message was counted."""
    throughput = with_thousands(rate)
    if not throughput > 0:
        raise Bad(line, "no message was counted, so there is nothing to compare")
    clients = _count(settings.get("clients", "")) or sum(
        _count(settings.get(name, "0")) for name in ("pubs", "subs", "requesters", "repliers")
    )
    operations = _count(settings.get("msgs", "")) * (clients if title in EVERY_ONE else 1)
    size = settings.get("msg-size") or settings.get("msgsize") or ""
    run = Reading(
        tool="nats bench",
        line=line,
        engine="nats",
        workload=title,
        clients=clients,
        factors={"message size": size} if size else {},
        operations=operations,
        seconds=operations / throughput,
        digits=digits(rate),
        figures={"throughput": throughput},
    )
    if title == BUFFERED:
        text = "a publisher of Core NATS waits for no answer, so its throughput is what was sent, and it has no latency"
        run.notes.append(Warning_("not-confirmed", text))
    if WAITS.search(title) and (match := BARE_LATENCY.fullmatch(rest)):
        run.figures["latency_mean"] = with_thousands(match[1]) / 1e3
    _add(run, rest)
    if settings.get("sleep", "0s") != "0s":
        set_rate(run, f"one message each {settings['sleep']} and client")
    return run
