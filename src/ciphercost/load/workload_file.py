"""A workload in a file of the user's, such as `ciphercost workload` writes from logs: reads and writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ciphercost.load.workloads import Transaction, Workload
from ciphercost.model import checked
from ciphercost.model.errors import UsageError, nearest

OURS = ("name", "directory", "file", "like", "together", "own_sql", "people", "records", "beside", "replication")
"""Fields that a file of the user's can't set."""
MADE_UP = "/sizes/"
"""Begins the paths of documents that stand for those of a log: what follows is their number of bytes."""
MOST_REQUESTS = 1 << 40
"""Most operations of a connection, as the agent takes them."""


def read(path: Path) -> Workload:
    """The workload in a file. Raises UsageError with file and key."""
    data = checked.toml(path)
    known = [field.name for field in msgspec.structs.fields(Workload) if field.name not in OURS]
    for key in data:
        if key not in known:
            raise UsageError(f"{path}: unknown key '{key}': {nearest(key, known)}")
    try:
        workload = msgspec.convert(data, Workload)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path}: {checked.short(error)}; `ciphercost workload` writes such a file from logs"
        ) from None
    _check(workload, path)
    return msgspec.structs.replace(
        workload,
        name=path.stem,
        file=str(path),
        directory=str(path.parent),
        own_sql=True,
    )


def _check(workload: Workload, path: Path) -> None:
    names = [transaction.name for transaction in workload.transaction]
    if not names:
        raise UsageError(f"{path}: has no [[transaction]], so it has nothing to run")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{path}: two transactions are named '{twice}'; rename one")
    for transaction in workload.transaction:
        if not 0 <= transaction.weight < 2**53:
            raise UsageError(f"{path}: weight = {transaction.weight} of '{transaction.name}': must be from 0 to 2^53")
    if not any(transaction.weight for transaction in workload.transaction):
        raise UsageError(f"{path}: all transactions have weight 0, so none would run")
    for document in workload.documents:
        if not document.startswith("/") or ".." in document.split("/"):
            raise UsageError(f"{path}, documents: '{document}' is not a path that begins with / and has no '..'")
    if (workload.arrivals == "logged") != (workload.arrived is not None):
        raise UsageError(f'{path}: arrivals = "logged" and [arrived] belong together; give both or neither')
    if workload.arrived is not None and not any(workload.arrived.counts):
        raise UsageError(f"{path}, arrived: counts has no operation; give how many came in each interval")
    for each in workload.lengths:
        if each.value != int(each.value) or not 1 <= each.value <= MOST_REQUESTS or not each.count:
            raise UsageError(
                f"{path}, lengths: [{each.value:g}, {each.count}] is not a number of requests and one of connections"
            )


def write(workload: Workload, comments: Sequence[str] = ()) -> str:
    """The workload as TOML that `read` reads. `comments`: lines above it, for people. Pure."""
    data: dict[str, Any] = msgspec.to_builtins(workload)
    usual = {field.name: field.default for field in msgspec.structs.fields(Workload)}
    given = {name: value for name, value in data.items() if name not in OURS and value not in (usual[name], [], {})}
    given.pop("transaction")
    traffic = given.pop("traffic", None)
    tables = {name: given.pop(name) for name in list(given) if isinstance(given[name], dict)}
    lines = [f"# {line}".rstrip() for line in comments]
    lines += [f"{name} = {value_text(value)}" for name, value in given.items()]
    for name, table in tables.items():
        lines += _table(name, table)
    for transaction in workload.transaction:
        lines += ["", "[[transaction]]", *_transaction(transaction)]
    if traffic is not None:
        lines += _table("traffic", traffic)
    return "\n".join(lines) + "\n"


def _transaction(transaction: Transaction) -> list[str]:
    data: dict[str, Any] = msgspec.to_builtins(transaction)
    return [f"{name} = {value_text(value)}" for name, value in data.items() if value is not None and value != {}]


def _table(name: str, table: Mapping[str, Any]) -> list[str]:
    """A table with its own tables below it."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lists = {
        key: value for key, value in plain.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    lines = ["", f"[{name}]"]
    lines += [f"{_key(key)} = {value_text(value)}" for key, value in plain.items() if key not in lists]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _table(f"{name}.{_key(key)}", value)
    for key, rows in lists.items():
        for row in rows:
            lines += ["", f"[[{name}.{_key(key)}]]"]
            lines += [f"{_key(column)} = {value_text(cell)}" for column, cell in row.items()]
    return lines


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else value_text(key)


def value_text(value: object) -> str:
    """A value in TOML. Pure."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else repr(value)
        case int():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(value_text(each) for each in value)}]"
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {value_text(each)}' for key, each in value.items())} }}"
        case _:
            return _string(str(value))


def _string(text: str) -> str:
    """A string in TOML: over several lines, as it is, if it has several and TOML's literal strings can hold it."""
    if (
        "\n" in text
        and "'''" not in text
        and all(letter >= " " or letter in "\n\t" for letter in text)
        and "\x7f" not in text
    ):
        return f"'''\n{text}'''"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(letter if letter >= " " and letter != "\x7f" else f"\\u{ord(letter):04x}" for letter in escaped)
        + '"'
    )
