"""Turns records of hospital beds into SQL and variables of the `hospital…` workloads. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from ciphercost.load.codec import Codec
from ciphercost.load.script_parts import Variable
from ciphercost.load.tables import dialects
from ciphercost.load.tables.hospital_records import (
    FIELDS,
    FIRST_DAY,
    LENGTHS,
    OCCUPANCY,
    OUTCOMES,
    TIMES,
    Record,
    written,
)
from ciphercost.model.errors import UsageError

TABLES: dict[str, dict[str, str]] = {
    "state": {"id": "number", "name": "state"},
    "municipality": {"id": "number", "name": "municipality"},
    "patient": {"id": "number"} | {name: name for name in OUTCOMES},
    "occupancy": {"id": "number"} | {name: name for name in OCCUPANCY},
    "notification": {
        name: name
        for name in (
            "source_id",
            "notified",
            "cnes",
            "origin",
            "user_name",
            "deleted",
            "validated",
            "created",
            "updated",
        )
    }
    | dict.fromkeys(("id", "state_id", "municipality_id", "patient_id", "occupancy_id"), "number"),
}
"""Table -> column -> the field stored in it; a notification follows its parents."""
APPLICATION: dict[str, dict[str, str]] = {
    "state": {"id": "number", "name": "state"},
    "municipality": {"id": "number", "name": "municipality", "state_id": "number"},
    "patient": {"id": "number", "name": "user_name", "origin": "origin"},
    "occupancy": {"id": "number", "cnes": "cnes"} | {name: name for name in (*OCCUPANCY, *OUTCOMES)},
    "notification": {name: name for name in ("source_id", "notified", "deleted", "validated", "created", "updated")}
    | dict.fromkeys(("id", "state_id", "municipality_id", "patient_id", "occupancy_id"), "number"),
}
"""The same for the tables of the study's application."""
APPLICATION_LENGTHS = (
    {"state": 80, "municipality": 60, "user_name": 60, "origin": 40, "cnes": 12}
    | dict.fromkeys((*OCCUPANCY, *OUTCOMES), 12)
    | {"source_id": 24, "notified": 24, "created": 24, "updated": 24}
)


class Layout(msgspec.Struct, frozen=True):
    """A workload's tables, and the lengths in characters of its secret fields."""

    tables: dict[str, dict[str, str]]
    secrets: dict[str, int]


LAYOUTS = {"hospital-2024": Layout(APPLICATION, APPLICATION_LENGTHS)}
"""For workloads whose tables are not those of TABLES."""
WORKLOADS = ("hospital", "hospital-sql")
"""Workloads whose operations are statements over all records. `hospital-2024` is handled in `hospital_app`."""
NEWEST: dict[str, int | str] = {f"newest_{table}": f"(SELECT MAX(id) FROM {table})" for table in TABLES}
"""Replaces a parent's number in a transaction's script, where the client does not know it."""
OPERATIONS = ("insert", "select", "update", "delete")
CHOSEN = "Alagoas"
"""The state that an UPDATE writes into all records, and whose notifications a DELETE removes."""
SAMPLES = 4
"""Records from which inserts under load take their values; the agent gets a statement for each of them."""
BATCH = {"firebird": 100}
BATCH_ELSEWHERE = 200
"""Records per INSERT and table."""
APPLICATION_BATCH = 10
"""Records per block on Firebird: blocks of statements are limited, and those of 21 encrypted columns are long."""
RUN_ONLY = "-- only in a run"
"""In a workload's file: the statements after this line keep the tables' size and are not part of the study's operation.
"""


def literal(record: Record, field: str, dialect: str) -> str:
    """Return a field's value as a SQL literal. Pure."""
    value = getattr(record, field)
    if isinstance(value, int):
        return str(value)
    return "NULL" if field in TIMES and not value else dialects.DIALECTS[dialect].literal(value)


def secret_literal(record: Record, field: str, dialect: str) -> str:
    """Return a secret field's value as a SQL literal, always a text. Pure."""
    return dialects.DIALECTS[dialect].literal(str(getattr(record, field)))


def inserts(records: Iterable[Record], dialect: str, codec: Codec, workload: str = "") -> Iterator[str]:
    """Yield INSERT statements of many records each, table by table, a notification after its parents.

    Holds one batch in memory.
    """
    remaining = iter(records)
    layout = LAYOUTS.get(workload, Layout(TABLES, LENGTHS))
    size = BATCH.get(dialect, BATCH_ELSEWHERE)
    if layout.tables is APPLICATION and dialect == "firebird":
        size = APPLICATION_BATCH
    while batch := list(islice(remaining, size)):
        # Firebird inserts one row per statement, so statements are grouped into blocks with one commit.
        blocks = dialect == "firebird"
        yield from ("BEGIN",) if blocks else ()
        for table, columns in layout.tables.items():
            head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
            rows = [
                f"({', '.join(_value(record, field, dialect, codec, layout) for field in columns.values())})"
                for record in batch
            ]
            if blocks:
                yield f"EXECUTE BLOCK AS BEGIN {' '.join(f'{head}{row};' for row in rows)} END"
            else:
                yield head + ", ".join(rows)
        yield from ("COMMIT",) if blocks else ()


def _value(record: Record, field: str, dialect: str, codec: Codec, layout: Layout) -> str:
    if field not in layout.secrets:
        return literal(record, field, dialect)
    return codec.named(field).seal(secret_literal(record, field, dialect), layout.secrets[field])


def variables(text: str, records: Iterable[Record]) -> list[tuple[Variable, ...]]:
    """Return the fields of a record that a transaction's script names, as variables of the agent: one set for each of
    some records.

    Empty if it names none. Under load the state is always the one that `delete` removes, so that added rows disappear
    again.
    """
    drawn = {
        line.split()[1] for line in text.splitlines() if line.lstrip().startswith("\\set ") and len(line.split()) > 1
    }
    named = [field for field in FIELDS if field not in drawn and re.search(rf"(?<![:\w]):{field}\b", text)]
    if not named:
        return []
    sets = [
        tuple(
            Variable(name, "constant", value=CHOSEN if name == "state" else str(getattr(record, name)))
            for name in named
        )
        for record in islice(map(timed, records), SAMPLES)
    ]
    if not sets:
        raise UsageError("there is no record from which an INSERT could take its values")
    return sets


def timed(record: Record) -> Record:
    """Replace each blank time of a record by another of its times, or by the day that the register began. Pure."""
    known = next((getattr(record, name) for name in TIMES if getattr(record, name)), written(FIRST_DAY))
    return msgspec.structs.replace(record, **{name: getattr(record, name) or known for name in TIMES})
