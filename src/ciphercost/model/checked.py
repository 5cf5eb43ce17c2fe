"""checked: bytes of a record -> values that are possible, or a UsageError that names file and place. Pure.

Three steps, and every reader of a record takes all of them: `decode` checks shapes and ranges (the ranges stand in `model`), `Slices`
and `facts` check what only several fields together can show, `computing` and `finite` refuse figures that cannot be computed. So
that damage ends in one line: neither in a traceback nor in a number.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts
from ciphercost.model.slices import SliceRecord, StorageSlice
from ciphercost.model.terms import FORMAT, PLAN_FORMAT

T = TypeVar("T")

REMEDY = "the record is damaged: restore the file from a copy, or measure again"
DEEPEST = 32
"""Levels of lists and objects in a value of free shape."""
LARGEST = 2**63 - 1
LONGER = 1.05
"""The counted part of a slice ÷ the length asked for, at most; the agent's clock and ours are not one."""
MOST_CORES = 4096
"""More than any machine has. Our own cores are no bound: a server may run on cores that ciphercost was not given."""
CPU_SLACK_NS = 10e9
"""A virtual machine that stands still, or a process that waits for a core, ends its slice late and is charged for more than it."""
COUNTED = ("capacity", "latency")


class Whole(Protocol):
    """A record that says which format it is of."""

    format: int


W = TypeVar("W", bound=Whole)


def damaged(where: object, what: object) -> UsageError:
    """The error of a record that holds something impossible. `where`: file, and line where it has lines."""
    return UsageError(f"{where}: {' '.join(str(what).split())}; {REMEDY}")


# ── shapes and ranges ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode(content: bytes, decoder: msgspec.json.Decoder[T], where: object) -> T:
    """One JSON value as the record that the decoder makes. Raises UsageError, whatever the bytes are."""
    try:
        made = decoder.decode(content)
    except RecursionError:
        raise damaged(where, "lists or objects are nested too deeply") from None
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise damaged(where, short(error)) from None
    return made


def whole(path: Path, kind: type[W], newest: int = FORMAT) -> W:
    """A file that is one record with its format. Raises UsageError where it is damaged or of a format newer than `newest`."""
    content = read(path)
    if decode(content, msgspec.json.Decoder(Versioned), path).format > newest:
        raise UsageError(f"{path} was written by a newer ciphercost; update this one to read it")
    made = decode(content, msgspec.json.Decoder(kind), path)
    plain(msgspec.to_builtins(made), path)
    return made


def toml(path: Path) -> dict[str, Any]:
    """A TOML file. Raises UsageError, whatever its bytes are."""
    content = read(path)
    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise UsageError(f"{path} is not TOML: lists or tables are nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path} is not TOML: {short(error)}") from None


def ranged(value: msgspec.Struct, where: str) -> None:
    """Raises UsageError where a number of a record that was made here lies outside its range."""
    try:
        msgspec.convert(msgspec.to_builtins(value), type(value))
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {short(error)}") from None


class Versioned(msgspec.Struct):
    format: int = 0


def read(path: Path) -> bytes:
    """The bytes of a file. Raises UsageError where it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None


def short(error: Exception) -> str:
    """The decoder's words, with the field's path as people write it. Pure."""
    text = str(error)
    if "integer string conversion" in text:
        return "a number has too many digits"
    return text.replace(" - at `$.", " in `").replace(" - at `$", " in `").replace(" in ``", "")


def plain(value: object, where: object, depth: int = 0) -> None:
    """Raises UsageError where a value of free shape is too deep, or holds a number that no counter can."""
    if depth > DEEPEST:
        raise damaged(where, "lists or objects are nested too deeply")
    match value:
        case bool() | str() | None:
            return
        case int():
            if abs(value) > LARGEST:
                raise damaged(where, f"a number of {digits(value)} digits")
        case float():
            if not math.isfinite(value):
                raise damaged(where, f"a number that is {value}")
        case Mapping():
            for each in value.values():
                plain(each, where, depth + 1)
        case Sequence():
            for each in value:
                plain(each, where, depth + 1)


def digits(value: int) -> int:
    """Of a whole number, without writing it out: Python refuses to for very long ones. Pure."""
    return int(value.bit_length() * math.log10(2)) + 1


# ── plan.json and checkpoint.json ─────────────────────────────────────────────────────────────────────────────────────


def facts(path: Path) -> RunFacts:
    """A run's facts. Raises UsageError where they are damaged, contradict each other, or are of a newer format."""
    made = whole(path, RunFacts, PLAN_FORMAT)
    if len(made.cells) != len(made.spec.cells):
        raise damaged(path, f"`cells` has {len(made.cells)} cells and `spec.cells` has {len(made.spec.cells)}")
    for number, cell in enumerate(made.cells):
        if made.format >= PLAN_FORMAT and cell.registered is None:
            raise damaged(path, f"cell {number + 1}: `registered` is missing")
        if cell.control is not None and cell.control >= len(made.cells):
            raise damaged(
                path, f"cell {number + 1}: `control` is {cell.control}, and there are {len(made.cells)} cells"
            )
        if (problem := of_cell(cell)) or (problem := "" if cell.spec == made.spec.cells[number] else "spec differs"):
            raise damaged(path, f"cell {number + 1}: {problem}")
    return made


def of_cell(cell: CellFacts) -> str:
    """What is impossible about a cell's facts; empty: nothing. Pure."""
    if len(set(cell.whole_sessions)) < len(cell.whole_sessions):
        return "`whole_sessions` names a session twice"
    if cell.handshakes and set(cell.handshakes) != {"full", "resumed"}:
        return "`handshakes` must have `full` and `resumed`"
    return ""


# ── slices.jsonl and storage.jsonl ────────────────────────────────────────────────────────────────────────────────────


class Slices:
    """Takes the slices of a record in its order. `cells`: the run's, where they are known."""

    def __init__(self, known: RunFacts | None) -> None:
        self._cells = None if known is None else known.cells
        self._last: dict[tuple[int, int, str], tuple[int, int]] = {}
        self._started: dict[tuple[int, int], float] = {}

    def check(self, record: SliceRecord, where: object) -> None:
        """Raises UsageError where this slice is impossible, or can't follow those before it."""
        problem = outside(record.cell, self._cells) or in_order(record) or (record.error and "ok")
        if problem == "ok":  # a failed slice's figures are never used
            problem = ""
        elif not problem and record.agent is not None:
            clients = self._cells[record.cell].clients if self._cells else 0
            problem = answer(record, clients) or cpu_time(record)
        if problem or (problem := self._follows(record)):
            raise damaged(where, problem)

    def _follows(self, record: SliceRecord) -> str:
        session = record.cell, record.session
        if record.started < self._started.get(session, 0.0):
            return f"`started` {record.started:g} lies before the slice before it ({self._started[session]:g})"
        self._started[session] = record.started
        if record.phase in COUNTED:
            place = record.block, record.position
            if place <= self._last.get((*session, record.phase), (-1, -1)):
                return f"block {record.block}, position {record.position} stands twice, or in the wrong order"
            self._last[(*session, record.phase)] = place
        return ""


def cpu_time(record: SliceRecord) -> str:
    """What is impossible about the CPU time of a slice; empty: nothing. Pure."""
    agent, counters = record.agent, record.counters
    if agent is None:
        return ""
    spent = {"cpu_user_ns + cpu_system_ns": (agent.cpu_user_ns + agent.cpu_system_ns, agent.seconds * 1e9)}
    if counters is not None:
        window = counters.window_ns
        spent |= {
            "server_cpu_ns": (counters.server_cpu_ns, window),
            "server_user_ns + server_system_ns": (counters.server_user_ns + counters.server_system_ns, window),
            "foreign_cpu": (round(counters.foreign_cpu * window), window),
        }
    for name, (used, there) in spent.items():
        if used > MOST_CORES * there + CPU_SLACK_NS:
            return f"`{name}` is {used / 1e9:.3g} s of CPU time in {there / 1e9:.3g} s"
    return ""


def outside(cell: int, cells: Sequence[CellFacts] | None) -> str:
    """That there is no such cell; empty: there is. Pure."""
    if cells is None or cell < len(cells):
        return ""
    return f"a slice of cell {cell}, and plan.json has {len(cells)} cells: they are not of one run"


def in_order(record: SliceRecord | StorageSlice) -> str:
    """What is wrong with the place of a slice in its block; empty: nothing. Pure."""
    if isinstance(record, SliceRecord) and record.phase not in COUNTED:
        return ""
    if record.position > 4:
        return f"`position` {record.position}: a block has positions 0 to 4"
    if record.order not in ("ABBA", "BAAB"):
        return f"`order` must be ABBA or BAAB, not '{record.order[:20]}'"
    arm = "plain" if (record.order[0] + record.order)[record.position] == "A" else "encrypted"
    if record.arm != arm:
        return f"position {record.position} of {record.order} is of the {arm} arm, not of the {record.arm} one"
    return ""


def answer(record: SliceRecord, clients: int) -> str:
    """What is impossible about an agent's answer; empty: nothing. `clients`: connections; 0: not known. Pure."""
    agent = record.agent
    if agent is None:
        return ""
    if agent.arm != record.arm:
        return f"the agent answered for arm '{agent.arm[:20]}', and the slice is of the {record.arm} one"
    if agent.seconds > LONGER * record.length + 0.01:
        return f"`agent.seconds` {agent.seconds:g} is longer than the slice ({record.length:g} s)"
    if agent.done and not agent.seconds:
        return f"{agent.done:g} operations in 0 s"
    # Each connection has at most one operation in flight at either edge; where a rate is kept, those that queue come on top. The bound
    # is wide: a real slice after a stall must not be taken for damage.
    few, many = sorted((agent.work, float(agent.operations)))
    if clients and agent.work and many > 100 * (few + clients + 1):
        return f"`agent.operations` {agent.operations} and `agent.work` {agent.work:g} can't be of one slice"
    return ""


def storage(record: StorageSlice, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError where a slice of fio's is impossible."""
    problem = outside(record.cell, cells) or in_order(record)
    if not problem and not record.error and not (record.operations and record.bytes and record.seconds):
        problem = f"{record.operations} operations and {record.bytes} bytes in {record.seconds:g} s, and no `error`"
    if problem:
        raise damaged(where, problem)


def histogram(record: SliceRecord, total: int) -> None:
    """Raises UsageError where a slice's histogram does not hold one latency for each operation."""
    if record.agent is not None and total != record.agent.operations:
        place = f"cell {record.cell}, session {record.session}, block {record.block}, position {record.position}"
        raise damaged(
            f"slices.jsonl, {place}",
            f"the histogram holds {total} latencies, and the slice has {record.agent.operations} operations",
        )


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def computing(what: object) -> Iterator[None]:
    """Raises UsageError where a record can be read and its figures can't be computed. `what`: the file or directory."""
    try:
        yield
    except (ArithmeticError, LookupError, ValueError, RecursionError) as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else "?"
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise damaged(what, f"no figures can be computed from it ({at}, {said})") from error


def finite(result: object, where: object) -> None:
    """Raises UsageError where a figure of a result is not a number, or is not finite."""
    plain(msgspec.to_builtins(result), where)
