"""Rotations of a key: what fails is an error in one line, a key that stays the old one is unproven, and traffic counts only while it lasts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ciphercost.measure.key_rotation import Rotations
from ciphercost.measure.operations import traffic as traffic_beside
from ciphercost.mechanisms._rest import ArmAtRest, NewKey
from ciphercost.mechanisms.sqlcipher import SqlCipher
from ciphercost.model.errors import AgentError, RunError, Unproven
from ciphercost.model.slices import AgentSlice
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

QUIET = AgentSlice("encrypted", 0.5, 500, 0, 0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, "")
SLOW, LAST = (msgspec.structs.replace(QUIET, seconds=0.1, operations=number) for number in (30, 90))


class Traffic:
    """Gives its answers in turn. A rotation begins with the second one, and has ended before the last one ends."""

    def __init__(self, *answers: AgentSlice) -> None:
        self._answers = list(answers)
        self.over = threading.Event()
        self.task: Future[Any] | None = None

    def program(self, _: object) -> None:
        pass

    def connect(self, *_: object) -> None:
        pass

    def slice(self, *_: Any, **__: Any) -> AgentSlice:
        if len(self._answers) == 1:
            self.over.set()
            assert self.task is not None
            wait([self.task], 60)
        return self._answers.pop(0)


class Statements:
    """Rotates the key of a file: gives it new contents."""

    def __init__(self, traffic: Traffic, rotate: Callable[[], object]) -> None:
        self._traffic, self._rotate = traffic, rotate

    def connect(self, *_: object) -> None:
        pass

    def query(self, *_: Any, **__: Any) -> None:
        self._traffic.over.wait(60)
        self._rotate()


class Mechanism(SqlCipher):
    def __init__(self, file: Path) -> None:
        self._file = file

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        return True, ""

    def new_key(self, look: ArmAtRest, table: str, number: int) -> NewKey:
        return NewKey("data", "PRAGMA rekey", ("rekey",), files=(self._file,))


class Pool(ThreadPoolExecutor):
    """Lets the traffic know the task that runs beside it."""

    traffic: Traffic

    def submit(self, *of: Any, **named: Any) -> Future[Any]:
        self.traffic.task = super().submit(*of, **named)
        return self.traffic.task


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_beside, "ThreadPoolExecutor", Pool)


def rotations(file: Path, traffic: Traffic, rotate: Callable[[], object]) -> Rotations:
    Pool.traffic = traffic
    file.write_bytes(b"old")
    statements = Statements(traffic, rotate)
    bench = SimpleNamespace(
        mechanism=Mechanism(file),
        engine=SimpleNamespace(embedded=False),
        program=SimpleNamespace(seeded=lambda _: None),
        helper=lambda _: contextlib.nullcontext(statements),
        agent=lambda _: contextlib.nullcontext(traffic),
    )
    fresh = SimpleNamespace(connect={"encrypted": SimpleNamespace(single=None)}, look=lambda *_: None)
    return Rotations(cast("PreparedCell", bench), cast("ServerPair", fresh), 1)


def test_traffic_counts_while_the_rotation_lasts(tmp_path: Path) -> None:
    file, traffic = tmp_path / "file", Traffic(QUIET, SLOW, SLOW, LAST)
    with rotations(file, traffic, lambda: file.write_bytes(b"new!")) as rotating:
        one = rotating.one(3)
    assert (one.number, one.reach, one.how, one.bytes) == (3, "data", "PRAGMA rekey", 4)
    assert one.quiet == pytest.approx(1000)
    assert (one.meanwhile, one.meanwhile_s) == pytest.approx((300, 0.2))
    assert one.seconds > 0


def test_of_a_rotation_within_one_slice_that_slice_counts(tmp_path: Path) -> None:
    file, traffic = tmp_path / "file", Traffic(QUIET, LAST)
    with rotations(file, traffic, lambda: file.write_bytes(b"new!")) as rotating:
        one = rotating.one(0)
    assert (one.meanwhile, one.meanwhile_s) == pytest.approx((900, 0.1))


def test_reads_that_fail_are_no_slower_traffic(tmp_path: Path) -> None:
    failing = msgspec.structs.replace(LAST, errors=3, first_error="Table definition has changed")
    file = tmp_path / "file"
    with (
        rotations(file, Traffic(QUIET, failing), lambda: file.write_bytes(b"new!")) as rotating,
        pytest.raises(
            RunError, match="key rotation: 3 reads of the running traffic failed: Table definition has changed"
        ),
    ):
        rotating.one(0)


def test_a_rotation_that_fails_is_an_error_in_one_line(tmp_path: Path) -> None:
    def refused() -> None:
        raise AgentError("keyring is full", "3185")

    with (
        rotations(tmp_path / "file", Traffic(QUIET, LAST), refused) as rotating,
        pytest.raises(RunError, match=r"^key rotation: PRAGMA rekey: keyring is full \(error 3185\)$"),
    ):
        rotating.one(0)


def test_a_key_that_stays_the_old_one_is_unproven(tmp_path: Path) -> None:
    with (
        rotations(tmp_path / "file", Traffic(QUIET, LAST), lambda: None) as rotating,
        pytest.raises(Unproven, match="after PRAGMA rekey the key in use is still the old one"),
    ):
        rotating.one(0)
