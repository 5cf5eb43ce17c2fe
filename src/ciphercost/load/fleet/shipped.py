"""shipped: what a node gets that lacks this version of ciphercost or of its agent: both as wheels, through Ray's runtime environment."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from ciphercost.load.agent import Agent
from ciphercost.model.errors import MissingServer
from ciphercost.model.version import VERSION

AGENT = "ciphercost-agent"
NEEDED = ("msgspec",)
"""Of ciphercost's requirements, those of what runs on a node."""


def probe() -> Callable[[], dict[str, str]]:
    """A function that returns `versions` where it runs. Ray sends it as code, since a node may lack this module."""

    def versions_there() -> dict[str, str]:
        try:
            from ciphercost.load.fleet.remote_agent import installed_agent
            from ciphercost.load.fleet.shipped import versions_here
        except Exception:  # not there, another version, or one that does not run there
            return {}
        return versions_here(installed_agent)

    return versions_there


def versions_here(agent: Callable[[], str]) -> dict[str, str]:
    """Versions of ciphercost and of the agent; without the agent if there is none."""
    installed = {"ciphercost": VERSION}
    try:
        with Agent([agent()]) as started_agent:
            installed["agent"] = started_agent.hello.version
    except Exception:  # whatever is wrong with it, another one is needed
        return installed
    return installed


def versions() -> dict[str, str]:
    """Versions that every node must have: those of this machine."""
    from ciphercost.load.fleet.remote_agent import installed_agent

    return versions_here(installed_agent)


def wheels(directory: Path) -> list[Path]:
    """Make wheels of what is installed here, in a directory that need not exist yet. Raises MissingServer."""
    directory.mkdir(parents=True, exist_ok=True)
    return [ours(directory), agents(directory)]


def ours(directory: Path) -> Path:
    """Write a wheel of this ciphercost, whether it was installed from a wheel or from a clone."""
    root = Path(__file__).parents[2]
    files = {
        f"ciphercost/{path.relative_to(root)}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".jar"
    }
    return write(directory, "ciphercost", VERSION, "py3-none-any", files, NEEDED)


def agents(directory: Path) -> Path:
    """Write a wheel of the installed agent. Raises MissingServer if it was not installed as a package."""
    try:
        installed = metadata.distribution(AGENT)
    except metadata.PackageNotFoundError:
        raise MissingServer(
            f"a node lacks {AGENT}, and here it is not installed as a package that could be sent: install it on all nodes"
        ) from None
    tag = next(
        (
            line.partition(":")[2].strip()
            for line in (installed.read_text("WHEEL") or "").splitlines()
            if line.startswith("Tag")
        ),
        "py3-none-any",
    )
    data = f"{AGENT.replace('-', '_')}-{installed.version}.data/scripts"
    files = {
        f"{data}/{file.name}": Path(str(installed.locate_file(file))).read_bytes()
        for file in installed.files or ()
        if file.name == AGENT
    }
    return write(directory, AGENT, installed.version, tag, files, ())


def write(directory: Path, name: str, version: str, tag: str, files: dict[str, bytes], needs: tuple[str, ...]) -> Path:
    """Write a wheel (PEP 427) and return its path."""
    stem = f"{re.sub(r'[-_.]+', '_', name)}-{version}"
    info = f"{stem}.dist-info"
    required = "".join(f"Requires-Dist: {requirement}\n" for requirement in needs)
    held = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: ciphercost\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    path = directory / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry_name, content in [*held.items(), (f"{info}/RECORD", record(held, f"{info}/RECORD"))]:
            entry = zipfile.ZipInfo(entry_name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if entry_name.endswith(f"scripts/{AGENT}") else 0o644) << 16
            archive.writestr(entry, content)
    return path


def record(files: dict[str, bytes], record_path: str) -> bytes:
    """A wheel's RECORD: every file with its hash and size."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines(files, record_path))
    return text.getvalue().encode()


def lines(files: dict[str, bytes], record_path: str) -> Iterator[tuple[str, str, str]]:
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        yield name, f"sha256={digest}", str(len(content))
    yield record_path, "", ""
