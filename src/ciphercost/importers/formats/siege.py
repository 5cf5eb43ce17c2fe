"""Reads siege's summary, as text (up to 4.0) or as JSON (from 4.1 on). Pure.

siege prints times in seconds with two decimals, so most latencies are too coarse to be compared. Each request may wait (`delay`).
"""

from __future__ import annotations

import re

import msgspec

from ciphercost.importers.formats import NUMBER, Bad, Lines, above_zero, cut_off, digits, errors_among, line_of, number
from ciphercost.importers.formats._whole import JSON_BEGIN, JSON_END, documents, json_alone, rows
from ciphercost.model.imported import Reading

MARK = re.compile(r"^[^\S\n]*(?:Transactions:\s+\d+ hits\s*$|Transaction rate:\s+[\d.]+ trans/sec\s*$)", re.MULTILINE)
JSON = re.compile(r'^[^\S\n]*\{\s*"transactions"\s*:\s*\d+,\s*"availability"\s*:', re.MULTILINE)
DATA = JSON_BEGIN
OWN = re.compile(
    r"\*\* .*|The server is now under siege.*|Lifting the server siege.*|[A-Z][a-z ]+:\s+[\d.].*|HTTP/\S+ \d{3} .*"
)
FIELD = re.compile(rf"\s*([A-Z][a-z ]+):\s+{NUMBER}(?:\s.*)?")
NAMES = {
    "Transactions": "transactions",
    "Elapsed time": "elapsed_time",
    "Response time": "response_time",
    "Transaction rate": "transaction_rate",
    "Concurrency": "concurrency",
    "Successful transactions": "successful_transactions",
    "Failed transactions": "failed_transactions",
}
AGAIN = "run siege with --json again"


class Summary(msgspec.Struct):
    transactions: int
    transaction_rate: float
    elapsed_time: float = 0.0
    response_time: float = 0.0
    """Seconds."""
    successful_transactions: int | None = None
    """Answers with an error are transactions, too, but not successful ones."""
    failed_transactions: int = 0


def recognise(head: str) -> int:
    return line_of(MARK, head) or line_of(JSON, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run."""
    every = rows(lines, "siege", complete=JSON_END)
    if json_alone(every, MARK):
        return [
            reading(summary, line, 0) for line, summary in documents(every, "siege", AGAIN, Summary, "transaction_rate")
        ]
    readings: list[Reading] = []
    told: dict[str, float] = {}
    began = shown = 0

    def finish(end: int) -> None:
        nonlocal told
        if not {"transactions", "transaction_rate"} <= told.keys():
            raise Bad(
                end, f"the run that begins on line {began} has no line 'Transaction rate'; import siege's whole output"
            )
        summary = Summary(
            int(told["transactions"]),
            told["transaction_rate"],
            told.get("elapsed_time", 0.0),
            told.get("response_time", 0.0),
            int(told["successful_transactions"]) if "successful_transactions" in told else None,
            int(told.get("failed_transactions", 0)),
        )
        readings.append(reading(summary, began, shown))
        if "failed_transactions" not in told:
            readings[-1].notes.append(cut_off(began, "'Failed transactions'", readings[-1].figures))
        told = {}

    for at, row in enumerate(every, 1):
        if (match := FIELD.fullmatch(row)) and match[1] in NAMES:
            if match[1] == "Transactions":
                if told:
                    finish(at)
                began = at
            told[NAMES[match[1]]] = number(match[2])
            shown = digits(match[2]) if match[1] == "Transaction rate" else shown
    if told or not readings:
        finish(len(every))
    return readings


def reading(summary: Summary, line: int, digits_: int) -> Reading:
    done, wrong = summary.transactions, summary.failed_transactions
    refused = max(0, done - summary.successful_transactions) if summary.successful_transactions is not None else 0
    if not done or not summary.transaction_rate > 0:
        raise Bad(line, "siege completed no transaction, so there is nothing to compare")
    return Reading(
        tool="siege",
        line=line,
        engine="web",
        workload="requests",
        operations=done + wrong,
        errors=wrong + refused,
        seconds=summary.elapsed_time,
        digits=digits_ or digits(f"{summary.transaction_rate:.2f}"),
        figures=above_zero({"throughput": summary.transaction_rate, "latency_mean": summary.response_time * 1e3}),
        notes=errors_among(line, wrong + refused, done + wrong, "requests failed or were answered with an error"),
    )
