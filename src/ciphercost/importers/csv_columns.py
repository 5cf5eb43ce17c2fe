"""Parses the option that maps a table's columns and their units: `time=elapsed_ms,arm=mode,operations=n`. Pure."""

from __future__ import annotations

import re
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
    found: list[Column] = []
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
        if role != "factor" and role in (each.role for each in found):
            raise UsageError(f"--columns {text}: {role} is given twice; import the file once for each")
        known = TIME_UNITS if role in ("time", "latency") else ("%", "share") if role == "cpu" else ()
        if unit and unit not in known:
            raise UsageError(f"--columns {text}: '{unit}' is not a unit of {role}: {', '.join(known) or 'it has none'}")
        found.append(Column(role, name.strip(), unit))
    if not any(each.role in FIGURES for each in found):
        raise UsageError(f"--columns {text}: no figure; map at least one of {', '.join(FIGURES)}; e.g. {EXAMPLE}")
    return found


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
    made: dict[str, str] = {}
    for role, names in GUESSES:
        fits = [name for name in header if re.fullmatch(names, name.strip(), re.IGNORECASE) and "," not in name]
        if fits:
            made[role] = fits[0]
    if "throughput" in made:
        made.pop("time", None)
    if not made.keys() & set(FIGURES):
        return ""
    words = ",".join(f"{role}={name}" for role, name in made.items())
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
