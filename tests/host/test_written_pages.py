"""What the kernel counts for a written page: asked of the real kernel, and compared with another process that writes such a page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ciphercost.host import written_pages
from ciphercost.model.facts import PAGE

WRITES = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(file, bytes(8 << 20), 0)
os.fsync(file)
said = lambda: int(open("/proc/self/io").read().split()[11])
before = said()
for piece in range(8):
    os.pwrite(file, bytes(4096), piece << 20)
print((said() - before) // 8)
"""


def test_it_is_what_another_process_is_told_of_its_own_pages(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WRITES, tmp_path / "file"], capture_output=True, text=True, check=True)
    counted = written_pages.counted(tmp_path)
    # A folio is as large as the memory that was free in one piece, so the two need not be the same size.
    assert (counted > PAGE) == (int(done.stdout) > PAGE)
    assert counted % PAGE == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_where_nothing_is_counted_it_is_not_known(tmp_path: Path) -> None:
    assert written_pages.counted(tmp_path / "absent") == 0
    assert written_pages.counted(Path("/proc")) == 0
    assert written_pages.most_counted([]) == 0
    if os.path.ismount("/dev/shm"):
        assert written_pages.counted(Path("/dev/shm")) == 0, "memory, no disk"


def test_the_worst_of_several_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {Path("a"): 4096, Path("b"): 65536, Path("c"): 0}
    monkeypatch.setattr(written_pages, "counted", told.__getitem__)
    assert written_pages.most_counted(told) == 65536
