"""Reads the register's own CSV file as records of hospital beds, and checks each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path

from ciphercost.host import file_stamp
from ciphercost.load.tables import csvfile
from ciphercost.load.tables.columns import shown
from ciphercost.load.tables.hospital_records import FIELDS, LENGTHS, TIMES, Record, records, written
from ciphercost.model.errors import RunError, UsageError, nearest

HEADERS = {
    "source_id": "_id", "notified": "dataNotificacao", "cnes": "cnes",
    "suspected_ward": "ocupacaoSuspeitoCli", "suspected_icu": "ocupacaoSuspeitoUti",
    "confirmed_ward": "ocupacaoConfirmadoCli", "confirmed_icu": "ocupacaoConfirmadoUti",
    "covid_icu": "ocupacaoCovidUti", "covid_ward": "ocupacaoCovidCli",
    "hospital_icu": "ocupacaoHospitalarUti", "hospital_ward": "ocupacaoHospitalarCli",
    "suspected_deaths": "saidaSuspeitaObitos", "suspected_discharges": "saidaSuspeitaAltas",
    "confirmed_deaths": "saidaConfirmadaObitos", "confirmed_discharges": "saidaConfirmadaAltas",
    "origin": "origem", "user_name": "_p_usuario", "state": "estadoNotificacao", "municipality": "municipioNotificacao",
    "deleted": "excluido", "validated": "validado", "created": "_created_at", "updated": "_updated_at",
}  # fmt: skip
"""Field -> its column in the register."""
OTHER = {"state": "estado", "municipality": "municipio"}
"""Used if the notification's own place is blank: the hospital's."""
FLAGS = ("deleted", "validated")
_COLUMNS = tuple((field, HEADERS[field], HEADERS[field].lower()) for field in FIELDS[1:])
MOST_COUNT = 2**31 - 1
_COUNT = re.compile(r"([+-]?[0-9]+)(?:\.0*)?").fullmatch
_FLAGS = {"": 0, "false": 0, "0": 0, "true": 1, "1": 1, "falso": 0, "verdadeiro": 1}


def read(path: Path, count: int = 0) -> Iterator[Record]:
    """Yield the first `count` records of the register's file, or all of them.

    Raises UsageError with file, line and fix.
    """
    numbered_rows = csvfile.rows(path)
    _, titles = next(numbered_rows)
    places = _places(path, titles)
    number = 0
    for line, values in numbered_rows if not count else islice(numbered_rows, count):
        number += 1
        yield _record(path, line, number, values, places)
    if number < count:
        raise UsageError(
            f"--csv {path}: contains {number:,} records, but {count:,} are requested: "
            + (
                f"request at most {number} (--rows, or --loads of a study), or remove that option"
                if number
                else "it has only the header line"
            )
        )
    if not number:
        raise UsageError(f"--csv {path}: contains no records, only the header line")


def _places(path: Path, titles: Sequence[str]) -> dict[str, int]:
    """Return the positions of the register's columns in this file, by name in lower case."""
    at: dict[str, int] = {}
    for place, title in enumerate(titles):
        at.setdefault(title.strip().lower(), place)
    wanted = [*HEADERS.values(), *OTHER.values()]
    missing = [name for name in wanted if name.lower() not in at]
    if missing:
        known = [
            shown(title)
            for title in titles
            if title.strip() and title.strip().lower() not in {name.lower() for name in wanted}
        ]
        like = f"; '{missing[0]}': {nearest(missing[0], known)}" if known and len(missing) < len(wanted) / 2 else ""
        raise UsageError(
            f"--csv {path}, line 1: the register's column{'s' if len(missing) > 1 else ''} {', '.join(missing)} "
            f'{"are" if len(missing) > 1 else "is"} missing{like}. It must be OpenDataSUS\' "Registro de Ocupação Hospitalar COVID-19"; for your '
            "own rows use --workload mixed-crud"
        )
    return {name.lower(): at[name.lower()] for name in wanted}


def _record(path: Path, line: int, number: int, values: Sequence[str], places: Mapping[str, int]) -> Record:
    record_fields: list[str | int] = [number]
    for field, title, key in _COLUMNS:
        value = values[places[key]].strip()
        kept: str | int = value
        wrong = ""
        if field in LENGTHS:
            if not value and field in OTHER:
                kept = value = values[places[OTHER[field]]].strip()
            if not value or len(value) > LENGTHS[field]:
                wrong = _text_wrong(field, value)
        elif field in TIMES:
            kept, wrong = _time(value)
        elif field in FLAGS:
            wrong = "" if value.lower() in _FLAGS else f"'{shown(value)}' is neither true nor false"
            kept = _FLAGS.get(value.lower(), 0)
        else:
            kept, wrong = _number(value)
        if wrong:
            raise UsageError(f"--csv {path}, line {line}, column '{title}': {wrong}. Fix that line or remove it")
        record_fields.append(kept)
    return Record(*record_fields)  # type: ignore[arg-type]


def _text_wrong(field: str, value: str) -> str:
    if field in OTHER and not value:
        return f"the {field}'s name is empty, and so is '{OTHER[field]}': every notification needs a {field}"
    if len(value) > LENGTHS[field]:
        return f"'{shown(value)}' has {len(value)} characters; the register has at most {LENGTHS[field]}"
    return ""


@lru_cache(maxsize=4096)
def _number(value: str) -> tuple[int, str]:
    """Parse a count and return it with an error text.

    Blank is 0, as in the register's manual; 3.0 is a whole number.
    """
    if not value:
        return 0, ""
    match = _COUNT(value)
    if match is None:
        return 0, f"'{shown(value)}' is not a whole number"
    number = int(match[1]) if len(value) < 20 else MOST_COUNT + 1
    return number, "" if abs(number) <= MOST_COUNT else f"{shown(value)} does not fit into a server's integer"


def _time(value: str) -> tuple[str, str]:
    if not value:
        return "", ""
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is not None:
            time = time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return "", f"'{shown(value)}' is not a date and time such as 2021-03-01T03:00:00.000Z"
    return written(time), ""


def count(path: Path, wanted: int = 0) -> int:
    """Count the file's records, at most `wanted` (0: all), and check each. Raises UsageError."""
    with csvfile.opened(path):
        stamp = file_stamp.of(path)
    return _count(path, wanted, stamp)


@lru_cache(maxsize=8)
def _count(path: Path, wanted: int, _: tuple[int, ...]) -> int:
    return sum(1 for _ in read(path, wanted))


def source(csv: Path | None, rows: int, seed: int) -> Callable[[], Iterator[Record]]:
    """Return a function that yields the records of a load, from the start at each call."""

    def yield_records() -> Iterator[Record]:
        if csv is None:
            yield from records(rows, seed)
            return
        try:
            yield from read(csv, rows)
        except UsageError as error:
            raise RunError(f"the file changed while ciphercost read it: {error}") from None

    return yield_records
