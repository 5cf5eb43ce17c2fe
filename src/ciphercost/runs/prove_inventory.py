"""`ciphercost prove -f`: many targets at once, each in a process of its own, and one row for each.

A process of its own, forked from this one, has its own password, supervisor and deadlines, so targets can't disturb each other. Nothing is
asked on a terminal.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from ciphercost.host import deadlines
from ciphercost.model import bounds
from ciphercost.model.errors import CiphercostError, UsageError
from ciphercost.model.proof_row import ProofRow
from ciphercost.runs import prove_facts

SECONDS = 1.5
"""For one login, unless CIPHERCOST_TIMEOUT says another."""
PATIENCE = 20
"""Logins that a whole target may take."""
AT_ONCE = 8
MOST = 10_000
"""Targets of one file."""
KEYWORDS = re.compile(r"\w+\s*=")
Examine = Callable[[Sequence[str], ProofRow], bool]
"""Examines the target of these words, fills in its row, and returns whether it is proven. Raises CiphercostError."""


class Target(NamedTuple):
    """A line of the file."""

    number: int
    words: tuple[str, ...]
    """The target, or two addresses of one server, and options of `prove` for it alone."""

    @property
    def shown(self) -> str:
        """The target without its user. Pure."""
        named = [word for word in self.words if not word.startswith("-")]
        urls = [word for word in named if "://" in word or word.startswith("jdbc:")] or named[:1]
        return " ".join(re.sub(r"(?<=//)[^/@?]*@", "", url) for url in urls)


def read(path: Path) -> list[Target]:
    """The targets of a file, one a line; empty lines and what follows a `#` at the beginning of a word are comments. Raises UsageError."""
    try:
        text = bounds.text(path, bounds.OPTIONS)
    except OSError as error:
        raise UsageError(f"-f {path}: can't be read: {error.strerror or error}") from None
    targets = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if not content:
            continue
        try:
            words = (content,) if KEYWORDS.match(content) else tuple(shlex.split(content))
        except ValueError as error:
            raise UsageError(f"-f {path}, line {number}: {error}") from None
        targets.append(Target(number, words))
    if not targets:
        raise UsageError(f"-f {path}: names no target; write one URL a line")
    if len(targets) > MOST:
        raise UsageError(f"-f {path}: names {len(targets):,} targets; split it into files of at most {MOST:,}")
    return targets


def examine(targets: Sequence[Target], one: Examine) -> list[ProofRow]:
    """A row for each target, in their order. Several are examined at a time."""
    waiting = list(reversed(list(enumerate(targets))))
    rows: dict[int, ProofRow] = {}
    running: dict[int, tuple[int, int, float, bytearray]] = {}
    """By the end of a pipe: number of the row, process, deadline, what it has written."""
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                number, target = waiting.pop()
                pid, end = _start(target, one)
                running[end] = number, pid, time.monotonic() + PATIENCE * _login(), bytearray()
            ready, _, _ = select.select(list(running), [], [], 0.2)
            for end, (number, pid, until, heard) in list(running.items()):
                part = os.read(end, 1 << 16) if end in ready else b""
                heard += part
                late = time.monotonic() > until
                if (end in ready and not part) or late:
                    if late:
                        os.kill(pid, signal.SIGTERM)
                    os.close(end)
                    del running[end]
                    os.waitpid(pid, 0)
                    rows[number] = _row(targets[number], bytes(heard), late=late)
    finally:
        for end, (_, pid, _, _) in running.items():
            os.kill(pid, signal.SIGTERM)
            os.close(end)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    return [rows[number] for number in range(len(targets))]


def _login() -> float:
    return deadlines.login() if os.environ.get(deadlines.VARIABLE) else SECONDS


def _start(target: Target, one: Examine) -> tuple[int, int]:
    """(process, end of the pipe to which it writes the row)."""
    ours, its = os.pipe()
    if pid := os.fork():
        os.close(its)
        return pid, ours
    try:
        os.close(ours)
        _examine(target, one, its)
    finally:
        os._exit(1)


def _examine(target: Target, one: Examine, end: int) -> NoReturn:
    """What the process of a target does. It prints nothing."""
    os.environ.setdefault(deadlines.VARIABLE, f"{SECONDS:g}")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    row = ProofRow(target=target.shown)
    began = time.monotonic()
    try:
        row.ok = one(target.words, row)
    except UsageError as error:
        row.verdict, row.reason = "refused", f"{error}"
    except CiphercostError as error:
        prove_facts.failed(row, error)
    except Exception as error:  # one target's fault must not hide the others' rows
        where = traceback.extract_tb(error.__traceback__)[-1]
        row.reason = (
            f"a fault of ciphercost: {type(error).__name__} in {Path(where.filename).name}, line {where.lineno}"
        )
    row.reason = " ".join(row.reason.split())
    row.seconds = round(time.monotonic() - began, 2)
    left = memoryview(msgspec.json.encode(row))
    while left:
        left = left[os.write(end, left) :]
    os._exit(0)


def _row(target: Target, heard: bytes, *, late: bool) -> ProofRow:
    try:
        return msgspec.json.decode(heard, type=ProofRow)
    except msgspec.DecodeError:
        why = f"not done within {PATIENCE * _login():g} s" if late else "its process ended without an answer"
        verdict = "unreachable" if late else "not proven"
        return msgspec.convert({"target": target.shown, "verdict": verdict, "reason": why}, ProofRow)
