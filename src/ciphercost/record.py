"""record: a run's directory, append-only. Written early, read back by estimates and reports. Passwords and keys never enter it."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from ciphercost.errors import UsageError
from ciphercost.model import FORMAT, ImportedRecord, Proof, Result, RunFacts, SliceRecord, StorageSlice, StudyRecord

T = TypeVar("T", bound=msgspec.Struct)


def new_id() -> str:
    """A run's name: when it began, and four letters so that two in one second differ."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


def is_id(name: str) -> bool:
    """Whether `new_id` could have made this name."""
    return re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", name) is not None


def directory_for(run_id: str, wanted: Path | None) -> Path:
    """Make the run's directory, mode 0700. Raises UsageError where it can't be made, or holds something else already."""
    path = wanted or Path("runs") / run_id
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"{path} exists and is not an empty directory; give -o a new one, nothing is overwritten")
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
        (path / "logs").mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"can't write the run's directory {path}: {error.strerror}; give -o a directory that can be written"
        ) from None
    return path


class Record:
    """An open run directory. Every slice is a line, written and flushed at once: a killed run loses at most the slice in flight."""

    def __init__(self, directory: Path, facts: RunFacts) -> None:
        self.directory = directory
        self.facts = facts
        self._encoder = msgspec.json.Encoder()
        self._slices = (directory / "slices.jsonl").open("ab", buffering=0)
        self._proofs: list[dict[str, Any]] = []
        self.save_facts()
        self._write("proofs.json", b"[]\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._slices.close()

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    def append(self, record: SliceRecord) -> None:
        self._slices.write(self._encoder.encode(record) + b"\n")

    def append_storage(self, record: StorageSlice) -> None:
        """There is a file of these only where there are any."""
        with (self.directory / "storage.jsonl").open("ab", buffering=0) as file:
            file.write(self._encoder.encode(record) + b"\n")

    def prove(self, cell: int, proofs: Iterable[Proof]) -> None:
        self._proofs += [{"cell": cell, **msgspec.to_builtins(proof)} for proof in proofs]
        self._write("proofs.json", msgspec.json.format(self._encoder.encode(self._proofs)) + b"\n")

    def save_facts(self) -> None:
        self._write("plan.json", msgspec.json.format(self._encoder.encode(self.facts)) + b"\n")

    def save_result(self, result: Result) -> None:
        self._write("result.json", encode(result))

    def save_study(self, study: StudyRecord) -> None:
        self._write("study.json", msgspec.json.format(self._encoder.encode(study)) + b"\n")

    def save_imported(self, imported: ImportedRecord) -> None:
        self._write("imported.json", msgspec.json.format(self._encoder.encode(imported)) + b"\n")

    def _write(self, name: str, content: bytes) -> None:
        # Written beside and moved over: a reader, or a kill, never sees half a file.
        temporary = self.directory / f".{name}.new"
        temporary.write_bytes(content)
        os.replace(temporary, self.directory / name)  # noqa: PTH105


def encode(result: Result) -> bytes:
    """A result as the JSON that `docs/result.schema.json` describes."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def find(name: str) -> Path:
    """The directory of a run: a path, or an id below ./runs. Raises UsageError with the latest runs."""
    for path in (Path(name), Path("runs") / name):
        if (path / "plan.json").is_file():
            return path
    known = [path.name for path in runs()][-5:]
    hint = (
        f"the latest in ./runs: {', '.join(known)}"
        if known
        else "there is none in ./runs; start one with `ciphercost quick`"
    )
    raise UsageError(f"no run '{name}': a run is a directory with a plan.json; {hint}")


def runs(base: Path = Path("runs")) -> list[Path]:
    """Run directories, oldest first."""
    return sorted(path.parent for path in base.glob("*/plan.json")) if base.is_dir() else []


def read_facts(directory: Path) -> RunFacts:
    """plan.json. Raises UsageError where it is damaged or of a newer format."""
    try:
        content = (directory / "plan.json").read_bytes()
        if msgspec.json.decode(content).get("format", 0) > FORMAT:
            raise UsageError(f"{directory} was written by a newer ciphercost; update this one to read it")
        return msgspec.json.decode(content, type=RunFacts)
    except (OSError, msgspec.DecodeError, AttributeError) as error:
        raise UsageError(f"{directory}/plan.json can't be read: {error}") from None


def read_proofs(directory: Path) -> list[tuple[int, Proof]]:
    """(cell, proof) of every witness heard. Raises UsageError where the file is damaged."""
    path = directory / "proofs.json"
    try:
        entries = msgspec.json.decode(path.read_bytes()) if path.is_file() else []
        return [(entry.pop("cell"), msgspec.convert(entry, Proof)) for entry in entries]
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
        raise UsageError(f"{path} can't be read: {error}") from None


def read_study(directory: Path) -> StudyRecord | None:
    """study.json, in a run of `replicate`. Raises UsageError where it is damaged or of a newer format."""
    path = directory / "study.json"
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=StudyRecord)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from None
    if found.format > FORMAT:
        raise UsageError(f"{path} was written by a newer ciphercost; update this one to read it")
    return found


def read_imported(directory: Path) -> ImportedRecord | None:
    """imported.json, in a run of `import`. Raises UsageError where it is damaged or of a newer format."""
    path = directory / "imported.json"
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=ImportedRecord)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from None
    if found.format > FORMAT:
        raise UsageError(f"{path} was written by a newer ciphercost; update this one to read it")
    return found


def read_slices(directory: Path) -> Iterator[SliceRecord]:
    """Every slice, one at a time. A last line that was cut off by a kill is left out. Raises UsageError for any other bad line."""
    yield from _lines(directory / "slices.jsonl", SliceRecord)


def read_storage(directory: Path) -> Iterator[StorageSlice]:
    """What fio did, as `read_slices` reads what the load did."""
    yield from _lines(directory / "storage.jsonl", StorageSlice)


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                if not line.endswith(b"\n"):
                    return
                raise UsageError(f"{path}, line {number}: {error}") from None
