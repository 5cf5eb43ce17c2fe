"""own_scripts: the user's scripts and pgbench's own as a workload, each with its weight."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ciphercost.load import text_file, workloads
from ciphercost.load.pgbench.builtins import BUILTINS, builtin
from ciphercost.load.pgbench.reader import VARIABLE
from ciphercost.load.workloads import Transaction, Workload
from ciphercost.model.errors import UsageError, nearest

TABLES = "tpcb"
"""The workload whose tables are those of `pgbench -i`, and whose transaction is `tpcb-like` in each server's SQL."""
GREATEST_WEIGHT = 2**31 - 1
SCALE = "scale"


class Weighted(NamedTuple):
    name: str
    weight: int


def weighted(text: str, option: str) -> Weighted:
    """`a.sql@3` → (a.sql, 3). Raises UsageError."""
    name, at, number = text.rpartition("@")
    if not at:
        return Weighted(text, 1)
    if not re.fullmatch(r"\d+", number) or int(number) > GREATEST_WEIGHT:
        raise UsageError(f"{option} {text}: '{number}' is not a weight; write a whole number, e.g. {option} {name}@3")
    return Weighted(name, int(number))


def of_file(text: str) -> Weighted:
    """The file that `--sql` names, and its weight. A file whose name really ends in @3 is that file. Raises UsageError."""
    return Weighted(text, 1) if Path(text).is_file() else weighted(text, "--sql")


def of_builtin(text: str) -> Weighted:
    """The full name of one of pgbench's scripts, which may be written short, and its weight. Raises UsageError."""
    name, weight = weighted(text, "--builtin")
    fits = [full for full in BUILTINS if full.startswith(name)] if name else []
    if len(fits) != 1:
        why = f"may be {' or '.join(fits)}" if fits else nearest(name, BUILTINS)
        raise UsageError(f"--builtin {text}: {'not clear' if fits else 'pgbench has no such script'}; {why}")
    return Weighted(fits[0], weight)


def workload(files: Sequence[str], builtins: Sequence[str], *, tables: bool) -> Workload:
    """The scripts as one workload, a transaction each. `tables`: the server has none of pgbench's yet, so they are made for its scripts.

    Raises UsageError for a file that can't be read, an unknown script, and weights that leave nothing to run.
    """
    paths = [(Path(name), weight) for name, weight in map(of_file, files)]
    chosen = [of_builtin(text) for text in builtins]
    transactions = [Transaction(path.name, text_file.read(path, "--sql"), weight) for path, weight in paths]
    transactions += [Transaction(name, "", weight) for name, weight in chosen]
    transactions = _apart(transactions)
    if not any(transaction.weight for transaction in transactions):
        raise UsageError("all scripts have weight 0, so none would run; write one without @0")
    names = [transaction.name for transaction in transactions]
    own = Workload(
        title=f"statements of {', '.join(names)}",
        measures="your own statements" if files else "pgbench's own scripts",
        transaction=transactions,
        name=", ".join(names),
        directory=str(paths[0][0].parent) if paths else "",
        own_sql=True,
    )
    return _with_builtins(own, tables) if chosen else own


def _apart(transactions: Sequence[Transaction]) -> list[Transaction]:
    """The transactions with a number behind a name that another one has too."""
    seen: dict[str, int] = {}
    renamed = []
    for transaction in transactions:
        count = seen[transaction.name] = seen.get(transaction.name, 0) + 1
        name = f"{transaction.name} ({count})" if count > 1 else transaction.name
        renamed.append(msgspec.structs.replace(transaction, name=name))
    return renamed


def _with_builtins(own: Workload, tables: bool) -> Workload:
    """The workload with the text of pgbench's scripts in each server's SQL, and with their tables."""
    base = workloads.get(TABLES)
    (usual,) = base.transaction

    def written(transaction: Transaction, tpcb: str) -> Transaction:
        name = transaction.name.partition(" ")[0]
        if transaction.script or name not in BUILTINS:
            return transaction
        return msgspec.structs.replace(transaction, script=builtin(name, tpcb))

    dialects: dict[str, dict[str, str]] = {}
    for dialect, overrides in base.dialect.items():
        fitting = {
            transaction.name: written(transaction, overrides[usual.name]).script
            for transaction in own.transaction
            if usual.name in overrides and not transaction.script
        }
        rest = {name: str(text) for name, text in overrides.items() if name in ("load", "check") and tables}
        dialects[dialect] = {**rest, **fitting}
    whole = msgspec.structs.replace(
        own, transaction=[written(transaction, usual.script) for transaction in own.transaction], dialect=dialects
    )
    if not tables:
        return whole
    return msgspec.structs.replace(
        whole, load=base.load, check=base.check, parameters=base.parameters, derived=base.derived, clients=base.clients
    )


def check_defined(defined: Mapping[str, str], of: Workload) -> None:
    """Raises UsageError for a variable of `-D` that has no name, or that no script uses."""
    for name in defined:
        if not VARIABLE.fullmatch(name):
            raise UsageError(
                f"-D {name}: not the name of a variable, which has letters, digits and _, and begins with no digit"
            )
        if name not in of.parameters and not any(mentions(transaction.script, name) for transaction in of.transaction):
            raise UsageError(f"-D {name}: no script uses :{name}; remove it")


def mentions(text: str, name: str) -> bool:
    """Whether a script's text holds `:name`."""
    return re.search(rf":{re.escape(name)}\b", text) is not None


def asks_scale(of: Workload) -> bool:
    """Whether a script uses `:scale` and sets none itself: then it is the number of pgbench's branches on the server."""
    texts = [transaction.script for transaction in of.transaction]
    return any(mentions(text, SCALE) and not re.search(r"\\set\s+scale\b", text) for text in texts)
