"""round_trips: what an operation sends: statements by kind, as the server counts them, and bytes and round trips on the
wire.

This happens outside the measured slices, on one connection per arm. Two runs of different lengths are compared, so that
one-time work (login, preparing statements, session queries) is in neither figure. Statements are counted only on
servers that ciphercost starts: it never turns on logging on your own.
"""

from __future__ import annotations

import functools
import math
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ciphercost.engines.capabilities.connections import EncryptsConnections
from ciphercost.host import deadlines
from ciphercost.host.relay import Relay
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import options
from ciphercost.load.plaintext_guard import encrypted_first
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import ARMS, CellSpec

if TYPE_CHECKING:
    from ciphercost.provision.prepared_cell import PreparedCell
    from ciphercost.provision.server_pair import ServerPair

FEW, OPERATIONS = 10, 200
"""Operations of the shorter run, and how many more the longer one has."""
LONGEST = 1.5
"""Seconds that the longer run should take. Slow operations get fewer repetitions."""
LEAST = 10
LONGEST_KIND = 100
"""Characters of a statement."""
MOST_KINDS, OTHERS = 20, "other statements"
LOG_SECONDS = 10.0
ARM = "chatter"
Counts = dict[str, float]


def wanted(bench: PreparedCell) -> bool:
    """Whether the cell records what an operation sends: a JDBC driver makes it, or the workload is about that."""
    return (
        (bench.planned.client is not None or bench.program.loop)
        and not bench.engine.embedded
        and bench.engine.language == "sql"
        and bench.mechanism.layer in ("transit", "control")
    )


def measure(bench: PreparedCell, pair: ServerPair, agent: Agent) -> tuple[dict[str, Counts], dict[str, Counts]]:
    """(statements, traffic) by arm, per operation. The agent's program is the cell's. What can't be counted is left
    out.
    """
    statements: dict[str, Counts] = {}
    traffic: dict[str, Counts] = {}
    for arm in encrypted_first(pair.connect):
        connection = pair.connect[arm].alone
        by = agent.of(arm)
        traffic[arm], few, operations = through_a_relay(by, connection, together(bench.cell), pair.directory)
        if bench.cell.url or bench.engine.driver not in LOGS:
            continue
        with Agent(log=bench.logs / "agent.log") as control:
            control.connect("control", pair.direct[arm].single)
            log = LOGS[bench.engine.driver](control, bench.logs, bench.installation.engine)
            counted = log.counted(
                agent.of(arm), connection, few, operations, EncryptsConnections.of(bench.engine).tls_witness
            )
        statements[arm] = counted
    return statements, traffic


def together(cell: CellSpec) -> int:
    """Operations that are executed or committed together; a run consists of whole lots of this size. Pure.

    With one commit per run, whatever its length, two runs differ only in their operations.
    """
    given = cell.factors
    batch = int(given.get("batch", options.USUAL_BATCH)) if given.get("how") == "batch" else 1
    commit = given.get("commit_every", "1")
    return batch if commit == options.END else math.lcm(batch, int(commit))


def through_a_relay(
    agent: Agent, connection: Connection, lot: int = 1, directory: Path | None = None
) -> tuple[Counts, int, int]:
    """Bytes and round trips per operation; operations of the shorter run; how many more the longer one may have. `directory`: as
    `Relay.before` has it.
    """
    few = math.ceil(FEW / lot) * lot
    with Relay.before(connection, directory) as relay:
        agent.connect(ARM, relay.moved(connection))
        began = time.monotonic()
        _operate(agent, few)
        operation_seconds = (time.monotonic() - began) / few
        wished = max(LEAST, min(OPERATIONS, round(LONGEST / max(operation_seconds, 1e-6))))
        operations = math.ceil(wished / lot) * lot
        seen = [(0, 0, 0)]
        for count in (few, few + operations):
            before = relay.sent, relay.received, relay.turns
            _operate(agent, count)
            after = _settled(relay)
            seen.append((after[0] - before[0], after[1] - before[1], after[2] - before[2]))
        agent.disconnect(ARM)
    names = ("bytes_sent", "bytes_received", "round_trips")
    return (
        {name: _round((more - less) / operations) for name, less, more in zip(names, seen[1], seen[2], strict=True)},
        few,
        operations,
    )


def _settled(relay: Relay) -> tuple[int, int, int]:
    """What has passed, once nothing more arrives: a connection's last bytes follow its last operation.

    Raises AgentError if the server never stops sending.
    """
    until = time.monotonic() + deadlines.login()
    while time.monotonic() < until:
        before = relay.sent, relay.received, relay.turns
        time.sleep(0.05)
        if before == (relay.sent, relay.received, relay.turns):
            return before
    raise AgentError(f"the server is still sending {deadlines.login():g} s after its last answer", deadlines.TIMEOUT)


def _operate(agent: Agent, operations: int) -> None:
    """Run operations. Raises AgentError if one fails."""
    answer = agent.slice(ARM, 120, discard=0.0, seed=7, operations=operations)
    if answer.errors:
        raise AgentError(f"counting statements: {answer.first_error}", "statement")


def _round(value: float) -> float:
    return round(value, 3)


# ── what servers count ────────────────────────────────────────────────────────────────────────────────────────────────


class Log(ABC):
    """A place where a server records the statements it receives."""

    def __init__(self, control: Agent, logs: Path, name: str) -> None:
        """`control`: an agent whose arm `control` is a separate session; `logs`: the run's; `name`: the engine's."""
        self.control = control
        self.logs = logs
        self.name = name

    def counted(self, agent: Agent, connection: Connection, few: int, operations: int, witness: str) -> Counts:
        """How many statements of each kind an operation sends."""
        self.prepare()
        try:
            agent.connect(ARM, connection)
            _operate(agent, few)  # prepares the statements that are kept
            less, more = (
                self.of(functools.partial(_operate, agent, count), witness) for count in (few, few + operations)
            )
            agent.disconnect(ARM)
        finally:
            self.restore()
        rates = {kind: _round((more[kind] - less[kind]) / operations) for kind in {*less, *more}}
        return frequent({kind: rate for kind, rate in rates.items() if rate > 0})

    def prepare(self) -> None:  # noqa: B027 - some write anyway
        """Turn the server's log on."""

    def restore(self) -> None:  # noqa: B027
        """Restore the server's settings."""

    @abstractmethod
    def of(self, run: Callable[[], None], witness: str) -> Counter[str]:
        """What is counted while this runs."""


class GeneralLog(Log):
    """MySQL and MariaDB: every command, in a table of the server's."""

    def prepare(self) -> None:
        (row,) = self.control.query("control", "SELECT @@GLOBAL.log_output, @@GLOBAL.general_log, CONNECTION_ID()")
        self._was, self._own = (str(row[0]), str(row[1])), str(row[2])
        self.control.query("control", "SET GLOBAL log_output = 'TABLE'")

    def restore(self) -> None:
        self.control.query("control", f"SET GLOBAL general_log = {self._was[1]}")
        self.control.query("control", f"SET GLOBAL log_output = '{self._was[0]}'")
        self.control.query("control", "TRUNCATE TABLE mysql.general_log")

    def of(self, run: Callable[[], None], witness: str) -> Counter[str]:
        self.control.query("control", "TRUNCATE TABLE mysql.general_log; SET GLOBAL general_log = ON")
        run()
        time.sleep(0.1)  # for the last connection to end
        self.control.query("control", "SET GLOBAL general_log = OFF")
        rows = self.control.query(
            "control",
            "SELECT command_type, LEFT(CONVERT(argument USING utf8mb4), 2000), COUNT(*) FROM mysql.general_log "
            f"WHERE thread_id <> {self._own} GROUP BY 1, 2",
        )
        counts: Counter[str] = Counter()
        for command, text, count in rows:
            if (text or "").strip() != witness:
                counts[kind(str(command), text or "", double=True)] += int(str(count))
        return counts


class Output(Log):
    """PostgreSQL: every statement, through `log_statement`, in the server's output."""

    def prepare(self) -> None:
        # For sessions that begin from now on.
        self.control.query("control", "ALTER ROLE CURRENT_USER SET log_statement = 'all'")
        self.control.query("control", "ALTER ROLE CURRENT_USER SET log_min_error_statement = 'panic'")
        ((directory,),) = self.control.query("control", "SELECT current_setting('data_directory')")
        self._file = self.logs / f"postgresql-{Path(str(directory)).name}.log"

    def restore(self) -> None:
        self.control.query("control", "ALTER ROLE CURRENT_USER RESET ALL")

    def of(self, run: Callable[[], None], witness: str) -> Counter[str]:
        begin = self._file.stat().st_size
        run()
        mark = f"ciphercost_end_{time.monotonic_ns()}"
        # A server writes in order: once this line is there, so is everything before it.
        try:
            self.control.query("control", f"DO $$ BEGIN RAISE LOG '{mark}'; END $$")
        except AgentError:
            time.sleep(1)
        deadline = time.monotonic() + LOG_SECONDS
        while True:
            with self._file.open("rb") as file:
                file.seek(begin)
                text = file.read().decode(errors="replace")
            if mark in text or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        return statements_in(text, witness)


class Monitor(Log):
    """Firebird: no statements, but transactions and rows, as its monitoring tables count them for the whole database."""

    NAMES = ("transactions", "rows read", "rows inserted", "rows updated", "rows deleted")

    def of(self, run: Callable[[], None], witness: str) -> Counter[str]:  # noqa: ARG002
        before = self._look()
        run()
        after = self._look()
        return Counter({name: later - former for name, former, later in zip(self.NAMES, before, after, strict=True)})

    def _look(self) -> list[int]:
        (row,) = self.control.query(
            "control",
            "SELECT d.MON$NEXT_TRANSACTION, r.MON$RECORD_SEQ_READS + r.MON$RECORD_IDX_READS, r.MON$RECORD_INSERTS, "
            "r.MON$RECORD_UPDATES, r.MON$RECORD_DELETES FROM MON$DATABASE d "
            "JOIN MON$RECORD_STATS r ON r.MON$STAT_ID = d.MON$STAT_ID",
        )
        return [int(str(value)) for value in row]


LOGS: dict[str, Callable[[Agent, Path, str], Log]] = {"mysql": GeneralLog, "postgres": Output, "firebird": Monitor}
"""Keyed by the Rust agent's driver."""


# ── kinds ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_LITERAL = re.compile(
    # The log holds only the beginning of a long statement, so a truncated text has no closing quote.
    r"(?:_\w+\s*)?'(?:[^'\\]|\\.|'')*(?:'|\\?$)|\b0x[0-9a-fA-F]+\b|\b\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b|\$\d+"
)
_DOUBLE = re.compile(r'"(?:[^"\\]|\\.|"")*(?:"|\\?$)')
"""A text in MySQL and MariaDB; a name in other databases."""
_ROWS = re.compile(r"(\((?:\s*\?\s*,?)+\))(?:\s*,\s*\((?:\s*\?\s*,?)+\))+")


def kind(command: str, text: str, *, double: bool = False) -> str:
    """The kind of a command, without its values: `INSERT INTO t (a) VALUES (?)`. Pure.

    `command`: MySQL's name for it: Query, Prepare, Execute, Connect, Quit, …; `double`: text in double quotes is a
    value too.
    """
    words = re.sub(r"^/\*.*?\*/\s*", "", " ".join(text.split()))
    words = _DOUBLE.sub("?", words) if double else words
    # The log holds only the beginning of a long batch.
    words = re.sub(r"(, …).*", r"\1", _ROWS.sub(r"\1, …", _LITERAL.sub("?", words)))
    words = words if len(words) <= LONGEST_KIND else words[: LONGEST_KIND - 1] + "…"
    if command in ("Query", "Execute"):
        return words or command.lower()
    return f"{command.lower()}: {words}" if command == "Prepare" and words else command.lower()


def statements_in(text: str, witness: str) -> Counter[str]:
    """Statements by kind in PostgreSQL's log output. Pure."""
    counts: Counter[str] = Counter()
    entry = re.compile(r"^\S.*?LOG:  (?:statement|execute [^:]*): (.*(?:\n\t.*)*)", re.MULTILINE)
    for match in entry.finditer(text):
        if " ".join(match[1].split()) != " ".join(witness.split()):
            counts[kind("Query", match[1])] += 1
    return counts


def frequent(rates: Mapping[str, float]) -> Counts:
    """The most frequent first; beyond MOST_KINDS, the rest are summed up. Pure."""
    ordered = sorted(rates.items(), key=lambda item: (-item[1], item[0]))
    rest = math.fsum(rate for _, rate in ordered[MOST_KINDS:])
    return dict(ordered[:MOST_KINDS]) | ({OTHERS: _round(rest)} if rest else {})


def unlike(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    """Kinds of statement that two clients send in different numbers. Pure."""
    return [name for name in sorted({*one, *other}) if abs(one.get(name, 0.0) - other.get(name, 0.0)) > 0.01]


def differences(reference: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Describe what `unlike` returns: `1 × SELECT @@session.transaction_read_only (there 0)`. Pure."""
    return "; ".join(
        f"{other.get(name, 0.0):g} × {name} (there {reference.get(name, 0.0):g})" for name in unlike(reference, other)
    )


def lines(
    chatter: Mapping[str, Mapping[str, float]], traffic: Mapping[str, Mapping[str, float]] | None = None
) -> Iterable[str]:
    """Lines for the report, beside the cost: `each operation: 1 INSERT INTO …; 1 SELECT …`. Pure."""
    arms = [arm for arm in ARMS if arm in chatter]
    if not arms:
        pass
    elif all(not unlike(chatter[arms[0]], chatter[arm]) for arm in arms):
        yield f"each operation, by the server's count: {_told(chatter[arms[0]])}"
    else:
        for arm in arms:
            yield f"each operation, {arm}, by the server's count: {_told(chatter[arm])}"
    if traffic and all(arm in traffic for arm in ARMS):
        both = [traffic[arm] for arm in ARMS]
        trips = " → ".join(f"{counts['round_trips']:g}" for counts in both)
        sizes = " → ".join(f"{counts['bytes_sent'] + counts['bytes_received']:,.0f}" for counts in both)
        yield f"each operation, on the wire (plain → encrypted): {trips} round trips, {sizes} bytes"


def _told(counts: Mapping[str, float]) -> str:
    return "; ".join(f"{rate:g} × {name}" for name, rate in counts.items()) or "nothing"
