"""Parses the option that maps a table's columns and their units: `time=elapsed_ms,arm=mode,operations=n`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ciphercost.importers.formats import Bad
from ciphercost.model.errors import UsageError, nearest

ROLES = (
    "time",
    "latency",
    "throughput",
    "operations",
    "cpu",
    "arm",
    "run",
    "clients",
    "workload",
    "factor",
    "at",
    "decimal",
)
FIGURES = ("time", "latency", "throughput", "cpu")
EXAMPLE = "--columns time=elapsed_ms,arm=mode,operations=n"
TIME_UNITS = ("s", "ms", "us", "µs")
UNIT_IN_NAME = re.compile(
    r"(?:^|[\s_.(\[-])(ms|us|µs|s|sec|secs|seconds|millis|milliseconds|micros|microseconds)[)\]]?\s*$", re.IGNORECASE
)
LONG_UNITS = {
    "sec": "s",
    "secs": "s",
    "seconds": "s",
    "millis": "ms",
    "milliseconds": "ms",
    "micros": "us",
    "microseconds": "us",
}
DECIMALS = ("point", "comma")


class Column(NamedTuple):
    """One column of the map: its role, its name in the file, and its unit if stated."""

    role: str
    name: str
    unit: str


def columns(text: str) -> list[Column]:
    """Parse a map such as `time=elapsed_ms,arm=mode,operations=n` or `latency=p50:us`. Raises UsageError."""
    mapped: list[Column] = []
    for word in text.split(","):
        role, equals, rest = word.partition("=")
        name, _, unit = rest.partition(":")
        role = role.strip()
        if not equals or not name.strip():
            raise UsageError(f"--columns {text}: '{word}' is not ROLE=COLUMN; e.g. {EXAMPLE}")
        if role not in ROLES:
            raise UsageError(f"--columns {text}: unknown role '{role}': {nearest(role, ROLES)}")
        if role == "decimal" and name.strip() not in DECIMALS:
            raise UsageError(f"--columns {text}: decimal must be 'point' or 'comma', whichever the figures use")
        if role not in ("factor", *FIGURES) and role in (column.role for column in mapped):
            raise UsageError(f"--columns {text}: {role} is given twice; import the file once for each")
        known = TIME_UNITS if role in ("time", "latency") else ("%", "share") if role == "cpu" else ()
        if unit and unit not in known:
            raise UsageError(f"--columns {text}: '{unit}' is not a unit of {role}: {', '.join(known) or 'it has none'}")
        mapped.append(Column(role, name.strip(), unit))
    several = {role for role in FIGURES if sum(column.role == role for column in mapped) > 1}
    if several and (len(several) > 1 or any(column.role == "workload" for column in mapped)):
        raise UsageError(f"--columns {text}: {', '.join(sorted(several))} given twice: each such column is a workload of its own, so only one figure "
                         "may have several, and workload= can't be mapped too")  # fmt: skip
    names = [column.name.lower() for column in mapped if column.role in several]
    if len(set(names)) < len(names):
        raise UsageError(f"--columns {text}: a column is given twice for {', '.join(several)}")
    if not any(column.role in FIGURES for column in mapped):
        raise UsageError(f"--columns {text}: no figure; map at least one of {', '.join(FIGURES)}; e.g. {EXAMPLE}")
    return mapped


def of_each_workload(mapped: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Return (workload, map) for each of a role's several columns, as in `time=INSERT:s,time=SELECT:s`; one map without a workload if
    no role has several. Pure.
    """
    role = next((role for role in FIGURES if sum(column.role == role for column in mapped) > 1), "")
    if not role:
        return [("", list(mapped))]
    return [
        (own.name, [column for column in mapped if column.role != role or column is own])
        for own in mapped
        if own.role == role
    ]


GUESSES = (
    (
        "throughput",
        (
            r"tps|qps|rps|ops|iops|throughput|rate"
            r"|(?:transactions|queries|requests|ops|operations|req|tx)(?:_| |/)?(?:/|per)?[ _]?s(?:ec(?:ond)?)?"
        ),
    ),
    (
        "latency",
        (
            r"(?:mean|avg|average|p50|median)?[ _]?(?:lat(?:ency)?|response[ _]?time)(?:[ _]?(?:mean|avg|average|p50))?(?:[ _(\[].*)?"
            r"|(?:mean|avg|p50)(?:[ _(\[].*)?"
        ),
    ),
    ("time", r"(?:elapsed|duration|time|seconds|runtime)(?:[ _(\[].*)?"),
    ("arm", r"mode|arm|tls|ssl|use_?ssl|ssl[-_]?mode|encrypted|encryption|tde|variant|config"),
    ("clients", r"clients?|threads?|connections?|conns?|concurrency"),
    ("cpu", r"cpu.*%?"),
)
"""Roles, and names of columns that usually have them."""


def suggested(header: list[str]) -> str:
    """Return a map for a table with these columns, as far as their names tell; empty: no figure is among them. Pure."""
    column_by_role: dict[str, str] = {}
    for role, names in GUESSES:
        fits = [name for name in header if re.fullmatch(names, name.strip(), re.IGNORECASE) and "," not in name]
        if fits:
            column_by_role[role] = fits[0]
    if "throughput" in column_by_role:
        column_by_role.pop("time", None)
    if not column_by_role.keys() & set(FIGURES):
        return ""
    words = ",".join(f"{role}={name}" for role, name in column_by_role.items())
    return f"--columns '{words}'" if re.search(r"[^\w=,.:/-]", words) else f"--columns {words}"


def unit_of(column: Column, in_cells: bool = False) -> str:
    """Return the unit: as stated, or from the end of the column's name. Raises Bad if neither gives one.

    `in_cells`: whether each value has its own unit; these are then converted to seconds.
    """
    if column.unit:
        return column.unit
    if column.role == "cpu" and ("%" in column.name or re.search("per_?cent|pct", column.name, re.IGNORECASE)):
        return "%"
    if column.role in ("time", "latency") and (match := UNIT_IN_NAME.search(column.name)):
        return LONG_UNITS.get(match[1].lower(), match[1].lower())
    if in_cells:
        return "%" if column.role == "cpu" else "s"
    wanted = "% or share" if column.role == "cpu" else "s, ms or us"
    raise Bad(
        1,
        f"the unit of '{column.name}' is unknown ({wanted}); state it, e.g. --columns {column.role}={column.name}:{wanted.split()[0].strip(',')}",
    )
