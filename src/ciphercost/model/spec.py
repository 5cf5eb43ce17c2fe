"""The spec of a run: what the user asked for. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.command_load import CommandLoad
from ciphercost.model.constrained_types import Amount, Count, Seed
from ciphercost.model.fleet import Placement
from ciphercost.model.own_tls import OwnTls

Arm = Literal["plain", "encrypted"]
ARMS: tuple[Arm, Arm] = ("plain", "encrypted")
Order = Literal["ABBA", "BAAB"]
Phase = Literal["pilot", "warmup", "capacity", "latency", "curve", "objective", "profile"]
"""In `curve` both arms get the same rate; in `objective` each gets the rate at which it may just keep the cell's objective."""
COUNTED: tuple[Phase, ...] = ("capacity", "latency", "curve", "objective")
"""Phases that consist of blocks."""
OPEN_LOOP: tuple[Phase, ...] = ("latency", "curve", "objective")
SEARCHING: tuple[Phase, ...] = ("curve", "objective")
"""Phases of the search for capacity at an objective."""
Regime = Literal["capacity", "one-core", "latency"]
Mode = Literal["full", "quick"]
Layer = Literal["transit", "rest", "column", "control"]
Cache = Literal["warm", "cold", "small"]
Language = Literal["sql", "http", "kv", "command"]
WORKLOAD_FILE = ".toml"
"""How the name of a file of the user's ends, where a workload may be named."""
QueryMode = Literal["simple", "extended", "prepared"]
"""How statements travel: as text with their values, parsed each time, or prepared once on each connection."""

Draw = Literal["random", "even"]
"""How an operation's transaction is drawn by weight: by chance, or so that every stretch of operations has each as often as its weight says."""


# ── spec ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class CellSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One row of the result: engine × mechanism × workload × load level."""

    engine: str
    mechanism: str
    version: str = ""
    """Major version of the server ("17"); empty: the first that is found."""
    workload: str = "point-select"
    factors: dict[str, str] = {}
    """Options of mechanism, workload and client that differ from the defaults, e.g. {"version": "1.2", "certificate": "ecdsa-p256"}."""
    versus: dict[str, str] = {}
    """Settings of another encrypted arm, as far as they differ from `factors`: it takes the plain arm's place, e.g. {"version": "1.2"}.
    `client` and `mechanism` may differ too. Empty: the arms are plain and encrypted."""
    clients: Count = 0
    """Connections; 0: the workload's or the regime's default."""
    rows: Count = 0
    """Rows of the main table; 0: the workload's default."""
    regime: Regime = "capacity"
    per_request: bool = False
    rate: Amount = 0.0
    """Open loop: operations per second; 0: 60 % of the plain arm's capacity."""
    url: str = ""
    bindir: str = ""
    ca: str = ""
    cert: str = ""
    """File of the client's certificate, for a server that the user runs; empty: none, or the one that the URL names."""
    key: str = ""
    """File of its key, if that is another one."""
    server_name: str = ""
    """Name that the certificate of the user's server has, if it is not the URL's host."""
    sql: str | list[str] = ""
    """A file with the user's statements, instead of a workload, or several, each with `@WEIGHT` behind its name if that is not 1."""
    builtin: list[str] = []
    """pgbench's own scripts, `tpcb-like`, `simple-update` or `select-only`, with weights in the same way."""
    define: dict[str, str] = {}
    """Variables of these scripts that have a value from the start."""
    protocol: Literal["", QueryMode] = ""
    """How statements travel; empty: prepared, or as text where operations open connections."""
    max_tries: Count = 0
    """How often an operation may be tried if it fails for a conflict with others; 0: once."""
    csv: str = ""
    """A file with the user's rows, instead of generated ones."""
    no_header: bool = False
    """The first line of `csv` is a row, so the columns are named column1, column2 …"""
    secret: list[str] = []
    """Columns that are encrypted in the encrypted arm: of `csv`, by their names in the file, or of a table of `dump`, as TABLE.COLUMN."""
    dump: str = ""
    """A dump of the user's database, loaded into the servers that ciphercost starts; `sql` runs on it. With `secret`, only the rows of one
    of its tables are taken."""
    headers: list[str] = []
    """Names of headers that every request of a web page has. Their values, given by `--header`, are in no record."""
    headers_file: str = ""
    """A file with such headers, one a line."""
    group: str = ""
    """Consecutive cells with the same group are one experiment: they share their sessions, and their blocks alternate.
    The first cell is the reference."""
    variant: str = ""
    """How the cell differs from the others of its group: `cipher=chacha20`."""
    cpu_crypto: Literal["on", "off"] = "on"
    """off: hides the CPU's AES instructions from server and agent. This and all following conditions apply to both arms."""
    bandwidth: str = ""
    """Bandwidth of the link between agent and server in each direction: "100mbit"; empty: as fast as loopback."""
    delay: str = ""
    """Delay added to each round trip between agent and server: "10ms"."""
    mtu: Count = 0
    """MTU of the link, bytes; 0: loopback's."""
    loss: str = ""
    """Share of the packets that the link loses, in each direction: "1%"."""
    listen: str = ""
    """Address of this machine on which the server that ciphercost starts listens; empty: 127.0.0.1."""
    cache: Cache = "warm"
    """The server's cache. warm: its default; cold: emptied before each session; small: a tenth of the data."""
    client: str = ""
    """What makes the load. Empty: the Rust agent; `jdbc`, `jdbc:9.7.0`, `jdbc:mariadb-3.5`: the Java agent with that driver; `psycopg`,
    `psycopg@3.2`: that driver, in its own language."""
    driver: str = ""
    """Jars of the user's JDBC driver, separated by `:`, the driver itself first."""
    settings: dict[str, str] = {}
    """Settings of the server that ciphercost starts, by the server's own names."""
    idle: Literal["", "poll", "halt"] = ""
    """What idle cores do: poll, or halt until an interrupt wakes them; empty: poll if possible."""
    max_rate: Amount = 0.0
    """At most this many operations per second in every phase, also in pilot and warm-up; needs regime latency. 0: no limit."""
    max_connections: Count = 0
    """At most this many connections to the server at once, those of both arms and of ciphercost itself; 0: no limit."""
    max_errors: Amount = 0.0
    """Share of a slice's operations that may fail before the load stops; 0: no limit, but MOST_ERRORS with `url`."""
    max_latency: Amount = 0.0
    """Seconds that the 99th percentile of a slice may reach before the load stops; 0: no limit."""
    objective: str = ""
    """Latency to keep, e.g. "p99=5ms": the run also finds each arm's highest rate that keeps it. Empty: none."""
    storm: str = ""
    """New connections while the others carry load: `160` a second, `failover`, `failover=1000`, `rotation=30m/15`. Empty: none."""
    connections: Count = 0
    """Idle connections up to which memory per connection is measured; 0: it is not."""
    fio_bytes: Count = 0
    """At rest: size of fio's file, bytes; fio then runs in cells of any length. 0: the default size, in cells of a minute or more."""
    command: CommandLoad | None = None
    """Engine `command`: the commands of the user's that make the load. None: agents make it."""

    @property
    def scripts(self) -> tuple[str, ...]:
        """The files with the user's statements, with their weights."""
        return (self.sql,) if isinstance(self.sql, str) and self.sql else tuple(self.sql)

    @property
    def workload_file(self) -> str:
        """The file of its workload; empty: the workload is one of ciphercost's, or scripts take its place."""
        return self.workload if self.workload.endswith(WORKLOAD_FILE) and not self.own_script else ""

    @property
    def whole_dump(self) -> str:
        """The dump that both arms hold; empty: there is none, or only rows of it are taken."""
        return "" if self.secret else self.dump

    @property
    def dump_rows(self) -> bool:
        """Whether the rows of a table of the dump are measured, with secret columns."""
        return bool(self.dump and self.secret)

    @property
    def own_script(self) -> bool:
        """Whether scripts take the place of a workload: the user's own, or pgbench's."""
        return bool(self.sql or self.builtin)

    @property
    def script_names(self) -> str:
        """The scripts without their directories, for people."""
        return ", ".join([*(file.rpartition("/")[2] for file in self.scripts), *self.builtin])

    @property
    def own_tls(self) -> OwnTls:
        """What it names beside its URL."""
        return OwnTls(self.ca, self.cert, self.key, self.server_name)


class Spec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A whole run: its cells, and how long and how precisely to measure each."""

    cells: list[CellSpec]
    seed: Seed = 0
    """0: drawn at the start and recorded."""
    mode: Mode = "full"
    sessions: Count = 8
    time: Amount = 90.0
    """Load time of each cell, seconds."""
    precision: Amount = 0.0
    """Half-width of the log ratio's interval at which a cell stops; 0: only time stops it."""
    margin: Amount = 0.01
    """Equivalence margin m: ±log(1 + m)."""
    latency: bool = True
    """Measure latency in an open loop after the capacity phase."""
    slice_seconds: Amount = 0.0
    """0: chosen by the pilot."""
    profile: bool = False
    """Sample both arms' CPU time by function, in slices of its own that count for nothing else."""
    cluster: str = ""
    """Ray cluster: `auto`, HOST:PORT or `ray://HOST:PORT`. Its nodes make the load, or with `spread` the whole run. Empty: this machine."""
    agents: Count = 0
    """Number of its nodes that make the load; 0: all, but no more than clients."""
    min_agents: Count = 0
    """With fewer a cell ends; 0: all but one."""
    placement: Placement = "spread"
    """Where the agents run: on one node each, or all near the server."""
    spread: bool = False
    """Measure the cells on the nodes of the cluster, each with a server of its own, instead of on this machine."""
    machines: Count = 0
    """With `spread`: nodes that measure each cell; 0: all."""
