"""The names that completion offers, read from the registries once and then kept in the cache.

Importing every engine and mechanism takes several times as long as a reader of a prompt would wait. So the first
completion after an update of ciphercost imports them and writes their names to a file; the others read that file.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Any, TypedDict

from ciphercost.model.version import VERSION

PACKAGE = Path(__file__).parents[1]
REGISTRIES = (
    "engines",
    "mechanisms",
    "hops",
    "load/drivers",
    "load/workloads",
    "studies",
    "report",
    "report/formats",
    "report/comparison_formats",
    "report/trend_formats",
)
"""Directories in which each file adds names."""


class Engine(TypedDict):
    title: str
    language: str
    workload: str
    """The default workload."""
    mechanisms: list[str]


class Mechanism(TypedDict):
    title: str
    factors: dict[str, list[str]]
    """Values of each `--set` name; empty if any text is a value."""


class Workload(TypedDict):
    title: str
    languages: list[str]
    parameters: dict[str, list[str]]
    """Values of each `--set` name; of a number only its default."""


class Names(TypedDict):
    """All names."""

    stamp: str
    engines: dict[str, Engine]
    mechanisms: dict[str, Mechanism]
    workloads: dict[str, Workload]
    studies: dict[str, str]
    """Title by name."""
    hops: dict[str, str]
    clients: list[str]
    """What makes the load."""
    schemes: list[str]
    """Of URLs that `prove` takes."""
    needs: list[str]
    """Words of `report --need`."""
    lists: list[str]
    """Tables of `list`."""
    formats: dict[str, list[str]]
    """By command: names of its formats."""


def names() -> Names:
    """All names, from the cache if no file of a registry has changed since they were written there."""
    stamp, file = _stamp(), _file()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        # Somebody else's words must not reach the terminal.
        if file.stat().st_uid == os.geteuid():
            kept: Names = json.loads(file.read_text())
            if kept["stamp"] == stamp:
                return kept
    fresh_names = _read(stamp)
    with contextlib.suppress(OSError):
        _write(file, fresh_names)
    return fresh_names


def _stamp() -> str:
    """Changes with the version and with every file of a registry."""
    files: list[tuple[str, str, int]] = []
    for registry in REGISTRIES:
        with contextlib.suppress(FileNotFoundError), os.scandir(PACKAGE / registry) as entries:
            files += ((registry, entry.name, entry.stat().st_mtime_ns) for entry in entries)
    return f"{VERSION}-{zlib.crc32(repr(sorted(files)).encode()):08x}"


def _file() -> Path:
    """In $CIPHERCOST_CACHE or the user's own cache; for root too, unlike fetched servers, which run as another user."""
    chosen = os.environ.get("CIPHERCOST_CACHE")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ciphercost"
    return base / "completion.json"


def _write(file: Path, all_names: Names) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(json.dumps(all_names))
    beside.replace(file)


def _read(stamp: str) -> Names:
    from ciphercost import engines, hops, mechanisms
    from ciphercost.load import clients, workloads
    from ciphercost.plan import targets
    from ciphercost.report import advice, comparison_formats, formats, inventory, trend_formats
    from ciphercost.studies import catalogue

    every_engine = [engines.get(name) for name in engines.names()]
    every_mechanism = [mechanisms.get(name) for name in mechanisms.names()]
    every_workload = [workloads.get(name) for name in workloads.names()]
    return Names(
        stamp=stamp,
        engines={
            engine.name: Engine(
                title=engine.title,
                language=engine.language,
                workload=engine.usual_workload,
                mechanisms=list(mechanisms.of(engine)),
            )
            for engine in every_engine
        },
        mechanisms={
            mechanism.name: Mechanism(
                title=mechanism.title, factors={factor.name: list(factor.values) for factor in mechanism.factors}
            )
            for mechanism in every_mechanism
        },
        workloads={workload.name: _workload(workload) for workload in every_workload},
        studies={name: catalogue.entry(name).title for name in catalogue.names()},
        hops={name: hops.get(name).title for name in hops.names()},
        clients=clients.words(),
        schemes=list(targets.schemes()),
        needs=list(advice.NEEDS),
        lists=list(inventory.TABLES),
        formats={
            "report": formats.names(),
            "compare": comparison_formats.names(),
            "trend": trend_formats.names(),
        },
    )


def _workload(workload: Any) -> Workload:
    numbers = {name: [str(value)] for name, value in workload.parameters.items()}
    words = {name: list(values) for name, values in workload.choices.items()}
    return Workload(title=workload.title, languages=list(workload.languages), parameters=numbers | words)
