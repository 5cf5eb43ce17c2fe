"""run_in_place: a program of an unpacked root runs there, also one whose package keeps libraries of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ciphercost.host.package_cache import Work
from ciphercost.host.run_in_place import patchelf, run_in_place
from ciphercost.host.supervisor import Supervisor

PRIVATE = "usr/lib/private"


def linked(program: str) -> tuple[dict[str, Path], Path]:
    """The libraries of a program of this machine by name, and its loader."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    libraries = {words[0]: Path(words[2]) for words in lines if "=>" in words}
    return libraries, next(Path(words[0]) for words in lines if words[0].startswith("/"))


@pytest.mark.parametrize("origin", ["/usr/lib/private", "$ORIGIN/../lib/private"])
def test_a_programs_own_library_path_is_kept_inside_the_root(tmp_path: Path, origin: str) -> None:
    root, program = tmp_path / "root", shutil.which("openssl")
    assert program is not None
    needed, loader = linked(program)
    common = root / "usr" / "lib" / needed["libc.so.6"].parent.name
    for place in ("usr/bin", "lib64", PRIVATE, str(common)):
        (root / place).mkdir(parents=True, exist_ok=True)
    shutil.copy(loader.resolve(), root / "lib64" / loader.name)
    for name, path in needed.items():
        shutil.copy(path.resolve(), (root / PRIVATE if name == "libssl.so.3" else common) / name)
    moved = Path(shutil.copy(Path(program).resolve(), root / "usr" / "bin" / "openssl"))
    subprocess.run([patchelf(), "--set-rpath", origin, str(moved)], check=True)
    with Supervisor(f"test-{os.getpid()}") as supervisor:
        run_in_place(Work(root, root, supervisor), ["usr/bin/openssl"])
    traced = subprocess.run([moved, "version"], capture_output=True, text=True, check=True, env={"LD_DEBUG": "libs"})
    used = {line.split()[-1] for line in traced.stderr.splitlines() if "calling init" in line}
    assert len(used) == len(needed) + 1, traced.stderr  # and the loader
    assert {os.path.realpath(path) for path in used} <= {str(path) for path in root.rglob("*")}, used
