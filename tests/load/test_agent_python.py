"""The Python agent: the protocol's vectors, and its drivers on real servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ciphercost.load.drivers import python
from test_vectors import files_for, run

ALONE = ["env", *(f"{name}={value}" for name, value in python.ALONE.items()), f"PYTHONPATH={python.source()}"]
COMMAND = [*ALONE, sys.executable, "-S", "-P", "-m", python.MODULE]
"""The agent without any driver: it needs Python alone."""


@pytest.mark.parametrize("path", files_for("python"), ids=lambda path: path.stem)
def test_it_passes_the_vectors(tmp_path: Path, path: Path) -> None:
    run(path, COMMAND, tmp_path)
