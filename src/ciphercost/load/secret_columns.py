"""Which of a workload's columns are encrypted (`--set secret=…`). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ciphercost.load import secret_sql, workloads
from ciphercost.load.tables import csvfile
from ciphercost.load.tables.columns import names as sql_names
from ciphercost.load.tables.columns import shown
from ciphercost.model.errors import UsageError, nearest

FACTOR = "secret"
ALL, NONE = "all", "none"


def names(workload: workloads.Workload) -> tuple[str, ...]:
    """Return the workload's named secret columns in the order of its tables.

    None: its secret columns can't be chosen by name.
    """
    return secret_sql.named(workload.load)


def of_rows(asked: str | None, listed: Sequence[str], path: Path, *, header: bool = True) -> tuple[str, ...]:
    """Return the titles of the columns of a file of rows that `--secret` (`listed`) or `--set secret=…` (`asked`) means, in the order
    of the file. Raises UsageError.
    """
    where = f"--csv {path}"
    line, titles = next(csvfile.rows(path, header=header))
    if asked is None:
        raise UsageError(
            f"{where}: no column is secret, so nothing would be encrypted; name columns with --secret, e.g. --secret "
            f"{shown(titles[-1])} (of {_few(titles)})"
        )
    named = list(listed) if listed else _parts(asked, titles)
    by_sql_name = dict(zip(sql_names(titles, f"{where}, line 1"), titles, strict=True))
    place = f"{where}, line {line}" if header else where
    for number, name in enumerate(named):
        if name not in titles and name not in by_sql_name:
            raise UsageError(f"{place}: no column is named '{shown(name)}', as --secret asks: {nearest(name, titles)}")
        named[number] = name if name in titles else by_sql_name[name]
        if named.index(named[number]) < number:
            raise UsageError(f"--secret {','.join(named)}: '{shown(name)}' is listed twice; list it once")
    return tuple(title for title in titles if title in named)


def _parts(asked: str, titles: Sequence[str]) -> list[str]:
    """The names in the value of `--set secret=…`."""
    if asked in (ALL, NONE) and asked not in titles:
        return list(titles) if asked == ALL else []
    return [asked] if asked in titles else [name.strip() for name in re.split(r"[,+]", asked)]


def _few(titles: Sequence[str]) -> str:
    few = ", ".join(map(shown, titles[:8]))
    return f"{few} …" if len(titles) > 8 else few


def chosen(value: str, known: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the columns that `all`, `none`, a number or a list of names means. A number N means the first N of
    `known`.

    Names are separated by commas, or by `+` where a comma separates values. Raises UsageError with the nearest name.
    """
    text = value.strip()
    if text in (ALL, NONE):
        return tuple(known) if text == ALL else ()
    if re.fullmatch(r"[0-9]+", text):
        if len(text) > 6 or int(text) > len(known):
            raise UsageError(
                f"secret={value}: {where} has {len(known)} secret columns; write a number from 0 to {len(known)}"
            )
        return tuple(known[: int(text)])
    if not text:
        raise UsageError("secret=: names no columns; write names with commas, all, none or a number")
    listed = [name.strip() for name in re.split(r"[,+]", text)]
    for name in listed:
        if name not in known:
            raise UsageError(
                f"secret={value}: {where} has no secret column '{name}' (list names with commas, or write all, none or a number): "
                f"{nearest(name, [*known, ALL, NONE])}"
            )
        if listed.count(name) > 1:
            raise UsageError(f"secret={value}: '{name}' is listed twice")
    return tuple(listed)
