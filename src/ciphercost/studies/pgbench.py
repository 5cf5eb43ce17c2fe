"""Parse the output of pgbench of PostgreSQL 14 to 18. Pure."""

from __future__ import annotations

import re

import msgspec

from ciphercost.model.errors import RunError

_NUMBER = r"(-?nan|-?[\d.]+)"
_PROGRESS = re.compile(
    rf"^progress: {_NUMBER} s, {_NUMBER} tps, lat {_NUMBER} ms stddev {_NUMBER}(?:, lag [^,]*)?(?:, (\d+) failed)?",
    re.MULTILINE,
)
_VERSION = re.compile(r"pgbench \((?:PostgreSQL\) )?(\d+[\w.]*)")
LAST_LINES = 8
ROWS_A_SCALE = 100_000
"""Accounts per unit of its scale."""


class Second(msgspec.Struct, frozen=True):
    """One line of progress (`-P 1`)."""

    at_s: float
    tps: float
    latency_ms: float
    stddev_ms: float
    failed: int


class Report(msgspec.Struct, frozen=True):
    """The figures that one run of pgbench printed."""

    transactions: int
    failed: int
    """Version 14 reports none: there a failed transaction ends its client, and with it the run."""
    latency_average_ms: float
    latency_stddev_ms: float
    initial_connection_ms: float
    tps: float
    """Without initial connection time."""
    progress: tuple[Second, ...]


def parse(text: str) -> Report:
    """Parse a run's complete output. Raises RunError with its last lines if figures are missing or a client gave up."""
    if "run was aborted" in text.lower():
        raise RunError(f"pgbench lost a client, so its figures cover fewer clients than requested:\n{_end(text)}")
    tps = r"^tps = {} \((?:without initial connection time|excluding connections establishing)\)"
    return Report(
        transactions=int(_one(r"^number of transactions actually processed: (\d+)", text)),
        failed=int(_one(r"^number of failed transactions: (\d+)", text, "0")),
        latency_average_ms=float(_one(rf"^latency average = {_NUMBER} ms", text)),
        latency_stddev_ms=float(_one(rf"^latency stddev = {_NUMBER} ms", text)),
        initial_connection_ms=float(_one(rf"^initial connection time = {_NUMBER} ms", text)),
        tps=float(_one(tps.format(_NUMBER), text)),
        progress=tuple(
            Second(number(at), number(rate), number(latency), number(stddev), int(failed or 0))
            for at, rate, latency, stddev, failed in _PROGRESS.findall(text)
        ),
    )


def version(text: str) -> str:
    """`17.11` from the output of `pgbench -V`; empty if it has no version."""
    match = _VERSION.search(text)
    return match[1] if match else ""


def number(text: str) -> float:
    """0 for `nan`, which is the latency of a second without a transaction."""
    return 0.0 if "nan" in text else float(text)


def _one(pattern: str, text: str, default: str = "") -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None and not default:
        raise RunError(f"pgbench printed no figures; its last lines:\n{_end(text)}")
    return match[1] if match else default


def _end(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LAST_LINES:])
