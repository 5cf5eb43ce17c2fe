"""scratch_schema: a mark shows whose a schema is, and what can be seen of that run from here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.model.connection import Connection
from ciphercost.model.errors import RunError
from ciphercost.provision import scratch_schema
from ciphercost.provision.scratch_schema import Mark, mark_of, read_mark


def test_a_mark_comes_back_from_its_text_which_is_short_enough_for_any_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "ein Höst' --" + "x" * 200)
    mark = mark_of("20261121-120000-ab12")
    assert read_mark(str(mark)) == mark
    assert len(str(mark)) <= 100
    assert str(mark).isascii()
    assert "'" not in str(mark)


def test_the_run_of_a_living_process_lives_and_that_of_an_ended_one_is_dead() -> None:
    assert mark_of("run").fate == "living"
    code = "from ciphercost.provision import scratch_schema; print(scratch_schema.mark_of('run'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert read_mark(done.stdout.strip()).fate == "dead"


def test_a_reused_pid_is_no_sign_of_life() -> None:
    mark = mark_of("run")
    pid, _, kernel = mark.process.split(":")
    assert pid == str(os.getpid())
    assert Mark("run", mark.host, f"{pid}:1:{kernel}").fate == "dead"


@pytest.mark.parametrize(
    "text", ["run", "run on host by 1:1:another-kernel", "run on host by nonsense", "run on host by ::"]
)
def test_a_run_that_can_not_be_seen_is_not_reported_dead(text: str) -> None:
    assert read_mark(text).fate == "unseen"


def test_without_a_mark_it_is_nobodys() -> None:
    assert read_mark("").fate == "unmarked"


class Slow:
    """A server that still executes a request of a closed connection."""

    name = "slow"

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.dropped: list[str] = []

    def make_schema(self, *_: Any) -> None:
        raise RunError("the agent ended")

    def schema(self, *_: Any) -> str | None:
        self.looks -= 1
        return None if self.looks > 0 else ""

    def drop_schema(self, _agent: Any, _fields: Any, name: str, *, unmarked: bool) -> None:
        assert unmarked
        self.dropped.append(name)


def test_a_schema_that_appears_after_its_making_was_broken_off_is_dropped(tmp_path: Path) -> None:
    engine = Slow(looks=4)
    with (
        pytest.raises(RunError, match="the agent ended"),
        scratch_schema.temporary(
            cast("OwnSchema", engine), Connection(driver="postgres"), "ciphercost_x", "x", tmp_path / "log"
        ),
    ):
        pass
    assert engine.dropped == ["ciphercost_x"]
