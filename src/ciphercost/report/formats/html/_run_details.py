"""The machine, the command and the versions of a run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ciphercost.model.result import Result

MACHINE = {
    "cpu": "CPU",
    "aes": "AES instructions",
    "vaes": "VAES instructions",
    "kernel": "Linux",
    "virtual": "virtual machine",
}


def machine(result: Result) -> Iterator[tuple[str, str]]:
    for key, value in result.machine.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        if key == "memory" and isinstance(value, int | float):
            text = f"{value / 1e9:.1f} GB"
        yield MACHINE.get(key, key.replace("_", " ")), text


def command(result: Result) -> str:
    """The command as typed, plus this run's seed, so that it repeats the same random choices.

    A spec file takes no options beside it; it holds the seed, if one was chosen.
    """
    if not result.command:
        return ""
    seeded = (
        ""
        if "--seed" in result.command
        or re.search(r"\.toml\b", result.command)
        or any(cell.imported for cell in result.cells)
        or result.command.partition(" ")[2].startswith("replicate")
        else f" --seed {result.seed}"
    )
    return f"{result.command}{seeded}"


def versions(result: Result) -> Iterator[tuple[str, str]]:
    yield result.tool.get("name", "ciphercost"), result.tool.get("version", "")
    yield from _once((cell.engine, cell.version) for cell in result.cells)
    yield from _once(
        (f"{cell.engine}, {end}'s library", cell.encryption[f"{end}_library"])
        for cell in result.cells
        for end in ("server", "client")
        if cell.encryption.get(f"{end}_library")
    )
    yield from _once(("client", cell.client) for cell in result.cells)
    yield "seed", str(result.seed)


def _once(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    yield from ((name, str(value)) for name, value in dict.fromkeys(pairs) if value)
