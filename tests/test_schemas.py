"""schemas: a mark says of whom a schema is, and what can be seen of that run from here."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ciphercost.schemas import Mark, mark_of, read_mark


def test_a_mark_comes_back_from_its_text_which_is_short_enough_for_any_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "ein Höst' --" + "x" * 200)
    mark = mark_of("20261121-120000-ab12")
    assert read_mark(str(mark)) == mark
    assert len(str(mark)) <= 100
    assert str(mark).isascii()
    assert "'" not in str(mark)


def test_the_run_of_a_living_process_lives_and_that_of_an_ended_one_is_dead() -> None:
    assert mark_of("run").fate == "living"
    code = "from ciphercost import schemas; print(schemas.mark_of('run'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert read_mark(done.stdout.strip()).fate == "dead"


def test_a_number_that_another_process_has_by_now_is_no_sign_of_life() -> None:
    mark = mark_of("run")
    pid, _, kernel = mark.process.split(":")
    assert pid == str(os.getpid())
    assert Mark("run", mark.host, f"{pid}:1:{kernel}").fate == "dead"


@pytest.mark.parametrize(
    "text", ["run", "run on host by 1:1:another-kernel", "run on host by nonsense", "run on host by ::"]
)
def test_what_can_not_be_seen_is_not_called_dead(text: str) -> None:
    assert read_mark(text).fate == "unseen"


def test_without_a_mark_it_is_nobodys() -> None:
    assert read_mark("").fate == "unmarked"
