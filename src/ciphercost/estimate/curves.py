"""The cost against response size or number of clients, from cells that differ only in that number. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.model.result import Cell, Curve, Point

ALONG = ("size", "clients")
LEAST = 2
"""Least number of points of a curve in the result."""
LEAST_SHOWN = 3
"""Least number of points of a curve in reports: two points show no more than the cells' own figures."""


def curves(cells: Sequence[Cell]) -> list[Curve]:
    """A curve for each set of cells with numbers that differ only in one of ALONG and have at least LEAST values of it."""
    all_curves = []
    for along in ALONG:
        alike: dict[str, list[tuple[float, int]]] = {}
        for number, cell in enumerate(cells):
            x = _x(cell, along)
            if (
                x is not None
                and cell.pair is None
                and cell.status == "ok"
                and "throughput" in cell.overhead
                and cell.layer != "control"
            ):
                alike.setdefault(_like(cell, along), []).append((x, number))
        several = (sorted(points) for points in alike.values() if len({x for x, _ in points}) >= LEAST)
        all_curves += [_curve(cells, along, points) for points in several]
    return all_curves


def shown(all_curves: Sequence[Curve]) -> list[Curve]:
    """The curves that reports show: those of LEAST_SHOWN values or more."""
    return [curve for curve in all_curves if len({point.x for point in curve.points}) >= LEAST_SHOWN]


def _curve(cells: Sequence[Cell], along: str, points: list[tuple[float, int]]) -> Curve:
    first = cells[points[0][1]]
    curve_points = []
    for x, number in points:
        cell = cells[number]
        cpu = cell.added.get("server_cpu")
        curve_points.append(Point(x, cell.overhead["throughput"], cpu.mean if cpu else None, number))
    return Curve(first.engine, first.version, first.mechanism, first.workload, along, curve_points)


def _x(cell: Cell, along: str) -> float | None:
    if along == "clients":
        return float(cell.clients)
    value = cell.factors.get(along, "")
    return float(value) if value.isdigit() else None


def _like(cell: Cell, along: str) -> str:
    """What cells must have in common to form a curve: everything but their position on it, and what follows from that."""
    factors = {name: value for name, value in cell.factors.items() if along != "size" or not value.isdigit()}
    clients = None if along == "clients" else cell.clients
    return repr(
        (
            cell.engine,
            cell.version,
            cell.mechanism,
            cell.workload,
            cell.group,
            factors,
            clients,
            cell.conditions,
            cell.regime,
        )
    )
