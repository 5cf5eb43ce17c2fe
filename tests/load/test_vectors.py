"""Every agent passes the protocol's test vectors; agents/vectors/README.md describes their format."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fake
from ciphercost.load import agent

VECTORS = Path(__file__).parents[2] / "agents" / "vectors"


KINDS: dict[str, tuple[type, ...]] = {"number": (int, float), "integer": (int,), "string": (str,), "boolean": (bool,)}


def holds(rule: str, value: Any, got: Any) -> bool:
    match rule:
        case "$type":
            return isinstance(got, KINDS[value]) and (value == "boolean" or not isinstance(got, bool))
        case "$min":
            return isinstance(got, int | float) and got >= value
        case "$max":
            return isinstance(got, int | float) and got <= value
        case "$match":
            return isinstance(got, str) and re.search(value, got) is not None
    raise AssertionError(f"unknown rule {rule} in a vector")


def matches(expected: Any, got: Any) -> bool:
    """Subset match: named fields must match; `"$any"` and {"$type" | "$min" | "$max" | "$match": …} stand for values."""
    if expected == "$any":
        return True
    if isinstance(expected, dict) and any(key.startswith("$") for key in expected):
        return all(holds(rule, value, got) for rule, value in expected.items())
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(key in got and matches(value, got[key]) for key, value in expected.items())
    return bool(expected == got) and isinstance(expected, bool) == isinstance(got, bool)


def files() -> list[Path]:
    paths = sorted(VECTORS.glob("*.jsonl"))
    assert paths, "there are no vectors"
    return paths


LACKS = {
    "rust": ("jdbc",),
    "fake": ("sqlite", "mysql", "http", "resp", "jdbc", "steps", "given"),
    "java": ("sqlite", "mysql", "http", "resp", "sealing", "given"),
    "go": ("sqlite", "mysql", "http", "resp", "sealing", "jdbc", "given"),
    "python": ("sqlite", "mysql", "http", "resp", "jdbc", "sealing", "given"),
    "node": ("sqlite", "mysql", "http", "resp", "jdbc", "sealing", "given"),
}
"""Prefixes of files that an agent may skip: drivers that its `hello` does not list; sealing and given times, which only the Rust agent
supports; steps, which the fake agent does not.
"""


def files_for(which: str) -> list[Path]:
    return [path for path in files() if not path.stem.startswith(LACKS[which])]


@pytest.mark.parametrize(
    ("which", "path"),
    [(which, path) for which in ("rust", "fake") for path in files_for(which)],
    ids=lambda value: value.stem if isinstance(value, Path) else value,
)
def test_every_agent_passes_the_vectors(tmp_path: Path, path: Path, which: str) -> None:
    argv = [agent.find()] if which == "rust" else [sys.executable, str(fake.AGENT)]
    run(path, argv, tmp_path)


def run(path: Path, argv: list[str], cwd: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=cwd
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, step in enumerate(lines, start=1):
            where = f"{path.name}, step {number}"
            if "send" in step:
                sent = step["send"] if isinstance(step["send"], str) else json.dumps(step["send"])
                process.stdin.write(sent + "\n")
            elif "expect" in step:
                answer = json.loads(process.stdout.readline() or "null")
                assert matches(step["expect"], answer), f"{where}: expected {step['expect']}, got {answer}"
                assert answer is None or all(not isinstance(value, dict | list) for value in answer.values()), (
                    f"{where}: not flat"
                )
            elif "exit" in step:
                process.stdin.close()
                assert process.wait(timeout=20) == step["exit"], where
        if not process.stdin.closed:
            process.stdin.close()
        process.wait(timeout=20)
