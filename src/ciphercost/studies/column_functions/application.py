"""The statements that the study's application sends for each operation, in order. Pure.

They are those of the workload `hospital-2024` with literal values: the application prepares each statement anew, so each record gets
its own. All tables start with number 1, so the client knows a record's numbers without reading its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from ciphercost.load import script, secret_sql, workloads
from ciphercost.load.codec import PLAIN, Codec
from ciphercost.load.tables import hospital_records, hospital_sql
from ciphercost.load.tables.hospital_records import Record
from ciphercost.load.tables.hospital_sql import OPERATIONS
from ciphercost.model.errors import UsageError
from ciphercost.studies.column_functions.statements import statements_of

WORKLOAD = "hospital-2024"
SECRETS = tuple(hospital_sql.APPLICATION_LENGTHS)
"""The 21 secret columns, in the order of the workload's tables."""


def operation(dialect: str, codec: Codec | None, name: str, records: Sequence[Record]) -> Iterator[str]:
    """One operation over all records, without BEGIN and COMMIT. Raises UsageError for an unknown name."""
    where = f"workload {WORKLOAD}, {name}"
    found = statements_of(WORKLOAD, dialect, name)
    if name == "insert":
        for record in records:
            values = _values(record, dialect)
            for each in found:
                yield secret_sql.expand(script.fill(each, values, where), codec or PLAIN, where)
        return
    expanded = [secret_sql.expand(each, codec or PLAIN, where) for each in found]
    # A statement that names a record is sent once per record; neighbouring statements that name the same one alternate.
    for loop, body in groupby(expanded, lambda each: _loop(each, _loops(dialect, name))):
        statements = list(body)
        for record in records if loop else records[:1]:
            for each in statements:
                yield re.sub(rf":{loop}\b", str(record.number), each) if loop else each


def counts(name: str, records: int) -> dict[str, int]:
    """Number of statements of each kind in one operation on this many records, if DELETE deletes all of them. Pure."""
    read = 1 + 4 * records
    found: dict[str, dict[str, int]] = {
        "insert": {"insert": 5 * records, "select": 4 * records},
        "select": {"select": read},
        "update": {"select": read, "update": records},
        "delete": {"select": read, "delete": 5 * records},
    }
    if name not in found:
        raise UsageError(f"workload {WORKLOAD} has no operation '{name}'; use one of {', '.join(OPERATIONS)}")
    return found[name]


def _values(record: Record, dialect: str) -> Mapping[str, int | str]:
    own = {each: hospital_sql.literal(record, each, dialect) for each in hospital_records.FIELDS if each not in SECRETS}
    secret = {each: hospital_sql.secret_literal(record, each, dialect) for each in SECRETS}
    return {**own, **secret, **dict.fromkeys(hospital_sql.NEWEST, record.number)}


@lru_cache(maxsize=32)
def _loops(dialect: str, name: str) -> tuple[str, ...]:
    """The script variables of the operation that stand for every record."""
    found = workloads.get(WORKLOAD)
    texts = {each.name: str(found.dialect.get(dialect, {}).get(each.name, each.script)) for each in found.transaction}
    return tuple(re.findall(r"^\\set (\w+) each\(", texts[name], re.MULTILINE))


def _loop(statement: str, loops: Sequence[str]) -> str:
    return next((each for each in loops if re.search(rf"(?<!:):{each}\b", statement)), "")
