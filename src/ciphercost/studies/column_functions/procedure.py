"""Run the study as published, then the same operations interleaved, on one server with everything on one core. I/O.

A cycle is what the study timed: create tables, insert N records in one transaction, read all, update all, delete all. As published,
all cycles of the plain arm come first. Interleaved, a cycle is a slice, and four of them in mirrored order are a block.

Statements are literal SQL. The agent sends them one after the other, and their rows come back to this process, as they came to the
study's client. The study's statements are those of its application (`hospital_app`): every operation is one transaction. The study
timed a whole PHP process: start, reading the file, connecting and fetching. As published, an operation here also has a client process
of its own, timed from start to end. Interleaved, an operation's time runs from the first statement to the last answer.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ciphercost.host import procfs
from ciphercost.load import script, secret_sql
from ciphercost.load.codec import Codec
from ciphercost.load.program import Program
from ciphercost.load.script_parts import Script
from ciphercost.load.tables import hospital_register, hospital_sql
from ciphercost.measure import sar
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import HostSample, StudyRun
from ciphercost.plan import schedule
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.studies import Stage
from ciphercost.studies.column_functions import application, statements, stored
from ciphercost.studies.column_functions.measured import INTERLEAVED, PILOT, PUBLISHED, SECONDS, SERVER_CPU
from ciphercost.studies.column_functions.statements import drop, tables

OPERATIONS = hospital_sql.OPERATIONS
STUDYS, TUNED = application.WORKLOAD, "hospital"
"""The statements of the study's application, and those that a good DBA would write."""
VERSIONS = (STUDYS, TUNED)
APPLICATION = "application"
"""Key of a record's settings: 1 if STUDYS means the statements of the study's application. Older records used other statements by that name."""
CLIENT_PROCESS = "client_process"
"""Key of a record's settings: 1 if a published run's time is that of a whole client process. Older records timed the statements alone."""
STATEMENTS = "statements_s"
"""Series of a published run: the part of its time from the first statement to the last answer."""
NUMBERED = (
    "SELECT count(*) FROM notification n JOIN state s ON s.id = n.state_id JOIN municipality m ON m.id = n.municipality_id AND m.state_id = s.id "
    "JOIN patient p ON p.id = n.patient_id JOIN occupancy o ON o.id = n.occupancy_id WHERE n.id = s.id AND n.id = m.id AND n.id = p.id "
    "AND n.id = o.id"
)
"""Counts records whose rows all have the same number; the application's statements rely on that."""
LEFT = (
    "SELECT (SELECT count(*) FROM notification) + (SELECT count(*) FROM state) + (SELECT count(*) FROM municipality) "
    "+ (SELECT count(*) FROM patient) + (SELECT count(*) FROM occupancy) FROM (SELECT 1 AS one FROM ciphercost_canary WHERE id = 1) only_row"
)
"""Counts the rows of all five tables."""
COUNTED = "names_texts_stored"
"""Series of a run: number of states' names, of different names, of different stored values."""
COMPILED = "compiling_executing_ms"
"""Series of a run, from an EXPLAIN after its SELECT: ms to compile the plan, ms in total."""
DATA_SEED = 1
LEAST_LEAD_IN = 10
LEAD_IN = 4
"""The smallest load ÷ the records of a lead-in, which is a discarded cycle of the block's first arm."""
BLOCK_CYCLES = 4
ANSWER_SECONDS = 7200.0
"""Timeout of one statement: an update may be quadratic."""
MARGIN = 1.15
"""Factor by which a session may take longer than the one before it."""
GUESS = 1.5
"""Assumed exponent of growth with the load before any is measured: between linear and quadratic."""


def run(stage: Stage, loads: Sequence[int]) -> None:
    """A pilot, the published procedure, then interleaved sessions while time remains. Raises RunError."""
    began = time.monotonic()
    bench, settings = stage.bench, stage.record.settings
    texts = CycleStatements(bench, max(loads))
    name = f"{bench.cell.engine} {bench.installation.version}"
    pilot = Pilot(stage, texts, began)
    pilot.run(loads[0])
    expected = [expect(seconds, loads) for seconds in pilot.seconds.values()]
    published = int(settings["runs"]) * len(ARMS) * expect(pilot.seconds[STUDYS], loads)
    planned = sessions_in(stage.seconds - pilot.total - published, BLOCK_CYCLES * sum(expected), settings)
    stage.say(
        f"{name}: about {published:.0f} s as published, then at least {planned} interleaved sessions of about {BLOCK_CYCLES * sum(expected):.0f} s each"
    )
    for arm in stage.record.arms:
        for load in loads:
            for number in range(1, int(settings["runs"]) + 1):
                started = time.monotonic()
                Published(stage, texts, began).cycle(arm_of(arm), STUDYS, load, {"run": float(number)})
                stage.say(
                    f"as published: {name}, {arm}, {load:,} records, run {number} of {settings['runs']:.0f}: "
                    f"{time.monotonic() - started:.1f} s"
                )
    longest = 0.0
    for session in range(1, int(settings["most_sessions"]) + 1):
        used = time.monotonic() - began
        if session > settings["least_sessions"] and used + MARGIN * longest > stage.seconds:
            break
        stage.renew(stage)
        one_session(stage, texts, began, session, loads)
        longest = max(longest, time.monotonic() - began - used)
        stage.say(f"interleaved: {name}, session {session}: {time.monotonic() - began - used:.1f} s")


def expect(seconds: float, loads: Sequence[int]) -> float:
    """Seconds of one cycle of each load, if one of the smallest takes `seconds`. Pure."""
    return seconds * sum(math.pow(load / min(loads), GUESS) for load in loads)


def sessions_in(left: float, session_seconds: float, settings: Mapping[str, float]) -> int:
    """How many sessions of `session_seconds` seconds fit into the remaining time; never fewer than an interval needs. Pure."""
    least, most = int(settings["least_sessions"]), int(settings["most_sessions"])
    return max(least, min(most, int(left / session_seconds) if session_seconds > 0 else most))


def one_session(stage: Stage, texts: CycleStatements, began: float, session: int, loads: Sequence[int]) -> None:
    """One block for every version of the statements and every load, in an order drawn from the run's seed."""
    number = stage.record.engines.index(stage.bench.cell.engine)
    orders = schedule.blocks(stage.seed, number, session)
    for version in VERSIONS:
        for load in loads:
            block = next(orders)
            for position, arm in enumerate(block.arms):
                where = {"session": float(session), "block": float(block.number), "position": float(position)}
                records = min(load, max(LEAST_LEAD_IN, loads[0] // LEAD_IN)) if position == 0 else load
                Interleaved(stage, texts, began).cycle(arm, version, records, where)


def arm_of(name: str) -> Arm:
    return "encrypted" if name == "encrypted" else "plain"


# ── one cycle ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class CycleStatements:
    """The statements of one server's cycles, built once because the values' key belongs to the run."""

    def __init__(self, bench: PreparedCell, most: int) -> None:
        assert bench.sealing is not None
        self._sealing, self._dialect, self._engine = bench.sealing, bench.engine.dialect, bench.engine.name
        csv = Path(bench.cell.csv) if bench.cell.csv else None
        self._records = list(hospital_register.source(csv, most, DATA_SEED)())
        self._inserts: dict[tuple[Arm, str], list[list[str]]] = {}

    def codec(self, arm: Arm, version: str) -> Codec:
        codec = self._sealing.of(arm)
        return stored.as_the_study(self._engine, codec) if version == STUDYS else codec

    def states(self, records: int) -> int:
        """Number of different state names among the first records."""
        return len({record.state for record in self._records[:records]})

    def of(self, arm: Arm, version: str, operation: str, records: int) -> list[str]:
        """All statements of an operation without the BEGIN and COMMIT around it."""
        codec = self.codec(arm, version)
        if version == STUDYS:
            return list(application.operation(self._dialect, codec, operation, self._records[:records]))
        if operation != "insert":
            return statements.operation(version, self._dialect, codec, operation)
        inserts = self._inserts.setdefault((arm, version), [])
        for record in self._records[len(inserts) : records]:
            inserts.append(statements.operation(version, self._dialect, codec, operation, record))
        return [statement for record_statements in inserts[:records] for statement in record_statements]


class Cycles:
    """New tables and the four operations, each timed and kept as its own run."""

    design = PUBLISHED

    def __init__(self, stage: Stage, texts: CycleStatements, began: float) -> None:
        self.stage, self.texts, self.began = stage, texts, began
        self.bench = stage.bench
        self.dialect = stage.bench.engine.dialect

    def cycle(self, arm: Arm, version: str, records: int, where: dict[str, float]) -> None:
        """Every operation once on new tables. Raises RunError, AgentError."""
        stage, codec = self.stage, self.texts.codec(arm, version)
        statements = {operation: self.texts.of(arm, version, operation, records) for operation in OPERATIONS}
        if version != STUDYS:
            select = script.parse(";\n".join(statements["select"]), {}, f"{version}, select")
            stage.agent.program(program_of(self.bench.program, select))
        stage.agent.connect(arm, stage.pair.connect[arm].single)
        try:
            self.fresh(arm, version, codec)
            sampler = self.sampler()
            with contextlib.closing(sampler):
                for operation in OPERATIONS:
                    self.operation(arm, version, operation, statements[operation], records, where, sampler)
        finally:
            stage.agent.disconnect(arm)

    def operation(
        self,
        arm: Arm,
        version: str,
        operation: str,
        statements: Sequence[str],
        records: int,
        where: dict[str, float],
        sampler: procfs.Sampler,
    ) -> None:
        started = time.monotonic()
        with self.watched() as host:
            sampler.refresh()
            sampler.begin()
            began = time.monotonic()
            rows = self.perform(arm, version, operation, statements)
            seconds = time.monotonic() - began
            counters = sampler.end()
        series = {SECONDS: [seconds], SERVER_CPU: [counters.server_cpu_ns / 1e9]}
        if operation == "select" and version != STUDYS and rows != records:
            raise RunError(f"{arm} arm, {version}: SELECT returned {rows:,} rows of {records:,} inserted records")
        self.require_effect(arm, version, operation, records)
        self.stage.keep(
            StudyRun(
                operation,
                arm,
                round(started - self.began, 3),
                {"records": float(records), **where},
                series | self.seen(arm, operation, records, where),
                host,
                mechanism=self.bench.mechanism.name,
                engine=self.bench.cell.engine,
                workload=version,
                design=self.design,
            )
        )

    def require_effect(self, arm: Arm, version: str, operation: str, records: int) -> None:
        """Raises RunError unless the operation reached every record: one that finds nothing would look fast."""
        checks = {
            "update": (f"SELECT count(*) FROM state WHERE matches(name, '{hospital_sql.CHOSEN}', 80, state)", records),
            "delete": ("SELECT count(*) FROM notification", 0),
        }
        if version == STUDYS:
            checks["insert"] = (NUMBERED, records)
            checks["delete"] = (LEFT, 0)
        if operation in checks:
            sql, wanted = checks[operation]
            count = self.stage.agent.query(arm, secret_sql.expand(sql, self.texts.codec(arm, version)))[0][0]
            if count != str(wanted):
                raise RunError(
                    f"{arm} arm, {version}: after {operation} the server counts {count} records; expected {wanted:,}"
                )

    def perform(self, arm: Arm, version: str, operation: str, statements: Sequence[str]) -> int:
        """Number of rows if a SELECT of one statement ran. Every INSERT and every operation of the application is a transaction."""
        agent = self.stage.agent
        if operation != "select" or version == STUDYS:
            whole = operation == "insert" or version == STUDYS
            every = ["BEGIN", *statements, "COMMIT"] if whole else statements
            agent.queries(arm, every, timeout=ANSWER_SECONDS)
            return 0
        answer = agent.slice(arm, ANSWER_SECONDS, discard=0.0, operations=1)
        if answer.errors:
            raise RunError(f"{arm} arm: select: {answer.first_error}")
        return answer.rows

    def fresh(self, arm: Arm, version: str, codec: Codec) -> None:
        """Create the tables, empty and unused."""
        agent = self.stage.agent
        with contextlib.suppress(AgentError):  # the first cycle has no tables; an interrupted one may have some
            for statement in drop():
                agent.query(arm, statement)
        for statement in tables(version, self.dialect, codec):
            agent.query(arm, statement)

    def sampler(self) -> procfs.Sampler:
        server = self.stage.pair.server
        return procfs.Sampler(server.pid, server.cgroups) if server else procfs.Sampler()

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[HostSample]]:
        """Sample the host while an operation runs; not in this class."""
        yield []

    def seen(self, arm: Arm, operation: str, records: int, where: Mapping[str, float]) -> dict[str, list[float]]:  # noqa: ARG002
        """Further series, observed outside all timing."""
        return {}


class Published(Cycles):
    """As the study did it: one client process per operation; CPU and memory sampled once a second."""

    def __init__(self, stage: Stage, texts: CycleStatements, began: float) -> None:
        super().__init__(stage, texts, began)
        self.statements_s = 0.0
        """Seconds of the last operation from its first statement to its last answer."""

    def perform(self, arm: Arm, version: str, operation: str, statements: Sequence[str]) -> int:  # noqa: ARG002
        assert version == STUDYS
        with self.stage.client() as client:
            client.connect(arm, self.stage.pair.connect[arm].single)
            began = time.monotonic()
            client.queries(arm, ["BEGIN", *statements, "COMMIT"], timeout=ANSWER_SECONDS)
            self.statements_s = time.monotonic() - began
        return 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[HostSample]]:
        server, cpus = self.stage.pair.server, self.stage.pair.server_cpus
        rows: list[HostSample] = []
        only = min(cpus) if len(cpus) == 1 else None
        with sar.Sar(server.pid if server else 0, self.stage.record.settings["interval_s"], only) as host:
            yield rows
        rows += host.rows

    def seen(self, arm: Arm, operation: str, records: int, where: Mapping[str, float]) -> dict[str, list[float]]:
        """Whether PostgreSQL compiled the plan of its SELECT of all notifications, which depends on its row estimate; once per load."""
        series = {STATEMENTS: [self.statements_s]}
        if operation == "select" and self.bench.engine.name == "postgresql" and where.get("run") == 1:
            select = self.texts.of(arm, STUDYS, "select", records)[0]
            rows = self.stage.agent.query(arm, f"EXPLAIN ANALYZE {select}", timeout=ANSWER_SECONDS)
            series[COMPILED] = list(compiled(rows))
        return series


class Interleaved(Cycles):
    design = INTERLEAVED


class Pilot(Cycles):
    """One cycle of each version and arm at the smallest load: it warms up everything and measures how long a cycle takes."""

    design = PILOT

    def __init__(self, stage: Stage, texts: CycleStatements, began: float) -> None:
        super().__init__(stage, texts, began)
        self.seconds: dict[str, float] = {}
        """Seconds of a cycle, mean of both arms, by version."""

    @property
    def total(self) -> float:
        return len(ARMS) * sum(self.seconds.values())

    def seen(self, arm: Arm, operation: str, records: int, where: Mapping[str, float]) -> dict[str, list[float]]:  # noqa: ARG002
        """After an encrypted INSERT: the number of states' names, of different names, and of different stored values."""
        if arm == "plain" or operation != "insert":
            return {}
        stored = self.stage.agent.query(
            arm, "SELECT COUNT(*), COUNT(DISTINCT name) FROM state", timeout=ANSWER_SECONDS
        )[0]
        return {COUNTED: [float(stored[0] or 0), float(self.texts.states(records)), float(stored[1] or 0)]}

    def run(self, load: int) -> None:
        for version in VERSIONS:
            began = time.monotonic()
            for arm in ARMS:
                self.cycle(arm, version, load, {})
            self.seconds[version] = (time.monotonic() - began) / len(ARMS)
            self.stage.say(
                f"pilot: {self.bench.cell.engine} {self.bench.installation.version}, {version}, {load:,} records: "
                f"{self.seconds[version]:.1f} s a cycle"
            )


# ── statements ────────────────────────────────────────────────────────────────────────────────────────────────────────


def program_of(program: Program, select: Script) -> Program:
    """A program with this script as its only operation."""
    return msgspec.structs.replace(program, transactions=(("select", 1, select),))


def compiled(explained: Sequence[Sequence[str | None]]) -> tuple[float, float]:
    """Milliseconds from PostgreSQL's EXPLAIN ANALYZE for compiling (0: none) and for executing. Pure."""
    text = "\n".join(str(row[0]) for row in explained)
    compiling = re.search(r"^\s*Timing:.* Total ([\d.]+) ms", text, re.MULTILINE)
    executing = re.search(r"^Execution Time: ([\d.]+) ms", text, re.MULTILINE)
    return float(compiling[1]) if compiling else 0.0, float(executing[1]) if executing else 0.0
