"""A seeded selection of `make faults`: nothing lost, nothing left behind, no number from damaged data."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import steady
from conftest import Require
from faults import trial, world

FAULTS = {fault.name: fault for fault in world.each_kind("faults")}


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """Not below pytest's directories: a server runs as nobody, who may not pass through them."""
    with tempfile.TemporaryDirectory(prefix="ciphercost-faults-", dir="/var/tmp") as place:
        Path(place).chmod(0o711)
        yield Path(place)


undisturbed = cache(trial.undisturbed)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("sqlite:sqlcipher", "controller, supervisor and agents killed"),
        ("sqlite:sqlcipher", "disk of the record full"),
        ("postgresql:tls", "server killed"),
        *(("sqlite:sqlcipher", name) for name in ("agent killed", "Ctrl-C twice", "agent frozen for 2 s")),
        *(
            ("postgresql:tls", name)
            for name in (
                "disk of the servers' data full",
                "supervisor killed",
                "hang-up (SIGHUP)",
                "memory limit reached",
            )
        ),
        *(("postgresql:tls", name) for name in ("connections reset", "nothing arrives any more")),
    ],
)
def test_a_fault_loses_nothing_and_leaves_nothing(target: str, name: str, base: Path, require: Require) -> None:
    fault = FAULTS[name]
    require(fault.suits(target), f"{name}: needs root, and control groups of version 1")
    seconds, interval = undisturbed(target, base, fault.compared_with)
    for _ in range(steady.TRIES):
        outcome = trial.attempt(target, fault, 1, seconds, interval, base)
        if outcome.resumed != "busy":
            break
    assert outcome.good, outcome


def test_every_fault_has_a_name_of_its_own() -> None:
    assert len(FAULTS) == len(list(world.each_kind("faults"))) > 12
    assert sys.modules["faults.kinds.processes"]
