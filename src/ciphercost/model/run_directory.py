"""A run's directory. Runs write it early and append to it; estimates and reports read it. It never holds passwords or keys."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeVar

import msgspec

from ciphercost.model import bounds, checked, owned, pair
from ciphercost.model.connection_memory import MemoryLevel
from ciphercost.model.constrained_types import Count
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts, unmeasured
from ciphercost.model.imported import ImportedRecord
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.profile import ProfileSlice
from ciphercost.model.replication import ReplicationEvent
from ciphercost.model.result import Result
from ciphercost.model.slices import Proof, SliceRecord, StorageSlice
from ciphercost.model.storms import StormSlice
from ciphercost.model.study import StudyRecord

T = TypeVar("T", bound=msgspec.Struct)


def new_id() -> str:
    """A run's name: its start time, and six random letters in case two start in one second (four in older versions)."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(3)


def is_id(name: str) -> bool:
    """Whether `new_id` could have created this name."""
    return re.fullmatch(r"\d{8}-\d{6}-(?:[0-9a-f]{4}|[0-9a-f]{6})", name) is not None


def directory_for(run_id: str, wanted: Path | None) -> Path:
    """Create the run's directory with mode 0700. Raises UsageError if that fails or the directory is not empty."""
    path = wanted or Path("runs") / run_id
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(taken(path))
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_owner(path)
        path.chmod(0o700)
        # Check again, now that nobody else can write to it.
        if any(path.iterdir()):
            raise UsageError(taken(path))
        (path / "logs").mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(
            f"{path}: can't create the run's directory: {error.strerror}; give a writable directory with -o"
        ) from None
    return path


def taken(path: Path) -> str:
    """Message for a directory in which no run can start. Pure."""
    return (
        f"{path}: exists and is not an empty directory; ciphercost overwrites nothing, so give a new directory with -o"
    )


def check_owner(directory: Path) -> None:
    """Raises UsageError if a run's directory belongs to somebody else, who could redirect writes by links."""
    if (uid := directory.stat().st_uid) != os.geteuid():
        raise UsageError(
            f"{directory}: belongs to {owned.user(uid)}, not to you; use your own directory, or run ciphercost as that user"
        )


class Record:
    """An open run directory. Writes and flushes each slice at once, so a killed run loses at most the current slice.

    Locks the directory while it is open. Raises UsageError if another process has it open.
    """

    def __init__(self, directory: Path, facts: RunFacts, keep: Callable[[int, int], bool] | None = None) -> None:
        """`keep`: on resume, whether to keep the records of (cell, session)."""
        self.directory = directory
        self.facts = facts
        self._encoder = msgspec.json.Encoder()
        self._slices = open_locked(directory)
        self._proofs: list[dict[str, Any]] = []
        self._whole: dict[int, CellFacts] = {}
        if keep is not None:
            proofs = [(cell, proof) for cell, proof in read_proofs(directory) if keep(cell, proof.session)]
            self._proofs = [{"cell": cell, **msgspec.to_builtins(proof)} for cell, proof in proofs]
            self._keep(keep)
            self.checkpoint(*range(len(facts.cells)))
        self.save_facts()
        self._write("proofs.json", msgspec.json.format(self._encoder.encode(self._proofs)) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._slices.close()

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    def append(self, record: SliceRecord) -> None:
        append_whole(self._slices, self._encoder.encode(record) + b"\n")

    def append_beside(
        self, record: StorageSlice | ProfileSlice | StormSlice | MemoryLevel | ReplicationEvent | KeyRotationSlice
    ) -> None:
        """Append to the file of this kind of record, which exists only if there are such records."""
        with (self.directory / BESIDE[type(record)].file).open("ab", buffering=0) as file:
            append_whole(file, self._encoder.encode(record) + b"\n")

    def prove(self, cell: int, proofs: Iterable[Proof]) -> None:
        self._proofs += [{"cell": cell, **msgspec.to_builtins(proof)} for proof in proofs]
        self._write("proofs.json", msgspec.json.format(self._encoder.encode(self._proofs)) + b"\n")

    def checkpoint(self, *cells: int) -> None:
        """Save these cells as they are now, at the end of a complete session, and the others as last saved. Resume starts here."""
        for number in cells:
            self._whole[number] = msgspec.convert(msgspec.to_builtins(self.facts.cells[number]), CellFacts)
        fresh = (self._whole.get(number) or unmeasured(cell) for number, cell in enumerate(self.facts.cells))
        kept = msgspec.structs.replace(self.facts, cells=list(fresh))
        # Slices must reach the disk before the checkpoint that refers to them, even if the power fails.
        os.fsync(self._slices.fileno())
        self._write("checkpoint.json", self._encoder.encode(kept) + b"\n")

    def _keep(self, keep: Callable[[int, int], bool]) -> None:
        """Remove all other slices from the files."""
        read: dict[str, Callable[[Path], Iterator[Any]]] = {
            "slices.jsonl": read_slices,
            **{beside.file: partial(read_beside, kind=kind) for kind, beside in BESIDE.items()},
        }
        for name in read:
            if not (self.directory / name).is_file():
                continue
            temporary = self.directory / f".{name}.new"
            with temporary.open("wb") as file:
                for record in read[name](self.directory):
                    if keep(record.cell, record.session):
                        file.write(self._encoder.encode(record) + b"\n")
            if name == "slices.jsonl":
                # For a moment both files are locked, so that another process finds one of them locked.
                opened = open_locked(self.directory, temporary.name)
                os.replace(temporary, self.directory / name)  # noqa: PTH105
                self._slices.close()
                self._slices = opened
            else:
                os.replace(temporary, self.directory / name)  # noqa: PTH105

    def save_facts(self) -> None:
        self._write("plan.json", msgspec.json.format(self._encoder.encode(self.facts)) + b"\n")

    def seal(self) -> None:
        """Save the facts with the hashes of the files that are complete now: all that estimates read beside the facts."""
        self.facts.hashes = hashes(self.directory)
        self.save_facts()

    def save_result(self, result: Result) -> None:
        self._write("result.json", encode(result))

    def save_study(self, study: StudyRecord) -> None:
        self._write("study.json", msgspec.json.format(self._encoder.encode(study)) + b"\n")

    def save_imported(self, imported: ImportedRecord) -> None:
        self._write("imported.json", msgspec.json.format(self._encoder.encode(imported)) + b"\n")

    def _write(self, name: str, content: bytes) -> None:
        write_whole(self.directory / name, content)


class Beside(NamedTuple):
    """A kind of record that only some runs have."""

    file: str
    check: Callable[[Any, Sequence[CellFacts] | None, object], None]
    """Raises UsageError if a record is impossible."""


BESIDE: dict[type, Beside] = {
    StorageSlice: Beside("storage.jsonl", checked.storage),
    ProfileSlice: Beside("profile.jsonl", checked.profile),
    StormSlice: Beside("storm.jsonl", checked.storm),
    MemoryLevel: Beside("memory.jsonl", checked.memory),
    ReplicationEvent: Beside("replication.jsonl", checked.replication),
    KeyRotationSlice: Beside("rotation.jsonl", checked.rotation),
}
HASHED = ("slices.jsonl", "proofs.json", *(beside.file for beside in BESIDE.values()), "study.json")
"""Files whose hashes the facts of a complete run hold."""


def hashes(directory: Path) -> dict[str, str]:
    """SHA-256 of each of these files that exists, by name."""
    digests = {}
    for name in HASHED:
        if (path := directory / name).is_file():
            with path.open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def encode(result: Result) -> bytes:
    """A result as the JSON that `docs/result.schema.json` describes."""
    paired = any(cell.pair for cell in result.cells)
    plain = msgspec.to_builtins(result, enc_hook=checked.of_numpy) if paired else None
    content = msgspec.json.encode(result if plain is None else pair.outward(plain), enc_hook=checked.of_numpy)
    return msgspec.json.format(content, indent=2) + b"\n"


class ResultDecoder:
    """Reads that JSON, as `msgspec.json.Decoder` would."""

    def decode(self, content: bytes) -> Result:
        """A result. Raises msgspec.DecodeError or ValidationError, RecursionError."""
        if b'"pair"' not in content:
            return msgspec.json.decode(content, type=Result)
        return msgspec.convert(pair.inward(msgspec.json.decode(content)), Result)


LATEST = "latest"
"""The name of the newest run in ./runs."""


def find(name: str) -> Path:
    """The directory of a run, given as a path, an id below ./runs, or `latest`. Raises UsageError with the latest runs."""
    if name == LATEST and not (Path(name) / "plan.json").is_file() and (every := runs()):
        return max(every, key=lambda path: ((path / "plan.json").stat().st_mtime_ns, path))
    for path in (Path(name), Path("runs") / name):
        if (path / "plan.json").is_file():
            return path
    known = [str(path.relative_to("runs")) for path in runs()][-5:]
    hint = (
        f"the latest in ./runs: {', '.join(known)}" if known else "./runs has none; start one with `ciphercost quick`"
    )
    raise UsageError(f"no run '{name}': give a directory with a plan.json, an id below ./runs, or `latest`; {hint}")


def runs(base: Path = Path("runs")) -> list[Path]:
    """Run directories below `base`, oldest first, including those of `replicate all`."""
    if not base.is_dir():
        return []
    return sorted(path.parent for depth in ("*/plan.json", "*/*/plan.json") for path in base.glob(depth))


def open_locked(directory: Path, name: str = "slices.jsonl") -> IO[bytes]:
    """Open a run's slices for appending, and lock them until they are closed. Raises UsageError if another process has the lock."""
    while True:
        file = (directory / name).open("ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UsageError(f"{directory}: its run is still active; wait for it, or end it with Ctrl-C") from None
        except OSError:
            return file  # a file system without locks
        # Between open and lock, another process may have replaced the file.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), (directory / name).stat()):
                return file
        file.close()


def read_facts(directory: Path, name: str = "plan.json") -> RunFacts:
    """Read plan.json. Raises UsageError if it is damaged or of a newer format."""
    return checked.facts(directory / name)


def read_checkpoint(directory: Path) -> RunFacts | None:
    """The facts as of each cell's last complete session; None if there is no checkpoint yet."""
    return read_facts(directory, "checkpoint.json") if (directory / "checkpoint.json").is_file() else None


def read_proofs(directory: Path) -> list[tuple[int, Proof]]:
    """(cell, proof) of every witness. Raises UsageError if the file is damaged."""
    path = directory / "proofs.json"
    if not path.is_file():
        return []
    entries = checked.decode(checked.read(path), msgspec.json.Decoder(list[_Heard]), path)
    return [(entry.cell, msgspec.convert(msgspec.to_builtins(entry), Proof)) for entry in entries]


class _Heard(Proof, kw_only=True, frozen=True):
    """An entry of proofs.json."""

    cell: Count


def read_study(directory: Path) -> StudyRecord | None:
    """Read study.json of a `replicate` run; None in other runs. Raises UsageError if it is damaged."""
    path = directory / "study.json"
    return checked.whole(path, StudyRecord) if path.is_file() else None


def read_imported(directory: Path) -> ImportedRecord | None:
    """Read imported.json of an `import` run; None in other runs. Raises UsageError if it is damaged."""
    path = directory / "imported.json"
    return checked.whole(path, ImportedRecord) if path.is_file() else None


def write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it, so that nobody ever sees half a file, not even after a kill."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)


def append_whole(file: IO[bytes], line: bytes) -> None:
    """Append all of a line to an unbuffered file, or nothing of it. Raises OSError.

    A disk that is nearly full takes the beginning of a line, and later lines would follow that.
    """
    end = os.fstat(file.fileno()).st_size
    left = memoryview(line)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(file.fileno(), end)
        raise


def read_slices(directory: Path) -> Iterator[SliceRecord]:
    """Read every slice. Skips a last line that a kill cut off; raises UsageError for any other bad line."""
    every = checked.Slices(_facts_if_any(directory))
    for record, where in _lines(directory / "slices.jsonl", SliceRecord):
        every.check(record, where)
        yield record


def read_beside(directory: Path, kind: type[T]) -> Iterator[T]:
    """Read the records of a kind of `BESIDE`, as `read_slices` reads the slices. Nothing where a run has none."""
    beside, facts = BESIDE[kind], _facts_if_any(directory)
    for record, where in _lines(directory / beside.file, kind):
        beside.check(record, facts.cells if facts else None, where)
        yield record


def _facts_if_any(directory: Path) -> RunFacts | None:
    return read_facts(directory) if (directory / "plan.json").is_file() else None


def _lines(path: Path, kind: type[T]) -> Iterator[tuple[T, str]]:
    """(record, file and line)."""
    decoder = msgspec.json.Decoder(kind)
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(bounds.lines(file, bounds.RECORD_LINE, str(path)), start=1):
            if not line.endswith(b"\n") and _cut_off(line):
                return
            where = f"{path}, line {number}"
            yield checked.decode(line, decoder, where), where


def _cut_off(line: bytes) -> bool:
    """Whether this is only the beginning of a line of JSON."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except msgspec.DecodeError:
        return True
    return False
