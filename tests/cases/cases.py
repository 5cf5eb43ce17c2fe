"""cases: small inputs that users bring, with the right answer of each. A folder is a kind; its `cases.toml` lists them.

A test gives an input to the command and calls `Case.judge`, which also records the answer for the table of `make cases`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

HERE = Path(__file__).parent


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One input and its right answer."""

    input: str
    """What the user brings: a file of the folder, a connection string, or some words about the server."""
    before: str
    """What the product answered when the case was filed."""
    answer: str
    """A regular expression that the output must contain, with all white space as one blank; the table prints what it found."""
    status: int = 0
    """The right exit status."""
    server: str = ""
    """The user's server."""
    command: list[str] = []
    """Arguments of `ciphercost` that are this case's own."""
    folder: str = ""

    @property
    def path(self) -> Path:
        """The input, if it is a file."""
        return HERE / self.folder / self.input

    def judge(self, done: subprocess.CompletedProcess[str], record: Callable[[str, object], None]) -> None:
        """Check the answer of a command. `record`: pytest's `record_property`, for the table."""
        said = done.stdout + done.stderr
        found = re.search(self.answer, re.sub(r"\s+(=== )?", " ", said))
        now = found[0] if found else _last_line(said)
        record("case", [f"{self.folder}: {self.input}", self.before, f"{now} (exit status {done.returncode})"])
        assert (bool(found), done.returncode) == (True, self.status), said


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")


def of(folder: str) -> list[Case]:
    """The cases of a folder, in the order of its file."""
    found = msgspec.toml.decode((HERE / folder / "cases.toml").read_bytes(), type=dict[str, list[Case]])
    return [msgspec.structs.replace(each, folder=folder) for each in found["case"]]
