"""Puts the fake agent, which has a known effect, in the place of the real one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

AGENT = Path(__file__).parents[2] / "agents" / "fake" / "fake_agent.py"
Fake = Callable[[str], None]
"""`fake(options)`: from now on the pipeline uses the fake agent with these options."""


def write(path: Path, options: str) -> Path:
    """Write a program that starts the fake agent with these options."""
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(AGENT))} {options} "$@"\n')
    path.chmod(0o755)
    return path
