"""study: A published study repeated here: its runs as recorded, and its figures beside the published ones. No logic."""

from __future__ import annotations

import msgspec

from ciphercost.model.slices import Proof
from ciphercost.model.terms import Amount, Count

# ── a published study, run as it was published: study.json ────────────────────────────────────────────────────────────


class HostSample(msgspec.Struct, frozen=True):
    """One row as `sar` prints it, per cent of all CPU time, and memory at its end."""

    at_s: Amount
    """Since the first query of the operation."""
    seconds: Amount
    """Time the row stands for; the last row of an operation is shorter than the others."""
    user: Amount
    nice: Amount
    system: Amount
    iowait: Amount
    steal: Amount
    idle: Amount
    memory_available_bytes: Count
    memory_used_bytes: Count
    """Total less available."""
    server_memory_bytes: Count
    """PSS of the server's processes."""
    memory_free_bytes: Count = 0
    """Total less what anything at all is kept in, caches too: how one study counted."""


class StudyRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation on one arm, as published: raw."""

    operation: str
    arm: str
    started: Amount
    """Seconds since the procedure began."""
    load: dict[str, Amount]
    """What was asked of the server, e.g. queries an iteration."""
    series: dict[str, list[Amount]]
    """What was measured, by name, in order, e.g. seconds of each iteration."""
    host: list[HostSample] = []
    mechanism: str = ""
    """What encrypts this pair of arms, where the procedure is run on several."""
    engine: str = ""
    """Its server, where the procedure is run on several."""
    workload: str = ""
    """Which statements, where there are several versions of them."""
    server: str = ""
    """The user's name for its server, where the procedure is run on several."""
    design: str = ""
    """Empty: as published; `pilot`: to learn how long it takes; `interleaved`: by turns, as `load` says in which session, block and position;
    `wire`: not timed, to see what crosses the wire."""


class StudyRecord(msgspec.Struct, omit_defaults=True):
    """`study.json`: the published procedure on this machine, rewritten whenever an operation ends."""

    format: int
    study: str
    engine: str
    mechanism: str
    version: str = ""
    arms: list[str] = []
    """In the order that they were run, of each operation or of all operations together."""
    mechanisms: list[str] = []
    """Where the procedure is run on several pairs of arms: what encrypts each. A pair's number, from 1, is its proofs' session."""
    engines: list[str] = []
    """Where the pairs are of several servers: each pair's."""
    servers: list[str] = []
    """The user's names for the servers of the pairs, where they have names."""
    versions: dict[str, str] = {}
    """Of several servers, by engine, or by the name of the pair."""
    settings: dict[str, Amount] = {}
    """Rows, iterations, queries of the published run, seconds between two host samples."""
    grid: list[dict[str, Amount]] = []
    """Where the procedure is run at several sizes and loads: each of them, in order."""
    tools: dict[str, str] = {}
    """Programs that the procedure ran, and their versions."""
    encryption: dict[str, str] = {}
    conditions: dict[str, str] = {}
    """What both arms ran under, where the study has a choice. `cpu_crypto`: `on`, `off`, or `none` where OpenSSL had no AES instructions anyway."""
    proofs: list[Proof] = []
    runs: list[StudyRun] = []
    reason: str = ""
    """Why it did not run to its end."""
    complete: bool = False
    idle: str = ""
    """What idle cores did meanwhile: `poll` or `halt`; empty: recorded before this was known."""


class StudyFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the three columns. Absent: not published, or not measured."""

    operation: str
    figure: str
    unit: str
    arm: str
    """`plain`, `encrypted`, or `cost`: encrypted ÷ plain."""
    published: float | None = None
    here: float | None = None
    """The same procedure on this machine."""
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of `ours`."""
    n: int = 0
    """Sessions (or what `of` says) behind the interval."""
    of: str = ""
    published_sd: float | None = None
    """As the study has it."""
    here_sd: float | None = None
    """Of `here`, over runs or, where the study does so, over operations."""
    engine: str = ""
    """Where a study is of several servers."""
    mechanism: str = ""
    workload: str = ""
    """Which statements, where there are several versions of them."""
    load: float | None = None
    """Records, megabytes or clients, where there are several of them."""
    source: str = ""
    """Where the publication prints `published`: `Table II`, one of the study's `sources`."""


class StudyResult(msgspec.Struct, frozen=True):
    """A published study beside its repetition here. Made from study.json and the cells, whenever it is asked for."""

    study: str
    title: str
    published_server: str
    server: str
    complete: bool
    """Whether the published procedure was run here to its end, on arms that were proven."""
    procedure: str
    """The published procedure as it was run here, in words; or why it wasn't."""
    figures: list[StudyFigure]
    findings: list[str]
    """What the published procedure could not have told, from the figures of both."""
