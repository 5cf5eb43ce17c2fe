"""The Rust agent: its crates for one target, as cargo resolves them from Cargo.lock, and the C libraries in it."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from .document import Package
from .native import libraries

AGENT = Path(__file__).parents[2] / "agents" / "rust"
CARRIERS = {"openssl-src": "openssl", "sqlcipher-src": "sqlcipher"}
"""Crate -> the C library whose sources it carries."""


def locked() -> dict[str, str]:
    """Crate -> version of those that carry C libraries."""
    packages = tomllib.loads((AGENT / "Cargo.lock").read_text())["package"]
    return {each["name"]: each["version"] for each in packages if each["name"] in CARRIERS}


def packages(target: str, name: str = "ciphercost-agent") -> tuple[Package, list[Package]]:
    """The agent, and what it is built from for this target. Crates that only take part in the build have `shipped` False."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    done = subprocess.run(command, cwd=AGENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"sbom: {' '.join(command)} failed:\n{done.stderr}")
    resolved = json.loads(done.stdout)
    crates = {each["id"]: each for each in resolved["packages"]}
    nodes = {each["id"]: each for each in resolved["resolve"]["nodes"]}
    root = resolved["resolve"]["root"]
    hashes = _hashes()
    shipped, built = _reached(root, nodes, crates, ()), _reached(root, nodes, crates, ("build",))
    made = {each: _crate(crates[each], hashes, each in shipped) for each in sorted(built - {root})}
    for each, package in made.items():
        package.needs = [made[other].purl for other in sorted(_needs(nodes[each], ("build",)))]

    native = libraries(locked())
    purls = {each.name: each.purl for each in native}
    for package in made.values():
        if package.name in CARRIERS:
            package.needs.append(purls[CARRIERS[package.name]])
    std = _standard_library()
    agent = Package("pypi", name, crates[root]["version"], crates[root]["license"])
    agent.needs = [made[each].purl for each in sorted(_needs(nodes[root], ("build",)))]
    agent.needs += [std.purl, *(purls[each] for each in CARRIERS.values())]
    return agent, [*made.values(), *native, std]


def tools() -> dict[str, str]:
    """Program -> version."""
    return {"rustc": _rustc(), "cargo": _version_of("cargo")}


def _crate(crate: dict[str, Any], hashes: dict[tuple[str, str], str], shipped: bool) -> Package:
    name, version = crate["name"], crate["version"]
    # Old crates write "MIT/Apache-2.0" for a choice.
    licence = (crate["license"] or "").replace("/", " OR ") or None
    return Package("cargo", name, version, licence, sha256=hashes[name, version], shipped=shipped)


def _hashes() -> dict[tuple[str, str], str]:
    packages = tomllib.loads((AGENT / "Cargo.lock").read_text())["package"]
    return {(each["name"], each["version"]): each["checksum"] for each in packages if "checksum" in each}


def _needs(node: dict[str, Any], further: tuple[str, ...]) -> set[str]:
    kinds = {None, *further}
    return {each["pkg"] for each in node["deps"] if any(kind["kind"] in kinds for kind in each["dep_kinds"])}


def _reached(root: str, nodes: dict[str, Any], crates: dict[str, Any], further: tuple[str, ...]) -> set[str]:
    """What the root needs, and what that needs. Without the kind "build" macros are left out too: they run in the compiler."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        macro = any("proc-macro" in target["kind"] for target in crates[each]["targets"])
        if each in found or (macro and "build" not in further):
            continue
        found.add(each)
        waiting += _needs(nodes[each], further)
    return found


def _standard_library() -> Package:
    version = _rustc()
    cpe = f"cpe:2.3:a:rust-lang:rust:{version}:*:*:*:*:*:*:*"
    return Package("generic", "rust-std", version, "MIT OR Apache-2.0", cpe=cpe)


def _rustc() -> str:
    return _version_of("rustc")


def _version_of(program: str) -> str:
    """The second word of `PROGRAM --version`: `rustc 1.85.0 (4d91de4e4 2025-02-17)`."""
    done = subprocess.run([program, "--version"], cwd=AGENT, capture_output=True, text=True, check=True)
    return done.stdout.split()[1]
