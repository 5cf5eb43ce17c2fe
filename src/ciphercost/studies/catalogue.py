"""What `list`, completion and error messages need of each study, without importing any: `study.toml` in the study's folder.

title               one line
published_server    server and version of the publication
engine, engines     the default server, and all on which it runs
workloads           values for `--workload`
options             its own options of `replicate`, by their command-line names with `_` for `-`
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

FILE = "study.toml"
FOLDER = Path(__file__).parent


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One study's file."""

    title: str
    published_server: str
    engine: str
    engines: tuple[str, ...]
    workloads: tuple[str, ...]
    options: tuple[str, ...]


def names() -> list[str]:
    """Names of all studies: folder names with '-' for '_'."""
    return sorted(path.parent.name.replace("_", "-") for path in FOLDER.glob(f"*/{FILE}"))


def folder(name: str) -> str:
    return name.replace("-", "_")


@functools.cache
def entry(name: str) -> Entry:
    """The entry of the study with that name, which must exist."""
    return msgspec.toml.decode((FOLDER / folder(name) / FILE).read_bytes(), type=Entry)


def having(option: str) -> list[str]:
    """Names of the studies that have this option."""
    return [name for name in names() if option in entry(name).options]
