"""hospital: a number and a seed, or the register's own file -> records of hospital beds -> SQL of the workloads `hospital…`.

The register is OpenDataSUS' "Registro de Ocupação Hospitalar COVID-19": a line for each hospital and day. Made-up records have its columns,
and values of its lengths and frequencies; no hospital is meant. As in `people`, nothing but `random()` is drawn from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from math import log
from pathlib import Path

import msgspec

from ciphercost.load import script
from ciphercost.load.codec import Codec
from ciphercost.load.tables import csvfile, dialects
from ciphercost.load.tables.columns import shown
from ciphercost.load.tables.people import pick
from ciphercost.model.errors import RunError, UsageError, nearest


class Record(msgspec.Struct, frozen=True):
    """One line of the register. Its fields are the variables of the workloads' `insert`."""

    number: int
    """1, 2, 3 … in the order of the source. Not of the register."""
    source_id: str
    notified: str
    """`2021-03-01 03:00:00.000`; empty: NULL. So are `created` and `updated`."""
    cnes: str
    """The hospital's number in the national register: seven digits, not all of which begin with another than 0."""
    suspected_ward: int
    suspected_icu: int
    confirmed_ward: int
    confirmed_icu: int
    covid_icu: int
    covid_ward: int
    hospital_icu: int
    hospital_ward: int
    suspected_deaths: int
    suspected_discharges: int
    confirmed_deaths: int
    confirmed_discharges: int
    origin: str
    user_name: str
    deleted: int
    """0 or 1, as `validated`."""
    validated: int
    state: str
    municipality: str
    created: str
    updated: str


FIELDS = Record.__struct_fields__
OUTCOMES = ("suspected_deaths", "suspected_discharges", "confirmed_deaths", "confirmed_discharges")
OCCUPANCY = (
    "suspected_ward", "suspected_icu", "confirmed_ward", "confirmed_icu", "covid_icu", "covid_ward", "hospital_icu", "hospital_ward",
)  # fmt: skip
TIMES = ("notified", "created", "updated")
LENGTHS = {"source_id": 24, "cnes": 12, "origin": 40, "user_name": 60, "state": 40, "municipality": 60}
"""Letters that the secret columns have room for, as the workloads' files have it."""
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
"""Table -> column -> the field that is in it; a notification after its parents."""
APPLICATION: dict[str, dict[str, str]] = {
    "state": {"id": "number", "name": "state"},
    "municipality": {"id": "number", "name": "municipality", "state_id": "number"},
    "patient": {"id": "number", "name": "user_name", "origin": "origin"},
    "occupancy": {"id": "number", "cnes": "cnes"} | {name: name for name in (*OCCUPANCY, *OUTCOMES)},
    "notification": {name: name for name in ("source_id", "notified", "deleted", "validated", "created", "updated")}
    | dict.fromkeys(("id", "state_id", "municipality_id", "patient_id", "occupancy_id"), "number"),
}
"""The same of the study's application."""
APPLICATION_LENGTHS = (
    {"state": 80, "municipality": 60, "user_name": 60, "origin": 40, "cnes": 12}
    | dict.fromkeys((*OCCUPANCY, *OUTCOMES), 12)
    | {"source_id": 24, "notified": 24, "created": 24, "updated": 24}
)


class Layout(msgspec.Struct, frozen=True):
    """A workload's tables, and the letters of those of its fields that are secret."""

    tables: dict[str, dict[str, str]]
    secrets: dict[str, int]


LAYOUTS = {"hospital-2024": Layout(APPLICATION, APPLICATION_LENGTHS)}
"""Of workloads whose tables are not those of TABLES."""
WORKLOADS = ("hospital", "hospital-sql")
"""Those whose operations are statements over all records; `hospital-2024` has `hospital_app`."""
NEWEST: dict[str, int | str] = {f"newest_{table}": f"(SELECT MAX(id) FROM {table})" for table in TABLES}
"""What stands for a parent's number in a transaction's script, where the client does not know it."""
OPERATIONS = ("insert", "select", "update", "delete")
CHOSEN = "Alagoas"
"""The state that an UPDATE gives to all, and whose notifications a DELETE takes."""
SAMPLES = 4
"""Records that inserts under load take their values from; each is a statement of its own to the agent."""
BATCH = {"firebird": 100}
BATCH_ELSEWHERE = 200
APPLICATION_BATCH = 10
"""On Firebird, whose block of statements has a limit: those of 21 encrypted columns are long."""
"""Records in one INSERT a table."""
RUN_ONLY = "-- only in a run"
"""In a workload's file: what stands behind it keeps the tables' size, and is no part of the study's operation."""


# ── made-up records ───────────────────────────────────────────────────────────────────────────────────────────────────

STATES = {
    "São Paulo": (46649, "São Paulo|Campinas|Guarulhos|Santo André|São José dos Campos|Ribeirão Preto|Jundiaí|Santa Bárbara d'Oeste"),
    "Minas Gerais": (21411, "Belo Horizonte|Uberlândia|Contagem|Juiz de Fora|Montes Claros|São João del-Rei|Três Corações"),
    "Rio de Janeiro": (17463, "Rio de Janeiro|Niterói|São Gonçalo|Petrópolis|Campos dos Goytacazes|Nova Iguaçu"),
    "Bahia": (14985, "Salvador|Feira de Santana|Vitória da Conquista|Ilhéus|Itabuna|Juazeiro"),
    "Paraná": (11597, "Curitiba|Londrina|Maringá|Ponta Grossa|Cascavel|Foz do Iguaçu"),
    "Rio Grande do Sul": (11466, "Porto Alegre|Caxias do Sul|Pelotas|Santa Maria|Bagé|Passo Fundo"),
    "Pernambuco": (9674, "Recife|Olinda|Caruaru|Petrolina|Jaboatão dos Guararapes|Vitória de Santo Antão"),
    "Ceará": (9240, "Fortaleza|Juazeiro do Norte|Sobral|Crato|Maracanaú|Quixadá"),
    "Pará": (8777, "Belém|Ananindeua|Santarém|Marabá|Castanhal|São Félix do Xingu"),
    "Santa Catarina": (7338, "Florianópolis|Joinville|Blumenau|Chapecó|Criciúma|Joaçaba"),
    "Goiás": (7206, "Goiânia|Anápolis|Aparecida de Goiânia|Rio Verde|Catalão|Jataí"),
    "Maranhão": (7153, "São Luís|Imperatriz|Caxias|Timon|Codó|Açailândia"),
    "Amazonas": (4269, "Manaus|Parintins|Itacoatiara|Tefé|Manacapuru|São Gabriel da Cachoeira"),
    "Espírito Santo": (4108, "Vitória|Vila Velha|Serra|Cariacica|Cachoeiro de Itapemirim|São Mateus"),
    "Paraíba": (4059, "João Pessoa|Campina Grande|Patos|Santa Rita|Sousa|Guarabira"),
    "Mato Grosso": (3567, "Cuiabá|Várzea Grande|Rondonópolis|Sinop|Cáceres|Vila Bela da Santíssima Trindade"),
    "Rio Grande do Norte": (3560, "Natal|Mossoró|Parnamirim|Caicó|Açu|São Gonçalo do Amarante"),
    "Alagoas": (3365, "Maceió|Arapiraca|Palmeira dos Índios|Penedo|União dos Palmares|São Miguel dos Campos"),
    "Piauí": (3289, "Teresina|Parnaíba|Picos|Floriano|Piripiri|São Raimundo Nonato"),
    "Distrito Federal": (3094, "Brasília"),
    "Mato Grosso do Sul": (2839, "Campo Grande|Dourados|Três Lagoas|Corumbá|Ponta Porã|Naviraí"),
    "Sergipe": (2338, "Aracaju|Lagarto|Itabaiana|Estância|Nossa Senhora do Socorro|Propriá"),
    "Rondônia": (1815, "Porto Velho|Ji-Paraná|Ariquemes|Vilhena|Cacoal|Guajará-Mirim"),
    "Tocantins": (1607, "Palmas|Araguaína|Gurupi|Porto Nacional|Paraíso do Tocantins|Colinas do Tocantins"),
    "Acre": (906, "Rio Branco|Cruzeiro do Sul|Sena Madureira|Tarauacá|Feijó|Brasiléia"),
    "Amapá": (877, "Macapá|Santana|Laranjal do Jari|Oiapoque|Mazagão|Porto Grande"),
    "Roraima": (652, "Boa Vista|Rorainópolis|Caracaraí|Pacaraima|Cantá|Mucajaí"),
}  # fmt: skip
"""State -> thousands of people (2021), and some of its municipalities, the largest first."""
ORIGINS = (("parse-api", 0.62), ("portal", 0.88), ("", 1.0))
"""Where a line came from, with the share of lines up to it."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ID_LETTERS = 10
FIRST_DAY, DAYS = datetime(2021, 1, 1, 3), 365
MEANS = {"suspected_ward": 0.8, "suspected_icu": 0.3, "confirmed_ward": 2.2, "confirmed_icu": 2.6, "hospital_icu": 3.0, "hospital_ward": 9.0} | {
    "suspected_deaths": 0.05, "suspected_discharges": 0.25, "confirmed_deaths": 0.2, "confirmed_discharges": 0.9
}  # fmt: skip
"""Of counts that fall off geometrically: mostly 0, now and then some dozens."""


def records(count: int, seed: int) -> Iterator[Record]:
    """`count` made-up records. The first ones of a longer list are those of a shorter one of the same seed."""
    draw = random.Random(seed).random  # noqa: S311 - nothing secret is drawn
    names, shares = tuple(STATES), _shares([people for people, _ in STATES.values()])
    towns = {name: tuple(text.split("|")) for name, (_, text) in STATES.items()}

    def word() -> str:
        return "".join(LETTERS[int(draw() * len(LETTERS))] for _ in range(ID_LETTERS))

    for number in range(1, count + 1):
        source_id, share = word(), draw()
        state = next(name for name, end in zip(names, shares, strict=True) if share < end)
        # The square: a state's largest towns have the most hospitals.
        municipality = pick(towns[state], draw() ** 2)
        counts = {name: int(log(1 - draw()) / log(mean / (1 + mean))) for name, mean in MEANS.items()}
        counts["covid_ward"] = counts["suspected_ward"] + counts["confirmed_ward"]
        counts["covid_icu"] = counts["suspected_icu"] + counts["confirmed_icu"]
        counts["hospital_ward"] += counts["covid_ward"]
        counts["hospital_icu"] += counts["covid_icu"]
        notified = FIRST_DAY + timedelta(days=int(draw() * DAYS))
        created = notified + timedelta(milliseconds=int(draw() * 30 * 3600 * 1000))
        again = draw()
        updated = created + timedelta(milliseconds=int(draw() * 48 * 3600 * 1000)) if again < 0.3 else created
        share = draw()
        yield Record(
            number=number,
            source_id=source_id,
            notified=written(notified),
            cnes=f"{int(draw() * 9_999_999) + 1:07}" if draw() < 0.2 else f"{2_000_000 + int(draw() * 800_000)}",
            **counts,
            origin=next(name for name, end in ORIGINS if share < end),
            user_name=f"_User${word()}" if draw() < 0.95 else "",
            deleted=int(draw() < 0.04),
            validated=int(draw() < 0.02),
            state=state,
            municipality=municipality,
            created=written(created),
            updated=written(updated),
        )


def _shares(weights: Sequence[int]) -> list[float]:
    """Where each one's part of 0 to 1 ends; the last at 1."""
    total, ends, sum_ = sum(weights), [], 0
    for weight in weights:
        sum_ += weight
        ends.append(sum_ / total)
    return ends


def written(time: datetime) -> str:
    """With milliseconds, as every server reads it. Pure."""
    return time.isoformat(" ", "milliseconds")


# ── the register's file ───────────────────────────────────────────────────────────────────────────────────────────────

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
"""Where the notification's own place is left blank: the hospital's."""
FLAGS = ("deleted", "validated")
_COLUMNS = tuple((field, HEADERS[field], HEADERS[field].lower()) for field in FIELDS[1:])
MOST_COUNT = 2**31 - 1
_COUNT = re.compile(r"([+-]?[0-9]+)(?:\.0*)?").fullmatch
_FLAGS = {"": 0, "false": 0, "0": 0, "true": 1, "1": 1, "falso": 0, "verdadeiro": 1}


def read(path: Path, count: int = 0) -> Iterator[Record]:
    """The first `count` records of the register's file, or all, one at a time. Raises UsageError with file, line and mend."""
    found = csvfile.rows(path)
    _, titles = next(found)
    places = _places(path, titles)
    number = 0
    for line, values in found if not count else islice(found, count):
        number += 1
        yield _record(path, line, number, values, places)
    if number < count:
        raise UsageError(
            f"--csv {path}: holds {number:,} records, and {count:,} are asked for: "
            + (
                f"ask for {number} at most (--rows, or --loads of a study), or leave that out"
                if number
                else "it has only the line of names"
            )
        )
    if not number:
        raise UsageError(f"--csv {path}: holds no records, only the line of names")


def _places(path: Path, titles: Sequence[str]) -> dict[str, int]:
    """Where the register's columns stand in this file, by their names in small letters."""
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
            f'{"are" if len(missing) > 1 else "is"} missing{like}. It must be OpenDataSUS\' "Registro de Ocupação Hospitalar COVID-19"; for rows '
            "of your own use --workload mixed-crud"
        )
    return {name.lower(): at[name.lower()] for name in wanted}


def _record(path: Path, line: int, number: int, values: Sequence[str], places: Mapping[str, int]) -> Record:
    found: list[str | int] = [number]
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
            raise UsageError(f"--csv {path}, line {line}, column '{title}': {wrong}. Mend that line, or leave it out")
        found.append(kept)
    return Record(*found)  # type: ignore[arg-type]


def _text_wrong(field: str, value: str) -> str:
    if field in OTHER and not value:
        return f"the {field}'s name is empty, and so is '{OTHER[field]}': every notification belongs to a {field}"
    if len(value) > LENGTHS[field]:
        return f"'{shown(value)}' has {len(value)} letters, and the register's have {LENGTHS[field]} at most"
    return ""


@lru_cache(maxsize=4096)
def _number(value: str) -> tuple[int, str]:
    """A count; blank is 0, as the register's manual has it; whole numbers may be written 3.0. And what is wrong with it."""
    if not value:
        return 0, ""
    match = _COUNT(value)
    if match is None:
        return 0, f"'{shown(value)}' is not a whole number"
    number = int(match[1]) if len(value) < 20 else MOST_COUNT + 1
    return number, "" if abs(number) <= MOST_COUNT else f"{shown(value)} is more than a server's integer holds"


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
    """How many records the file gives, of `wanted` (0: all), each looked at once. Raises UsageError."""
    with csvfile.opened(path):
        status = path.stat()
    return _count(path, wanted, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=8)
def _count(path: Path, wanted: int, _: tuple[int, ...]) -> int:
    return sum(1 for _ in read(path, wanted))


def source(csv: Path | None, rows: int, seed: int) -> Callable[[], Iterator[Record]]:
    """What gives the records of a load, anew each time it is called."""

    def found() -> Iterator[Record]:
        if csv is None:
            yield from records(rows, seed)
            return
        try:
            yield from read(csv, rows)
        except UsageError as error:
            raise RunError(f"it was changed while it was read: {error}") from None

    return found


# ── SQL ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def literal(record: Record, field: str, dialect: str) -> str:
    """A field's value as SQL has it. Pure."""
    value = getattr(record, field)
    if isinstance(value, int):
        return str(value)
    return "NULL" if field in TIMES and not value else dialects.DIALECTS[dialect].literal(value)


def secret_literal(record: Record, field: str, dialect: str) -> str:
    """A secret field's value as SQL has it: a text, whatever it is of. Pure."""
    return dialects.DIALECTS[dialect].literal(str(getattr(record, field)))


def inserts(found: Iterable[Record], dialect: str, codec: Codec, workload: str = "") -> Iterator[str]:
    """INSERT statements of many records each, table by table, a notification after its parents. Holds one batch."""
    each = iter(found)
    layout = LAYOUTS.get(workload, Layout(TABLES, LENGTHS))
    size = BATCH.get(dialect, BATCH_ELSEWHERE)
    if layout.tables is APPLICATION and dialect == "firebird":
        size = APPLICATION_BATCH
    while batch := list(islice(each, size)):
        # One row a statement on Firebird: so blocks of them, and a commit for several.
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


def variables(text: str, found: Iterable[Record]) -> list[tuple[script.Variable, ...]]:
    """What a transaction's script names of a record, as variables of the agent: one set for each of some records; none: it names nothing.

    Under load the state is always the one that `delete` takes, so that what is added goes again.
    """
    drawn = {
        line.split()[1] for line in text.splitlines() if line.lstrip().startswith("\\set ") and len(line.split()) > 1
    }
    named = [each for each in FIELDS if each not in drawn and re.search(rf"(?<![:\w]):{each}\b", text)]
    if not named:
        return []
    sets = [
        tuple(
            script.Variable(name, "constant", value=CHOSEN if name == "state" else str(getattr(record, name)))
            for name in named
        )
        for record in islice(map(timed, found), SAMPLES)
    ]
    if not sets:
        raise UsageError("there is no record to take the values of an INSERT from")
    return sets


def timed(record: Record) -> Record:
    """The record with a time in the place of each that is blank: another of its own, or the day that the register began. Pure."""
    known = next((getattr(record, name) for name in TIMES if getattr(record, name)), written(FIRST_DAY))
    return msgspec.structs.replace(record, **{name: getattr(record, name) or known for name in TIMES})
