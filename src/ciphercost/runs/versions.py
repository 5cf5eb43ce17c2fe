"""Versions of everything that makes a figure: ciphercost, its agents, their libraries, and the Python libraries."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from ciphercost.host.environment import child_environment
from ciphercost.load import agent
from ciphercost.load.jdbc import java
from ciphercost.model.errors import CiphercostError
from ciphercost.model.version import VERSION

HELLO = '{"type":"hello","protocol":1}\n'
OPEN_SQLITE = '{"type":"connect","arm":"plain","driver":"sqlite","path":":memory:"}\n'
"""The answer names SQLite and SQLCipher."""


def answers(path: str, requests: str = HELLO) -> list[dict[str, object]]:
    """What an agent answers to these lines. Unlike `agent.Agent` it accepts an agent of another protocol.

    Raises OSError, subprocess.SubprocessError; ValueError if an answer is no JSON object.
    """
    done = subprocess.run(
        [path], input=requests, capture_output=True, text=True, timeout=20, check=False, env=child_environment()
    )
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    if not replies or not all(isinstance(reply, dict) for reply in replies):
        raise ValueError("its answers are not those of an agent")
    return replies


def versions() -> list[tuple[str, str]]:
    """(what, its version) of this installation. Something that is missing has a line too, with what to do."""
    return [
        ("ciphercost", VERSION),
        *_agent(),
        ("Java agent", _java_agent()),
        ("Python", f"{platform.python_version()} ({sys.executable})"),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        *((name, _installed(name)) for name in libraries()),
    ]


def libraries() -> list[str]:
    """Names of the Python libraries that ciphercost requires, in alphabetical order; none if its metadata is not installed."""
    try:
        required = metadata.requires("ciphercost") or []
    except metadata.PackageNotFoundError:
        return []
    names = (re.match(r"[\w.-]+", requirement) for requirement in required if "extra ==" not in requirement)
    return sorted(name[0] for name in names if name and name[0] != agent.DISTRIBUTION)


def _agent() -> Iterator[tuple[str, str]]:
    try:
        path = agent.find()
    except CiphercostError as error:
        yield "agent", str(error)
        return
    try:
        hello, *opened = answers(path, HELLO + OPEN_SQLITE)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield "agent", f"{path} does not answer ({error})"
        return
    yield "agent", f"{hello.get('version', 'of unknown version')} ({path})"
    yield "OpenSSL", f"{str(hello.get('tls_library', 'unknown')).removeprefix('OpenSSL ')}, in the agent"
    library = str(opened[0].get("library", "")) if opened else ""
    for name in ("SQLite", "SQLCipher"):
        match = re.search(rf"\b{name} ([^,]+)", library)
        yield name, f"{match[1]}, in the agent" if match else "unknown"


def _java_agent() -> str:
    try:
        jar = java.jar(fetch=False)
        with zipfile.ZipFile(jar) as archive:
            manifest = archive.read("META-INF/MANIFEST.MF").decode(errors="replace")
    except CiphercostError:
        return "not built yet; Maven builds it when JDBC is first used"
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        return f"can't be read: {error}"
    match = re.search(r"^Implementation-Version: (\S+)", manifest, re.MULTILINE)
    return f"{match[1] if match else 'of unknown version'} ({Path(jar)})"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
