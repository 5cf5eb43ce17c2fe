"""cases: small inputs that users brought, and the answers of today. `make cases` prints them as one table.

A test hands its answer to `record`; before.csv has what the product answered when the case was filed.
"""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
PROPERTY = "case"
Record = Callable[[str, object], None]
"""pytest's `record_property`."""


def record(property_: Record, folder: str, input_: str, answer: str) -> None:
    """Put an answer into the table. `folder`: the kind of input."""
    property_(PROPERTY, [folder, input_, answer])


def before() -> dict[tuple[str, str], str]:
    """By folder and input: the answer when the case was filed."""
    with (HERE / "before.csv").open(newline="") as file:
        return {(row["folder"], row["input"]): row["answer"] for row in csv.DictReader(file)}


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """A file of a folder and its right answer."""

    input: str
    """The file's name."""
    answer: str
    """A regular expression that the output must contain, with all white space as one blank; the table prints what it found."""
    status: int = 0
    """The right exit status."""
    server: str = ""
    """The user's server."""
    writes: bool = False
    """Whether it changes the user's rows, as it should."""
    folder: str = ""

    @property
    def path(self) -> Path:
        return HERE / self.folder / self.input

    def judge(self, done: subprocess.CompletedProcess[str], property_: Record) -> None:
        """Check the answer of a command, and record it."""
        output = done.stdout + done.stderr
        match = re.search(self.answer, flat(output))
        record(
            property_,
            self.folder,
            self.input,
            f"{match[0] if match else _last(output)} (exit status {done.returncode})",
        )
        assert (bool(match), done.returncode) == (True, self.status), output


def flat(text: str) -> str:
    """A text without line breaks and without the banner's marks."""
    return re.sub(r"\s+(=== )?", " ", text)


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")


def of(folder: str) -> list[Case]:
    """The cases of a folder, in the order of its cases.toml."""
    parsed = msgspec.toml.decode((HERE / folder / "cases.toml").read_bytes(), type=dict[str, list[Case]])
    return [msgspec.structs.replace(case, folder=folder) for case in parsed["case"]]
