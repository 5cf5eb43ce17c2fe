"""Decode and check records. A damaged record raises a UsageError with file and place.

Every reader takes three steps. `decode` checks shapes and ranges, which the types of `model` declare. `Slices` and `facts`
check what only several fields together show. `computing` and `finite` reject figures that can't be computed. So damage
becomes one error message, never a traceback or a wrong number.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ciphercost.model import bounds
from ciphercost.model.connection_memory import MemoryLevel
from ciphercost.model.constrained_types import FORMAT, PLAN_FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.profile import ProfileSlice
from ciphercost.model.replication import ReplicationEvent
from ciphercost.model.slices import SliceRecord, StorageSlice
from ciphercost.model.spec import COUNTED, Phase
from ciphercost.model.storms import StormSlice

T = TypeVar("T")
MadeT = TypeVar("MadeT", covariant=True)

REMEDY = "the record is damaged; restore the file from a copy, or measure again"
DEEPEST = 32
"""Most levels of nested lists and objects in a value without a fixed shape."""
LARGEST = 2**63 - 1
LONGER = 1.05
"""Largest measured length of a slice ÷ its requested length; agent and controller have different clocks."""
MOST_CORES = 4096
"""More cores than any machine has. The cores of this process are no limit: a server may run on others."""
CPU_SLACK_NS = 10e9
"""A paused virtual machine, or a process that waits for a core, ends its slice late, so its CPU time exceeds the slice."""
IN_BLOCKS: tuple[Phase, ...] = (*COUNTED, "profile")
"""Phases whose slices form blocks."""


class Whole(Protocol):
    """A record with a format number."""

    @property
    def format(self) -> int: ...


W = TypeVar("W", bound=Whole)


def damaged(where: object, what: object) -> UsageError:
    """The error for a record that holds something impossible. `where`: the file, and the line if it has lines."""
    return UsageError(f"{where}: {' '.join(str(what).split())}; {REMEDY}")


# ── shapes and ranges ─────────────────────────────────────────────────────────────────────────────────────────────────


class Decoder(Protocol[MadeT]):
    """Makes a record of JSON, as `msgspec.json.Decoder` does."""

    def decode(self, content: bytes, /) -> MadeT: ...


def decode(content: bytes, decoder: Decoder[T], where: object) -> T:
    """Decode one JSON value into a record. Raises UsageError for any bytes that are not such a record."""
    try:
        record = decoder.decode(content)
    except RecursionError:
        raise damaged(where, "lists or objects are nested too deeply") from None
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise damaged(where, short(error)) from None
    return record


def whole(path: Path, kind: type[W], newest: int = FORMAT) -> W:
    """Read a file that holds one record. Raises UsageError if it is damaged or its format is newer than `newest`."""
    content = read(path)
    if decode(content, msgspec.json.Decoder(Versioned), path).format > newest:
        raise UsageError(f"{path}: written by a newer version of ciphercost; update ciphercost to read it")
    record = decode(content, msgspec.json.Decoder(kind), path)
    plain(msgspec.to_builtins(record), path)
    return record


def toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raises UsageError if it is not valid TOML."""
    content = bounds.readable(path, bounds.SPEC)
    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise UsageError(f"{path}: not valid TOML: lists or tables are nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path}: not valid TOML: {short(error)}") from None


def ranged(value: msgspec.Struct, where: str) -> None:
    """Raises UsageError if a number of a record created here is out of range."""
    try:
        msgspec.convert(msgspec.to_builtins(value), type(value))
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {short(error)}") from None


class Versioned(msgspec.Struct):
    format: int = 0


def read(path: Path) -> bytes:
    """The bytes of a record's file. Raises UsageError if it can't be read or is too large."""
    return bounds.readable(path, bounds.RECORD)


def short(error: Exception) -> str:
    """The decoder's message, with the field's path in readable form. Pure."""
    text = str(error)
    if "integer string conversion" in text:
        return "a number has too many digits"
    return text.replace(" - at `$.", " in `").replace(" - at `$", " in `").replace(" in ``", "")


def plain(value: object, where: object, depth: int = 0) -> None:
    """Raises UsageError if a value without a fixed shape is nested too deeply or holds a number that no counter can hold."""
    if depth > DEEPEST:
        raise damaged(where, "lists or objects are nested too deeply")
    match value:
        case bool() | str() | None:
            return
        case int():
            if abs(value) > LARGEST:
                raise damaged(where, f"a number has {digits(value)} digits")
        case float():
            if not math.isfinite(value):
                raise damaged(where, f"a number is {value}")
        case Mapping():
            for item in value.values():
                plain(item, where, depth + 1)
        case Sequence():
            for item in value:
                plain(item, where, depth + 1)


def digits(value: int) -> int:
    """Number of digits of an integer. Does not convert it to text, which Python refuses for very long integers. Pure."""
    return int(value.bit_length() * math.log10(2)) + 1


# ── plan.json and checkpoint.json ─────────────────────────────────────────────────────────────────────────────────────


def facts(path: Path) -> RunFacts:
    """A run's facts. Raises UsageError if they are damaged, contradict each other, or have a newer format."""
    run_facts = whole(path, RunFacts, PLAN_FORMAT)
    if len(run_facts.cells) != len(run_facts.spec.cells):
        raise damaged(
            path, f"`cells` has {len(run_facts.cells)} cells, but `spec.cells` has {len(run_facts.spec.cells)}"
        )
    for number, cell in enumerate(run_facts.cells):
        if run_facts.format >= PLAN_FORMAT and cell.registered is None:
            raise damaged(path, f"cell {number + 1}: `registered` is missing")
        if cell.control is not None and cell.control >= len(run_facts.cells):
            raise damaged(
                path, f"cell {number + 1}: `control` is {cell.control}, but there are {len(run_facts.cells)} cells"
            )
        if (problem := of_cell(cell)) or (
            problem := "" if cell.spec == run_facts.spec.cells[number] else "its spec differs from `spec.cells`"
        ):
            raise damaged(path, f"cell {number + 1}: {problem}")
    return run_facts


def of_cell(cell: CellFacts) -> str:
    """What is impossible about a cell's facts, or "". Pure."""
    if len(set(cell.whole_sessions)) < len(cell.whole_sessions):
        return "`whole_sessions` lists a session twice"
    if cell.handshakes and set(cell.handshakes) != {"full", "resumed"}:
        return "`handshakes` must have `full` and `resumed`"
    return ""


# ── slices.jsonl and storage.jsonl ────────────────────────────────────────────────────────────────────────────────────


class Slices:
    """Checks the slices of a record in their order. `known`: the run's facts, if they are known."""

    def __init__(self, known: RunFacts | None) -> None:
        self._cells = None if known is None else known.cells
        self._last: dict[tuple[int, int, str], tuple[int, int]] = {}
        self._started: dict[tuple[int, int], float] = {}

    def check(self, record: SliceRecord, where: object) -> None:
        """Raises UsageError if this slice is impossible or can't follow the earlier ones."""
        problem = outside(record.cell, self._cells) or in_order(record) or (record.error and "ok")
        if problem == "ok":  # the figures of a failed slice are never used
            problem = ""
        elif not problem and record.agent is not None:
            clients = self._cells[record.cell].clients if self._cells else 0
            problem = answer(record, clients) or cpu_time(record)
        if problem or (problem := self._follows(record)):
            raise damaged(where, problem)

    def _follows(self, record: SliceRecord) -> str:
        session = record.cell, record.session
        if record.started < self._started.get(session, 0.0):
            return (
                f"`started` {record.started:g} is before the start of the previous slice ({self._started[session]:g})"
            )
        self._started[session] = record.started
        if record.phase in IN_BLOCKS:
            place = record.block, record.position
            if place <= self._last.get((*session, record.phase), (-1, -1)):
                return f"block {record.block}, position {record.position} occurs twice or out of order"
            self._last[(*session, record.phase)] = place
        return ""


def cpu_time(record: SliceRecord) -> str:
    """What is impossible about the CPU time of a slice, or "". Pure."""
    agent, counters = record.agent, record.counters
    if agent is None:
        return ""
    spent = {"cpu_user_ns + cpu_system_ns": (agent.cpu_user_ns + agent.cpu_system_ns, agent.seconds * 1e9)}
    if counters is not None:
        window = counters.window_ns
        spent |= {
            "server_cpu_ns": (counters.server_cpu_ns, window),
            "server_user_ns + server_system_ns": (counters.server_user_ns + counters.server_system_ns, window),
            "hop_cpu_ns": (counters.hop_cpu_ns, window),
            "foreign_cpu": (round(counters.foreign_cpu * window), window),
        }
    for name, (used, there) in spent.items():
        if used > MOST_CORES * there + CPU_SLACK_NS:
            return f"`{name}` is {used / 1e9:.3g} s of CPU time in {there / 1e9:.3g} s"
    return ""


def outside(cell: int, cells: Sequence[CellFacts] | None) -> str:
    """Why a cell number is impossible, or "". Pure."""
    if cells is None or cell < len(cells):
        return ""
    return f"a slice of cell {cell}, but plan.json has {len(cells)} cells; they belong to different runs"


def in_order(record: SliceRecord | StorageSlice | ProfileSlice | StormSlice | ReplicationEvent) -> str:
    """What is wrong with the place of a slice in its block, or "". Pure."""
    if isinstance(record, SliceRecord) and record.phase not in IN_BLOCKS:
        return ""
    if record.position > 4:
        return f"`position` {record.position}: a block has positions 0 to 4"
    if record.order not in ("ABBA", "BAAB"):
        return f"`order` must be ABBA or BAAB, not '{record.order[:20]}'"
    arm = "plain" if (record.order[0] + record.order)[record.position] == "A" else "encrypted"
    if record.arm != arm:
        return f"position {record.position} of {record.order} belongs to the {arm} arm, not to the {record.arm} arm"
    return ""


def answer(record: SliceRecord, clients: int) -> str:
    """What is impossible about an agent's answer, or "". `clients`: connections; 0: not known. Pure."""
    agent = record.agent
    if agent is None:
        return ""
    if agent.arm != record.arm:
        return f"the agent answered for arm '{agent.arm[:20]}', but the slice belongs to the {record.arm} arm"
    # A command without {seconds} takes as long as it takes; its tool's clock may round.
    longest = record.reported.process_s + 0.1 if record.reported else record.length
    if agent.seconds > LONGER * longest + 0.01:
        return f"`agent.seconds` {agent.seconds:g} is longer than the slice ({longest:g} s)"
    if agent.done and not agent.seconds:
        return f"{agent.done:g} operations in 0 s"
    # Each connection has at most one operation in flight at either edge; in an open loop, queued operations add to that. The
    # bound is wide, so that a real slice after a stall does not look damaged.
    few, many = sorted((agent.work, float(agent.operations)))
    if clients and agent.work and many > 100 * (few + clients + 1):
        return f"`agent.operations` {agent.operations} and `agent.work` {agent.work:g} can't belong to one slice"
    return ""


def storage(record: StorageSlice, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError if a slice of fio is impossible."""
    problem = outside(record.cell, cells) or in_order(record)
    if not problem and not record.error and not (record.operations and record.bytes and record.seconds):
        problem = f"{record.operations} operations and {record.bytes} bytes in {record.seconds:g} s without an `error`"
    if problem:
        raise damaged(where, problem)


def storm(record: StormSlice, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError if a storm is impossible."""
    problem = outside(record.cell, cells) or in_order(record)
    if not problem and (record.kind == "saturated") != (record.rate == 0):
        problem = f"`rate` {record.rate:g} in a storm of kind {record.kind}: it is 0 if the kind is saturated, and above 0 otherwise"
    parts = {name: getattr(record, name) for name in ("before", "during", "after", "back")}
    if not problem and not record.error:
        missing = [name for name, answer in parts.items() if answer is None]
        longer = [
            name
            for name, answer in parts.items()
            if answer and name != "back" and answer.seconds > LONGER * record.length + 0.01
        ]
        problem = f"`{missing[0]}` is missing, without an `error`" if missing else ""
        problem = problem or (f"`{longer[0]}.seconds` is longer than the part ({record.length:g} s)" if longer else "")
    if problem:
        raise damaged(where, problem)


def memory(record: MemoryLevel, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError if a level of memory is impossible."""
    if problem := outside(record.cell, cells):
        raise damaged(where, problem)


def replication(record: ReplicationEvent, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError if what a replica did is impossible."""
    problem = outside(record.cell, cells) or in_order(record)
    if not problem and not record.error and not record.seconds:
        problem = "`seconds` is missing, without an `error`"
    if not problem and record.kind == "catch-up" and not record.error and not record.rows:
        problem = "`rows` is missing"
    if problem:
        raise damaged(where, problem)


def rotation(record: KeyRotationSlice, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError if a rotation of keys is impossible."""
    problem = outside(record.cell, cells)
    if not problem and record.quiet and not record.meanwhile_s:
        problem = "`quiet` without `meanwhile_s`"
    if problem:
        raise damaged(where, problem)


def profile(record: ProfileSlice, cells: Sequence[CellFacts] | None, where: object) -> None:
    """Raises UsageError if the samples of a slice are impossible."""
    samples = sum(stack.count for stack in record.stacks)
    problem = outside(record.cell, cells) or in_order(record)
    if not problem and any(frame >= len(record.frames) for stack in record.stacks for frame in stack.frames):
        problem = f"a stack has a frame beyond the {len(record.frames)} in `frames`"
    if not problem and sum(record.whole.values()) > samples:
        problem = f"`whole` has {sum(record.whole.values())} samples, but there are {samples}"
    if problem:
        raise damaged(where, problem)


def place(record: SliceRecord) -> str:
    """Where a slice's block stands in the record, for errors. Pure."""
    return f"slices.jsonl: session {record.session}, block {record.block}"


def histogram(record: SliceRecord, total: int) -> None:
    """Raises UsageError if a slice's histogram does not hold one latency for each operation."""
    if record.agent is not None and total != record.agent.operations:
        place = f"cell {record.cell}, session {record.session}, block {record.block}, position {record.position}"
        raise damaged(
            f"slices.jsonl, {place}",
            f"the histogram holds {total} latencies, but the slice has {record.agent.operations} operations",
        )


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def computing(what: object) -> Iterator[None]:
    """Raises UsageError if figures can't be computed from a readable record. `what`: the file or directory."""
    try:
        yield
    except (ArithmeticError, LookupError, ValueError, RecursionError) as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else "?"
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise damaged(what, f"figures can't be computed from it ({at}, {reason})") from error


def finite(result: object, where: object) -> None:
    """Raises UsageError if a figure of a result is not finite."""
    plain(msgspec.to_builtins(result, enc_hook=of_numpy), where)


def of_numpy(value: object) -> float | int | bool:
    """A number of numpy as Python's own, for encoders. Raises NotImplementedError for anything else."""
    if isinstance(value, int | float):  # numpy's float64 is one, but no encoder takes it for one
        return float(value)
    raise NotImplementedError(type(value).__name__)
