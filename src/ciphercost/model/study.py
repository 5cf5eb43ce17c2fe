"""A published study repeated on this machine: its recorded runs, and its figures beside the published ones. No logic."""

from __future__ import annotations

from typing import Literal

import msgspec

from ciphercost.model.constrained_types import Amount, Count
from ciphercost.model.slices import Proof, Witness

Bound = Literal["", "most", "least", "either"]
"""What a published ratio limits. `most`: ours is at most that; `least`: at least that; `either`: at most that, and at least one over that."""

# ── a published study, run as it was published: study.json ────────────────────────────────────────────────────────────


class HostSample(msgspec.Struct, frozen=True):
    """One row as `sar` prints it: percentages of all CPU time, and memory at its end."""

    at_s: Amount
    """Seconds since the first query of the operation."""
    seconds: Amount
    """Seconds that the row covers; the last row of an operation is shorter."""
    user: Amount
    nice: Amount
    system: Amount
    iowait: Amount
    steal: Amount
    idle: Amount
    memory_available_bytes: Count
    memory_used_bytes: Count
    """Total minus available."""
    server_memory_bytes: Count
    """PSS of the server's processes."""
    memory_free_bytes: Count = 0
    """Memory that holds nothing, not even a cache, as one study counted it."""


class StudyRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """Raw data of one operation on one arm of the published procedure."""

    operation: str
    arm: str
    started: Amount
    """Seconds since the procedure began."""
    load: dict[str, Amount]
    """Load on the server, e.g. queries per iteration."""
    series: dict[str, list[Amount]]
    """Measured series by name, in order, e.g. seconds of each iteration."""
    host: list[HostSample] = []
    mechanism: str = ""
    """What encrypts this pair of arms, if the procedure runs on several pairs."""
    engine: str = ""
    """Its server, if the procedure runs on several servers."""
    workload: str = ""
    """Which statements, if there are several versions."""
    server: str = ""
    """The user's name for its server, if the procedure runs on several servers."""
    design: str = ""
    """Empty: as published. `pilot`: to learn how long it takes. `interleaved`: alternating; `load` holds session, block and
    position. `wire`: not timed; counts what crosses the wire."""


class StudyRecord(msgspec.Struct, omit_defaults=True):
    """`study.json`: the published procedure on this machine, rewritten after each operation."""

    format: int
    study: str
    engine: str
    mechanism: str
    version: str = ""
    arms: list[str] = []
    """Arms in their order, within each operation or over all operations."""
    mechanisms: list[str] = []
    """If the procedure runs on several pairs of arms: what encrypts each. Proofs use a pair's number, from 1, as session."""
    engines: list[str] = []
    """Server of each pair, if the pairs use several servers."""
    servers: list[str] = []
    """The user's names for the servers of the pairs, if they have names."""
    versions: dict[str, str] = {}
    """Versions of several servers, by engine or by name of the pair."""
    settings: dict[str, Amount] = {}
    """Rows, iterations and queries of the procedure, seconds between two host samples."""
    grid: list[dict[str, Amount]] = []
    """Sizes and loads at which the procedure runs, in order, if there are several."""
    tools: dict[str, str] = {}
    """Programs of the procedure, and their versions."""
    encryption: dict[str, str] = {}
    conditions: dict[str, str] = {}
    """Conditions of both arms that the study can choose. `cpu_crypto`: `on`, `off`, or `none` if OpenSSL had no AES instructions."""
    witnesses: dict[str, list[Witness]] = {}
    """Witnesses that must report on each arm, by mechanism; older records lack it."""
    proofs: list[Proof] = []
    runs: list[StudyRun] = []
    reason: str = ""
    """Why it did not complete."""
    complete: bool = False
    idle: str = ""
    """What idle cores did: `poll` or `halt`; empty: not recorded by older versions."""


class StudyFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of the three columns. Missing values were not published or not measured."""

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
    """Sample size behind the interval: sessions, or the unit in `of`."""
    of: str = ""
    published_sd: float | None = None
    """Standard deviation as published."""
    here_sd: float | None = None
    """Standard deviation of `here`, over runs or, as in some studies, over operations."""
    engine: str = ""
    """Server, if a study covers several."""
    mechanism: str = ""
    workload: str = ""
    """Which statements, if there are several versions."""
    load: float | None = None
    """Records, megabytes or clients, if there are several loads."""
    source: str = ""
    """Where the publication prints `published`, e.g. `Table II`; one of the study's `sources`."""
    bound: Bound = ""
    """How `published` limits the cost, if the publication gives a limit and no figure (`below 5 %`)."""


class StudyResult(msgspec.Struct, frozen=True):
    """A published study beside its repetition here, computed from study.json and the cells."""

    study: str
    title: str
    published_server: str
    server: str
    complete: bool
    """Whether the published procedure completed here, on proven arms."""
    procedure: str
    """Description of the published procedure as it ran here, or why it didn't."""
    figures: list[StudyFigure]
    findings: list[str]
    """What the published procedure could not show, from the figures of both."""
