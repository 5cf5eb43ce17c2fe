"""Every parser answers its seeds and the kept corpus; `make test-all` also fuzzes each for some seconds.

The agent's targets answer theirs in `cargo test` (`agents/rust/src/fuzz/tests.rs`).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ciphercost.model.errors import CiphercostError
from conftest import Require
from fuzz import __main__ as fuzz
from fuzz import agent

SECONDS = 3
"""For each target: a minute in all."""
MOST_KEPT_BYTES = 1_000_000


@pytest.mark.parametrize("name", fuzz.OURS)
def test_seeds_and_corpus_are_answered(name: str, tmp_path: Path) -> None:
    target, place = importlib.import_module(f"fuzz.targets.{name}"), tmp_path / "work"
    place.mkdir()
    known = sorted((fuzz.CORPUS / name).iterdir()) if (fuzz.CORPUS / name).is_dir() else []
    inputs = [*target.seeds(tmp_path), *(path.read_bytes() for path in known)]
    answered = 0
    for data in inputs:
        with contextlib.suppress(CiphercostError):
            target.parse(data, place)
            answered += 1
    assert answered, "not even a seed is accepted: the target reaches nothing"


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_some_seconds_of_fuzzing_find_nothing(name: str, require: Require) -> None:
    if name in fuzz.OURS:
        require(importlib.util.find_spec("atheris"), "no atheris here: make fuzz installs it")
    here = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here / "helpers")])}
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", name, "--seconds", str(SECONDS), "--keep-nothing"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_agents_targets_are_found() -> None:
    assert {"requests", "postgres", "http-2"} <= set(agent.TARGETS)
    for name in agent.TARGETS:
        assert list((agent.SAMPLES / name).iterdir()), f"{name} has nothing to begin with"


def test_the_corpus_is_small() -> None:
    sizes = [path.stat().st_size for kept in (fuzz.CORPUS, agent.SAMPLES) for path in kept.rglob("*") if path.is_file()]
    assert sum(sizes) < MOST_KEPT_BYTES
