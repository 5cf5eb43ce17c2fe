"""Which of a workload's columns are encrypted (`--set secret=…`). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ciphercost.load import secret_sql, workloads
from ciphercost.model.errors import UsageError, nearest

FACTOR = "secret"
ALL, NONE = "all", "none"


def names(workload: workloads.Workload) -> tuple[str, ...]:
    """Return the workload's named secret columns in the order of its tables.

    None: its secret columns can't be chosen by name.
    """
    return secret_sql.named(workload.load)


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
    listed = [each.strip() for each in re.split(r"[,+]", text)]
    for name in listed:
        if name not in known:
            raise UsageError(
                f"secret={value}: {where} has no secret column '{name}' (list names with commas, or write all, none or a number): "
                f"{nearest(name, [*known, ALL, NONE])}"
            )
        if listed.count(name) > 1:
            raise UsageError(f"secret={value}: '{name}' is listed twice")
    return tuple(listed)
