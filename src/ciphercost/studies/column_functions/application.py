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
    templates = statements_of(WORKLOAD, dialect, name)
    if name == "insert":
        for record in records:
            values = _values(record, dialect)
            for template in templates:
                yield secret_sql.expand(script.fill(template, values, where), codec or PLAIN, where)
        return
    expanded = [secret_sql.expand(template, codec or PLAIN, where) for template in templates]
    # A statement that names a record is sent once per record; neighbouring statements that name the same one alternate.
    for loop, body in groupby(expanded, lambda statement: _loop(statement, _loops(dialect, name))):
        statements = list(body)
        for record in records if loop else records[:1]:
            for statement in statements:
                yield re.sub(rf":{loop}\b", str(record.number), statement) if loop else statement


def counts(name: str, records: int) -> dict[str, int]:
    """Number of statements of each kind in one operation on this many records, if DELETE deletes all of them. Pure."""
    read = 1 + 4 * records
    by_operation: dict[str, dict[str, int]] = {
        "insert": {"insert": 5 * records, "select": 4 * records},
        "select": {"select": read},
        "update": {"select": read, "update": records},
        "delete": {"select": read, "delete": 5 * records},
    }
    if name not in by_operation:
        raise UsageError(f"workload {WORKLOAD} has no operation '{name}'; use one of {', '.join(OPERATIONS)}")
    return by_operation[name]


def _values(record: Record, dialect: str) -> Mapping[str, int | str]:
    public = {
        field: hospital_sql.literal(record, field, dialect) for field in hospital_records.FIELDS if field not in SECRETS
    }
    secret = {field: hospital_sql.secret_literal(record, field, dialect) for field in SECRETS}
    return {**public, **secret, **dict.fromkeys(hospital_sql.NEWEST, record.number)}


@lru_cache(maxsize=32)
def _loops(dialect: str, name: str) -> tuple[str, ...]:
    """The script variables of the operation that stand for every record."""
    workload = workloads.get(WORKLOAD)
    texts = {
        transaction.name: str(workload.dialect.get(dialect, {}).get(transaction.name, transaction.script))
        for transaction in workload.transaction
    }
    return tuple(re.findall(r"^\\set (\w+) each\(", texts[name], re.MULTILINE))


def _loop(statement: str, loops: Sequence[str]) -> str:
    return next((variable for variable in loops if re.search(rf"(?<!:):{variable}\b", statement)), "")
