"""Runs of the command that assert what is proven, printed and recorded, not how precise it is: 0.6 s of load in slices of 0.05 s.

No flag is that short, but a spec is. So the options become a spec first, by the command's own `--print-spec`.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import warm

TIME = "time = 0.6\nslice_seconds = 0.05"
BESIDE = {"-o": 1, "--output": 1, "--json": 1, "--price": 1, "--no-progress": 0}
"""Options that a spec does not have, with their numbers of values."""


def run(
    argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """`ciphercost run … --quick --time …`, in 0.6 s of load. The spec lies in `cwd`, since its paths are relative to that."""
    spec, printed = spec_of(argv, cwd=cwd, env=env, timeout=timeout)
    return warm.run(spec, cwd=cwd, env=env, timeout=timeout) if spec else printed


def spec_of(
    argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 600
) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """(the arguments that run this in a second, for a process of a test's own, with what asked for the spec). None if the options are
    refused.
    """
    asked, beside = apart([str(each) for each in argv])
    printed = warm.run([*asked, "--print-spec"], cwd=cwd, env=env, timeout=timeout)
    if printed.returncode != 0:
        return [], printed
    text, found = re.subn(r"^time = .*$", TIME, printed.stdout, count=1, flags=re.MULTILINE)
    assert found, printed.stdout
    (cwd / warm.SHORT).write_text(text)
    return ["run", warm.SHORT, *beside], printed


def apart(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """(what becomes a spec, what is given beside it). Pure."""
    return [each for each, own in _marked(argv) if not own], [each for each, own in _marked(argv) if own]


def _marked(argv: Sequence[str]) -> Iterator[tuple[str, bool]]:
    words = iter(argv)
    for word in words:
        own = word in BESIDE
        yield word, own
        yield from ((value, own) for value in itertools.islice(words, BESIDE.get(word, 0)))
