"""Stable names of cells: `postgresql:tls point-select one-core cipher=chacha20`, as trackers and `result["…"]` use them. Pure.

A name says what was asked for, so the same request has the same name in every run. It omits what differs from machine to machine,
such as the server's version, unless the request named it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ciphercost.model.errors import UnknownCell
from ciphercost.model.result import Cell, Result
from ciphercost.model.spec import CellSpec

MOST_LISTED = 30
"""Cells that an error lists at most."""
_NAMED = ("clients", "rows", "rate", "client", "cpu_crypto", "bandwidth", "delay", "mtu", "loss", "cache", "idle")
"""Fields of a spec that a name contains as NAME=VALUE if they differ from the default."""


def ids(result: Result) -> list[str]:
    """A name for each cell, unique in the run: cells that were asked for twice get `#2`, `#3`, … at the end."""
    seen: dict[str, int] = {}
    names = []
    for cell, spec in zip(result.cells, _specs(result), strict=True):
        name = " ".join(_words(cell, spec))
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return names


def matching(result: Result, wanted: str) -> list[int]:
    """Numbers of the cells that fit: the one whose name is `wanted`, or else all that have each of its words.

    Words are those of the names, ENGINE, ENGINE@VERSION, ENGINE:MECHANISM, the mechanism, factors as NAME=VALUE, and the
    words of the variant.
    """
    names = ids(result)
    if wanted in names:
        return [names.index(wanted)]
    asked = wanted.split()
    cells = zip(names, result.cells, _specs(result), strict=True)
    return [number for number, known in enumerate(cells) if asked and _searched(*known).issuperset(asked)]


def find(result: Result, wanted: str) -> int:
    """The number of the one cell that fits. Raises UnknownCell, which lists the cells, if none or several do."""
    fits = matching(result, wanted)
    if len(fits) == 1:
        return fits[0]
    names = ids(result)
    if not fits:
        raise UnknownCell(f"no cell is '{wanted}'; this run has {_listed(names)}")
    several = _listed([names[number] for number in fits], fits)
    raise UnknownCell(f"'{wanted}' fits {len(fits)} cells; add words that only one has, or use its number: {several}")


def at(result: Result, number: int) -> int:
    """The number of a cell counted from 0, or from the end if negative. Raises UnknownCell, which lists the cells."""
    count = len(result.cells)
    if not -count <= number < count:
        raise UnknownCell(f"there is no cell {number}; this run has {_listed(ids(result))}")
    return number % count


def _specs(result: Result) -> Sequence[CellSpec | None]:
    """What was asked for, cell by cell. None where the result does not say, as for imported runs."""
    specs = result.spec.cells if result.spec else []
    if len(specs) != len(result.cells):
        return [None] * len(result.cells)
    return specs


def _target(cell: Cell, spec: CellSpec | None) -> str:
    version = f"@{spec.version}" if spec and spec.version else ""
    return f"{cell.engine}{version}:{cell.mechanism}"


def _words(cell: Cell, spec: CellSpec | None) -> Iterator[str]:
    yield _target(cell, spec)
    yield from filter(None, [cell.workload])
    if spec is None:
        yield from (f"{name}={value}" for name, value in cell.factors.items() if value)
        return
    if spec.regime != "capacity":
        yield spec.regime
    if spec.per_request:
        yield "per-request"
    defaults = CellSpec(spec.engine, spec.mechanism)
    for name in _NAMED:
        value = getattr(spec, name)
        if value != getattr(defaults, name):
            shown = f"{value:g}" if isinstance(value, float) else value
            yield f"{name.replace('_', '-')}={shown}"
    # A matrix orders its factors by how they were typed; a name must not depend on that.
    yield from (f"{name}={value}" for name, value in sorted((spec.factors | spec.settings).items()))
    yield from (f"versus {name}={value}" for name, value in sorted(spec.versus.items()))


def _searched(name: str, cell: Cell, spec: CellSpec | None) -> set[str]:
    version = spec.version if spec else ""
    engines = {cell.engine, f"{cell.engine}@{cell.version}", f"{cell.engine}@{version}"}
    targets = {f"{engine}:{cell.mechanism}" for engine in engines}
    words = {cell.mechanism, cell.version, cell.workload, cell.regime, f"clients={cell.clients}", *engines, *targets}
    return words | {*name.split(), *cell.variant.split(), *(f"{key}={value}" for key, value in cell.factors.items())}


def _listed(names: Sequence[str], numbers: Sequence[int] = ()) -> str:
    """`2 cells: 'a' (0), 'b' (1)`."""
    if not names:
        return "no cells"
    shown = [f"'{name}' ({number})" for name, number in zip(names, numbers or range(len(names)), strict=True)]
    more = f" and {len(shown) - MOST_LISTED} more" if len(shown) > MOST_LISTED else ""
    count = "" if numbers else f"{len(names)} cell{'s' * (len(names) != 1)}: "
    return f"{count}{', '.join(shown[:MOST_LISTED])}{more}"
