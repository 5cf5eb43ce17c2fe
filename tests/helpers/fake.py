"""The fake agent, whose effect is known, where the real one is looked for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

AGENT = Path(__file__).parents[2] / "agents" / "fake" / "fake_agent.py"
Fake = Callable[[str], None]
"""`fake(options)`: from here on the pipeline uses it with these."""


def write(path: Path, options: str) -> Path:
    """A program that is the fake agent with these options."""
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(AGENT))} {options} "$@"\n')
    path.chmod(0o755)
    return path
