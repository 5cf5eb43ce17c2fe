"""spec: What the user asked for: a run and its cells. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.terms import Amount, Count, Seed

Arm = Literal["plain", "encrypted"]
ARMS: tuple[Arm, Arm] = ("plain", "encrypted")
Order = Literal["ABBA", "BAAB"]
Phase = Literal["pilot", "warmup", "capacity", "latency"]
Regime = Literal["capacity", "one-core", "latency"]
Mode = Literal["full", "quick"]
Layer = Literal["transit", "rest", "column", "control"]
Cache = Literal["warm", "cold", "small"]
Language = Literal["sql", "http", "kv"]


# ── spec: what the user asked for ─────────────────────────────────────────────────────────────────────────────────────


class CellSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One row of the result: engine × mechanism × workload × load level."""

    engine: str
    mechanism: str
    version: str = ""
    """Major version of the server ("17"); empty: whichever is found first."""
    workload: str = "point-select"
    factors: dict[str, str] = {}
    """Mechanism options that differ from its defaults, e.g. {"version": "1.2", "certificate": "ecdsa-p256"}."""
    clients: Count = 0
    """Connections; 0: the workload's or the regime's default."""
    rows: Count = 0
    """Rows of the main table; 0: the workload's default."""
    regime: Regime = "capacity"
    per_request: bool = False
    rate: Amount = 0.0
    """Open loop: operations a second; 0: 60 % of the plain arm's capacity."""
    url: str = ""
    bindir: str = ""
    ca: str = ""
    sql: str = ""
    """A file of the user's own statements instead of a workload's."""
    csv: str = ""
    """A file of the user's own rows instead of a workload's."""
    group: str = ""
    """Cells that follow each other under one name are one experiment: they share their sessions, and their blocks alternate.
    The first is the reference."""
    variant: str = ""
    """What sets the cell apart in its group: `cipher=chacha20`."""
    cpu_crypto: Literal["on", "off"] = "on"
    """off: the CPU's AES instructions are hidden from server and agent. Like all that follows, in force in both arms."""
    bandwidth: str = ""
    """Of the link between agent and server, each way: "100mbit"; empty: as fast as loopback."""
    delay: str = ""
    """Added to each round trip between agent and server: "10ms"."""
    mtu: Count = 0
    """Of the link, bytes; 0: loopback's."""
    cache: Cache = "warm"
    """How much of the data the server's own cache holds: all, all but nothing at a session's start, a tenth."""
    client: str = ""
    """Who makes the load: empty, the Rust agent; `jdbc`, `jdbc:9.7.0`, `jdbc:mariadb-3.5`: the Java agent by that driver."""
    driver: str = ""
    """Jars of a JDBC driver of the user's, separated by `:`, the driver's own first."""
    settings: dict[str, str] = {}
    """Of the server that we start, by its own names; in force in both arms."""
    idle: Literal["", "poll", "halt"] = ""
    """What cores do that have nothing to do: poll, or halt until an interrupt wakes them; empty: poll where that is possible."""
    fio_bytes: Count = 0
    """At rest: size of the file that fio works on; fio then runs however short the cell is. 0: fio's own size, in cells of a minute or more."""


class Spec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A whole run: the cells and how long and how precisely each is measured."""

    cells: list[CellSpec]
    seed: Seed = 0
    """0: drawn at the start, and logged."""
    mode: Mode = "full"
    sessions: Count = 8
    time: Amount = 90.0
    """Seconds of load for each cell."""
    precision: Amount = 0.0
    """Half-width of the log ratio at which a cell stops; 0: only time stops it."""
    margin: Amount = 0.01
    """Equivalence margin m: ±log(1 + m)."""
    latency: bool = True
    """Measure latency in an open loop after capacity."""
    slice_seconds: Amount = 0.0
    """0: chosen by the pilot."""
