"""canary_scan: finds a word anywhere on disk: across read pieces, behind holes, and in files that nobody else can open."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciphercost.host import canary_scan

WORD = "canary0123456789"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gaps=st.lists(st.integers(0, 90), min_size=0, max_size=6), piece=st.integers(1, 64))
def test_counts_every_occurrence_wherever_pieces_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gaps: list[int], piece: int
) -> None:
    monkeypatch.setattr(canary_scan, "CHUNK", piece)
    content = b"".join(b"x" * gap + WORD.encode() for gap in gaps) + b"tail"
    (tmp_path / "file").write_bytes(content)
    seen = canary_scan.search(canary_scan.below([tmp_path]), WORD)
    assert seen.hits == ({"file": len(gaps)} if gaps else {})
    assert (seen.files, seen.size) == (1, len(content))


def test_skips_holes_and_finds_what_follows_them(tmp_path: Path) -> None:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 39)
        file.write(WORD.encode())
    seen = canary_scan.search([("image", path)], WORD)
    assert seen.hits == {"image": 1}
    assert seen.size < 1 << 24


def test_places_may_be_files_or_directories_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text(WORD)
    (tmp_path / "data" / "base").mkdir(parents=True)
    (tmp_path / "data" / "base" / "1").write_text(WORD)
    (tmp_path / "data" / "link").symlink_to(outside)
    names = [name for name, _ in canary_scan.below([tmp_path / "data", outside])]
    assert names == ["base/1", "outside"]


def test_a_file_that_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    assert canary_scan.search([("gone", tmp_path / "gone")], WORD) == canary_scan.Seen()


def test_unreadable_files_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable directory and a process that hides its files are errors; what is gone is nothing to scan."""
    inner = tmp_path / "base"
    inner.mkdir()
    (tmp_path / "clear").write_text(WORD)
    assert [name for name, _ in canary_scan.below([tmp_path, tmp_path / "gone"])] == ["clear"]
    assert list(canary_scan.held_open([2**22 + 1])) == []
    scandir, listdir = os.scandir, os.listdir

    def closed(error: int) -> None:
        def refused(path: str) -> NoReturn:
            raise OSError(error, "not shown", path)

        monkeypatch.setattr(os, "scandir", lambda path: refused(path) if str(path) == str(inner) else scandir(path))
        monkeypatch.setattr(os, "listdir", lambda path: refused(path) if path == "/proc/1/fd" else listdir(path))

    closed(errno.ENOENT)
    assert [name for name, _ in canary_scan.below([tmp_path])] == ["clear"]
    assert list(canary_scan.held_open([1])) == []
    closed(errno.EACCES)
    with pytest.raises(PermissionError):
        list(canary_scan.below([tmp_path]))
    with pytest.raises(PermissionError):
        list(canary_scan.held_open([1]))


def test_an_unlinked_file_and_one_elsewhere_are_seen_through_the_process(tmp_path: Path) -> None:
    inside, elsewhere, unlinked = tmp_path / "data", tmp_path / "elsewhere", tmp_path / "data" / "sort"
    inside.mkdir()
    (tmp_path / "library").write_text(WORD)
    with contextlib.ExitStack() as stack:
        for path in (inside / "table", elsewhere, unlinked):
            file = stack.enter_context(path.open("w"))
            file.write(WORD)
            file.flush()
        unlinked.unlink()
        stack.enter_context((tmp_path / "library").open())  # only read: not written by a server
        files = dict(canary_scan.held_open([os.getpid()], [inside]))
        mine = {name for name in files if name.startswith(str(tmp_path))}
        assert mine == {str(elsewhere), f"{unlinked} (deleted)"}
        assert canary_scan.search(((name, files[name]) for name in mine), WORD).hits == dict.fromkeys(mine, 1)
