"""Reads oha's summary, as text or as JSON (`-j`, `--output-format json`). Pure.

oha prints neither its address nor its options, so arm and rate come from elsewhere. Times of the JSON are in seconds.
"""

from __future__ import annotations

import re

import msgspec

from ciphercost.importers.formats import Lines, _hey, digits, line_of
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, has_json, rows
from ciphercost.model.imported import Reading

UNIT = r"(?:(?:10 )?sec|(?:10 )?min|hr|ms|us|ns)"
MARK = re.compile(
    rf"^[^\S\n]*(?:Success rate:\s+[\d.]+\s?%?\s*$|(?:Slowest|Fastest|Average):\s+[\d.]+ {UNIT}\s*$|\d+\.\d+% in [\d.]+ {UNIT}\s*$)",
    re.MULTILINE,
)
JSON = re.compile(r'^[^\S\n]*\{\s*"summary"\s*:\s*\{[^{}]*"requestsPerSec"', re.MULTILINE)
OWN = _hey.OWN
DATA = JSON_BEGIN
AGAIN = "run oha with -j (or --output-format json) again"


class Summary(msgspec.Struct, rename="camel"):
    requests_per_sec: float
    total: float = 0.0
    average: float | None = None


class Document(msgspec.Struct, rename="camel"):
    summary: Summary
    latency_percentiles: dict[str, float | None] = {}
    status_code_distribution: dict[str, int] = {}
    error_distribution: dict[str, int] = {}


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run."""
    every = rows(lines, "oha", complete=JSON_END)
    if not has_json(every):
        return _hey.runs("oha", every)
    return [of_document(document, line) for line, document in documents(every, "oha", AGAIN, Document, "summary")]


def of_document(document: Document, line: int) -> Reading:
    summary = document.summary
    times = {"mean": summary.average, **{name: document.latency_percentiles.get(name) for name in ("p50", "p99")}}
    return _hey.reading(
        "oha",
        line,
        {"throughput": summary.requests_per_sec}
        | {f"latency_{name}": value * 1e3 for name, value in times.items() if value is not None},
        {int(status): count for status, count in document.status_code_distribution.items() if status.isdigit()},
        document.error_distribution,
        summary.total,
        digits(repr(summary.requests_per_sec)),
    )
