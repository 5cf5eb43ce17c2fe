"""`ciphercost --version -v`: the versions of everything that makes a figure."""

from __future__ import annotations

import platform
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from ciphercost.model.version import VERSION
from test_real import ciphercost

ROOT = Path(__file__).parents[2]
REQUIRED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def test_alone_it_is_one_line(tmp_path: Path) -> None:
    assert ciphercost("--version", cwd=tmp_path).stdout == f"ciphercost {VERSION}\n"


@pytest.mark.parametrize("argv", [("--version", "-v"), ("-v", "--version"), ("--version", "--verbose")])
def test_with_v_it_names_agents_and_libraries(argv: tuple[str, ...], tmp_path: Path) -> None:
    done = ciphercost(*argv, cwd=tmp_path)
    assert done.returncode == 0
    first, *lines = done.stdout.splitlines()
    versions = {line[:22].strip(): line[22:].strip() for line in lines}
    assert first == f"ciphercost {VERSION}"
    assert versions["agent"].startswith(f"{VERSION} (")
    assert versions["Java agent"].startswith((f"{VERSION} (", "not built yet"))
    assert versions["Python"].startswith(platform.python_version())
    for name in ("OpenSSL", "SQLite", "SQLCipher"):
        assert re.match(r"\d+\.\d+", versions[name]), versions
    for name in (re.split("[>=]", requirement)[0] for requirement in REQUIRED):
        assert versions[name] == metadata.version(name)


def test_without_an_agent_it_says_what_to_do(tmp_path: Path) -> None:
    broken = tmp_path / "agent"
    broken.write_text("#!/bin/sh\necho no agent\n")
    broken.chmod(0o755)
    done = ciphercost("--version", "-v", cwd=tmp_path, CIPHERCOST_AGENT=str(broken))
    assert done.returncode == 0
    assert "OpenSSL" not in done.stdout
    assert re.search(rf"agent +{re.escape(str(broken))} does not answer", done.stdout)


def test_v_without_version_is_refused(tmp_path: Path) -> None:
    done = ciphercost("-v", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert "ciphercost --version -v" in done.stderr
