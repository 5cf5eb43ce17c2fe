"""Puts the fake agent, which has a known effect, in the place of the real one."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ciphercost.measure import session

AGENT = Path(__file__).parents[2] / "agents" / "fake" / "fake_agent.py"
Fake = Callable[[str], None]
"""`fake(options)`: from now on the pipeline uses the fake agent with these options."""


def write(path: Path, options: str) -> Path:
    """Write a program that starts the fake agent with these options."""
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(AGENT))} {options} "$@"\n')
    path.chmod(0o755)
    return path


def put(patch: pytest.MonkeyPatch, directory: Path, options: str) -> None:
    """From now on the pipeline uses the fake agent. Its time is virtual, and so is the cost of a slice, so a busy machine does not
    change the outcome.
    """
    patch.setattr(session, "_cost", lambda asked, began: asked)
    patch.setenv("CIPHERCOST_AGENT", str(write(directory / "fake-agent", options)))


@contextlib.contextmanager
def in_place(directory: Path, options: str) -> Iterator[None]:
    """The same while the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        put(patch, directory, options)
        yield
