"""Copies of loaded dumps: only their owner enters them, a copy in use stays, and the hash depends on content and names alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ciphercost.host import file_position, kept_dumps


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIPHERCOST_DUMPS", str(tmp_path / "dumps"))
    return tmp_path / "dumps"


def test_a_directory_that_others_may_enter_keeps_nothing_and_is_not_swept(home: Path) -> None:
    kept_dumps.make_home()
    (home / "copy").mkdir(mode=0o700)
    home.chmod(0o755)
    with pytest.raises(PermissionError):
        kept_dumps.make_home()
    assert kept_dumps.rates() == {}
    assert kept_dumps.sweep() == ([], True)
    assert (home / "copy").exists()


def test_a_sweep_removes_copies_and_not_what_a_run_is_making(home: Path) -> None:
    kept_dumps.make_home()
    for name in ("copy", ".new-copy-20260101-000000-aaaaaa"):
        (home / name).mkdir(mode=0o700)
    lines, worked = kept_dumps.sweep()
    assert worked
    assert len(lines) == 1
    assert [path.name for path in home.iterdir()] == [".new-copy-20260101-000000-aaaaaa"]


def test_rates_are_kept_by_kind(home: Path) -> None:
    kept_dumps.note_rate("postgresql, plain", 100, 2.0)
    kept_dumps.note_rate("mysql, text", 30, 1.0)
    assert kept_dumps.rates() == {"postgresql, plain": 50.0, "mysql, text": 30.0}
    (home / kept_dumps.RATES).write_text("no JSON")
    assert kept_dumps.rates() == {}


def test_a_hash_depends_on_content_and_names_and_not_on_the_place(tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "toc.dat").write_bytes(b"contents")
        (tmp_path / place / "empty").write_bytes(b"")
    first = kept_dumps.content_hash(tmp_path / "one")
    assert kept_dumps.content_hash(tmp_path / "two") == first
    (tmp_path / "two" / "empty").rename(tmp_path / "two" / "other")
    assert kept_dumps.content_hash(tmp_path / "two") != first
    assert kept_dumps.content_hash(tmp_path / "one" / "toc.dat") != first


def test_a_position_is_that_of_the_open_file_below_a_place(tmp_path: Path) -> None:
    file = tmp_path / "dump"
    file.write_bytes(b"x" * 100)
    assert file_position.positions(os.getpid(), tmp_path) == {}
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.read(descriptor, 40)
        assert file_position.positions(os.getpid(), tmp_path) == {str(file): 40}
        assert file_position.positions(os.getpid(), file) == {str(file): 40}
        assert file_position.positions(os.getpid(), tmp_path / "other") == {}
    finally:
        os.close(descriptor)
