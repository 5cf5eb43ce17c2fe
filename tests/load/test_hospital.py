"""hospital: made-up records, the register's own file and its errors, and the four operations on real servers."""

from __future__ import annotations

import csv
import itertools
import json
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.host import run_ownership, supervisor
from ciphercost.load import secret_sql, workloads
from ciphercost.load.agent import Agent
from ciphercost.load.codec import PLAIN, Codec, Encrypting
from ciphercost.load.tables import hospital_records, hospital_register, hospital_sql
from ciphercost.load.tables.hospital_records import FIELDS, LENGTHS, Record
from ciphercost.load.tables.hospital_sql import CHOSEN, OPERATIONS, TABLES, WORKLOADS
from ciphercost.mechanisms._column import Columns
from ciphercost.model import run_directory
from ciphercost.model.connection import Connection
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import columns
from ciphercost.studies.column_functions import statements
from conftest import RequireServer
from test_real import SHORT, ciphercost, measured, result_of

DIALECTS = ("postgresql", "mysql", "firebird", "sqlite")
SOME = list(hospital_records.records(3000, 1))


def file_of(records: list[Record]) -> list[list[str]]:
    """Write these records as lines of the register, with its unnamed index column first."""

    def shown(record: Record, field: str) -> str:
        value = getattr(record, field)
        if field in hospital_records.TIMES:
            return f"{value.replace(' ', 'T')}Z" if value else ""
        if field in hospital_register.FLAGS:
            return str(bool(value))
        # As in the register's exports: numbers with a point, and blanks for missing values.
        return f"{value}.0" if isinstance(value, int) and value else str(value) if value else ""

    head = ["", *hospital_register.HEADERS.values(), *hospital_register.OTHER.values()]
    return [head] + [
        [
            str(record.number - 1),
            *(shown(record, field) for field in hospital_register.HEADERS),
            record.state,
            record.municipality,
        ]
        for record in records
    ]


def write(path: Path, rows: list[list[str]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


# ── made-up records ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_records_are_the_same_for_a_seed_and_a_shorter_list_begins_a_longer_one() -> None:
    assert list(hospital_records.records(50, 1)) == SOME[:50]
    assert next(hospital_records.records(1, 2)) != SOME[0]
    # Pinned: the data that a study encrypts must not change between versions.
    assert (SOME[0].source_id, SOME[0].state, SOME[0].municipality) == ("I0vPebowFB", "Espírito Santo", "Vila Velha")


def test_records_look_like_the_registers() -> None:
    assert all(re.fullmatch(r"\d{7}", record.cnes) for record in SOME)
    assert len({record.source_id for record in SOME}) == len(SOME)
    times = r"2021|2022-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"
    assert all(re.match(times, getattr(record, name)) for record in SOME for name in hospital_records.TIMES)
    assert any(not record.created.endswith(".000") for record in SOME)
    assert all(record.notified <= record.created <= record.updated for record in SOME)
    states = Counter(record.state for record in SOME)
    assert len(states) == 27
    assert states.most_common(1)[0][0] == "São Paulo"
    assert 0 < sum(not record.origin for record in SOME) < 600
    assert 0 < sum(not record.user_name for record in SOME) < 600
    assert any("'" in record.municipality for record in SOME)
    assert any(not record.municipality.isascii() for record in SOME)
    assert all(record.covid_icu == record.suspected_icu + record.confirmed_icu for record in SOME)
    deaths = [record.confirmed_deaths for record in SOME]
    assert sum(not count for count in deaths) > len(SOME) / 2
    assert max(record.hospital_ward for record in SOME) > 20
    for field, most in LENGTHS.items():
        assert max(len(getattr(record, field)) for record in SOME) <= most


# ── the register's file ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_registers_file_gives_its_records(tmp_path: Path) -> None:
    path = write(tmp_path / "register.csv", file_of(SOME[:200]))
    assert list(hospital_register.read(path)) == SOME[:200]
    assert list(hospital_register.read(path, 7)) == SOME[:7]
    assert hospital_register.count(path) == 200


def test_case_and_order_of_the_columns_are_free_and_others_are_passed_over(tmp_path: Path) -> None:
    rows = file_of(SOME[:5])
    turned = [[*reversed(row), "more"] for row in rows]
    turned[0] = [*(title.upper() for title in turned[0][:-1]), "ocupacaoNova"]
    assert list(hospital_register.read(write(tmp_path / "turned.csv", turned, ";"))) == SOME[:5]


def changed(column: str, value: str) -> Record:
    """Read the file's first line with another value in one column."""
    rows = file_of(SOME[:1])
    rows[1][rows[0].index(column)] = value
    path = Path("changed.csv")
    return next(hospital_register.read(write(path, rows)))


def test_what_the_register_leaves_blank_is_taken_as_its_manual_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert changed("ocupacaoCovidUti", "").covid_icu == 0
    assert changed("ocupacaoCovidUti", "-2.0").covid_icu == -2
    assert changed("excluido", "").deleted == 0
    assert changed("_updated_at", "").updated == ""
    assert changed("dataNotificacao", "2020-08-23").notified == "2020-08-23 00:00:00.000"
    assert changed("dataNotificacao", "2020-08-23T01:00:00+03:00").notified == "2020-08-22 22:00:00.000"
    assert changed("estadoNotificacao", "").state == SOME[0].state  # the hospital's
    assert changed("municipio", "").municipality == SOME[0].municipality


def without(column: str) -> Callable[[list[list[str]]], list[list[str]]]:
    def cut(rows: list[list[str]]) -> list[list[str]]:
        at = rows[0].index(column)
        return [row[:at] + row[at + 1 :] for row in rows]

    return cut


def put(line: int, **values: str) -> Callable[[list[list[str]]], list[list[str]]]:
    def put_in(rows: list[list[str]]) -> list[list[str]]:
        for column, value in values.items():
            rows[line - 1][rows[0].index(column)] = value
        return rows

    return put_in


WRONG: dict[str, tuple[Callable[[list[list[str]]], list[list[str]]], str]] = {
    "a column is missing": (without("ocupacaoCovidUti"), "line 1: the register's column ocupacaoCovidUti is missing"),
    "it is another file": (lambda _: [["a", "b"], ["1", "2"]], "line 1: the register's columns _id,"),
    "no state": (put(3, estadoNotificacao="", estado=""), "line 3, column 'estadoNotificacao': the state's name is empty"),
    "no town": (put(3, municipioNotificacao=" ", municipio=""), "line 3, column 'municipioNotificacao': the municipality's"),
    "a count in words": (put(4, saidaSuspeitaAltas="two"), "line 4, column 'saidaSuspeitaAltas': 'two' is not a whole number"),
    "half a bed": (put(2, ocupacaoCovidCli="1.5"), "line 2, column 'ocupacaoCovidCli': '1.5' is not a whole number"),
    "too many beds": (put(2, ocupacaoCovidCli="9" * 10), "does not fit into a server's integer"),
    "no date": (put(2, dataNotificacao="2021-02-30T03:00:00.000Z"), "line 2, column 'dataNotificacao': '2021-02-30T03"),
    "a day before all days": (put(2, dataNotificacao="0001-01-01T00:00:00+05:00"), "line 2, column 'dataNotificacao': '0001-01-01"),
    "no flag": (put(2, excluido="maybe"), "line 2, column 'excluido': 'maybe' is neither true nor false"),
    "a long name": (put(2, estadoNotificacao="x" * 41), "has 41 characters; the register has at most 40"),
    "only the names": (lambda rows: rows[:1], "contains no records"),
    "too few": (lambda rows: rows, "contains 9 records, but 8,000 are requested: request at most 9 (--rows, or --loads of a study)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_it_is_said_with_its_place(tmp_path: Path, name: str) -> None:
    change, words = WRONG[name]
    path = write(tmp_path / "wrong.csv", change(file_of(SOME[:9])))
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        hospital_register.count(path, 8000 if name == "too few" else 0)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--rows", "8000"), "contains 500 records, but 8,000 are requested"),
        (("--set", "rows=8000"), "contains 500 records, but 8,000 are requested"),
        (("--set", "data_seed=3"), "--set data_seed: not a factor"),
        (("--workload", "tpcb"), "has its own tables"),
    ],
)
def test_too_few_records_are_refused_before_anything_is_started(
    tmp_path: Path, argv: tuple[str, ...], words: str
) -> None:
    write(tmp_path / "register.csv", file_of(SOME[:500]))
    argv = ("run", "postgresql:pgcrypto-cbc-256", "--csv", "register.csv", "--workload", "hospital", *argv, *SHORT)
    done = ciphercost(*argv, cwd=tmp_path)
    assert (done.returncode, words in done.stderr) == (2, True), done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()


def test_latin_1_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "register.csv", file_of(SOME[:9]))
    path.write_bytes(path.read_text().encode("latin-1"))
    done = ciphercost(
        "run", "mariadb:aes-cbc-256", "--csv", "register.csv", "--workload", "hospital-2024", *SHORT, cwd=tmp_path
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(r"register\.csv, line \d+: byte \d+ .*UTF-8", done.stderr), done.stderr


def test_a_file_is_never_held(tmp_path: Path) -> None:
    rows = file_of(SOME)
    path = write(tmp_path / "long.csv", [rows[0], *itertools.chain.from_iterable(itertools.repeat(rows[1:], 4))])
    program = workloads.prepare(workloads.get("hospital"), "postgresql", {}, csv=path)
    assert program.parameters == {"rows": 12_000, "next": 12_001, "csv": "long.csv", "data_seed": 1}
    tracemalloc.start()
    try:
        length = sum(len(step.sql) for step in program.load)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert length > 3_000_000
    assert peak < 2_000_000


def test_a_file_that_shrinks_while_it_is_loaded_is_an_error_of_the_run(tmp_path: Path) -> None:
    path = write(tmp_path / "register.csv", file_of(SOME[:20]))
    program = workloads.prepare(workloads.get("hospital"), "postgresql", {}, 20, csv=path)
    write(path, file_of(SOME[:10]))
    with pytest.raises(RunError, match="the file changed while ciphercost read it"):
        list(program.load)


# ── the workloads as text ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_files_and_module_agree_on_tables_columns_and_lengths(name: str, dialect: str) -> None:
    created = dict(
        re.findall(
            r"^CREATE TABLE (\w+) \((.*)\)$", "\n".join(statements.tables(name, dialect, Marked())), re.MULTILINE
        )
    )
    assert list(created) == list(TABLES)
    for table, fields in TABLES.items():
        for column, field in fields.items():
            kind = f"<{LENGTHS[field]}>" if field in LENGTHS else r"\w"
            assert re.search(rf"(^|, ){column} {kind}", created[table]), (table, column)
    inserted = " ".join(statements.operation(name, dialect, Marked(), "insert", SOME[0]))
    for field, length in LENGTHS.items():
        assert f"<{hospital_sql.literal(SOME[0], field, dialect)}, {length}>" in inserted, field
    selected = " ".join(statements.operation(name, dialect, Marked(), "select"))
    assert sorted(int(length) for length in re.findall(r"<\w+\.\w+, (\d+)>", selected)) == sorted(LENGTHS.values())


class Marked(Codec):
    def column(self, length: int) -> str:
        return f"<{length}>"

    def seal(self, value: str, length: int) -> str:
        return f"<{value}, {length}>"

    def open(self, column: str, length: int) -> str:
        return f"<{column}, {length}>"


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_operation_of_the_study_has_neither_variables_nor_what_keeps_the_size(name: str, dialect: str) -> None:
    for operation in OPERATIONS:
        written = statements.operation(name, dialect, None, operation, SOME[0] if operation == "insert" else None)
        assert written
        for sql in written:
            assert not re.search(r"(?<!:):[a-z]|\$\d|\\set|only in a run", sql), sql
            assert sql.split()[0].upper() in ("INSERT", "SELECT", "UPDATE", "DELETE", "WITH"), sql
    assert len(statements.operation(name, dialect, None, "update")) == 1
    (updated,) = statements.operation(name, dialect, Marked(), "update")
    assert f"<CASE WHEN id > 0 THEN '{CHOSEN}' END, 40>" in updated, "a constant would be sealed once"


def test_values_are_quoted_whatever_is_in_them() -> None:
    odd = msgspec.structs.replace(
        SOME[0], origin="it's :rows; \\ sealed(x, 1)\n-- only in a run", municipality="d'Oeste", updated=""
    )
    for dialect in DIALECTS:
        written = statements.operation("hospital", dialect, None, "insert", odd)
        assert len(written) == 5
        assert "'d''Oeste'" in written[1]
        assert ", NULL," in written[4]
        assert dialect == "mysql" or "it''s :rows; \\" in written[4]


@pytest.mark.parametrize(
    ("name", "record", "words"),
    [
        ("insert", None, "insert needs one record"),
        ("select", SOME[0], "select.* take none"),
        ("upsert", None, "no operation 'upsert'"),
    ],
)
def test_an_operation_that_is_none_is_refused(name: str, record: Record | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        statements.operation("hospital", "postgresql", None, name, record)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_transactions_under_load_are_four_and_bring_records(name: str) -> None:
    program = workloads.prepare(workloads.get(name), "postgresql", {})
    share: Counter[str] = Counter()
    for operation, weight, _ in program.transactions:
        share[operation] += weight
    assert {operation: weight // hospital_sql.SAMPLES for operation, weight in share.items()} == dict(
        zip(OPERATIONS, (4, 1, 1, 2), strict=True)
    )
    inserts = [script for one, _, script in program.transactions if one == "insert"]
    values = [{variable.name: variable.value for variable in one.variables} for one in inserts]
    assert [row["source_id"] for row in values] == [record.source_id for record in SOME[: hospital_sql.SAMPLES]]
    assert {row["state"] for row in values} == {CHOSEN}
    assert all(set(row) >= set(FIELDS) - {"number"} for row in values)
    assert secret_sql.used(workloads.get(name).load)
    assert not program.read_only


# ── on real servers ───────────────────────────────────────────────────────────────────────────────────────────────────

SERVERS = [
    ("postgresql", "", "pgcrypto-cbc-256"), ("mariadb", "11.8", "aes-cbc-256"), ("mysql", "", "aes-cbc-256"), ("firebird", "", "aes-cbc-256"),
]  # fmt: skip
N = 40
RECORDS = [msgspec.structs.replace(record, state=CHOSEN) if record.number % 5 == 0 else record for record in SOME[:N]]
"""Some of the records have the chosen state from the start."""
TEXTS = len(LENGTHS)
"""Secret values of a record."""


def empty(workload: str, dialect: str) -> list[str]:
    """Statements that remove every row from the tables and restart numbers at 1."""
    names = list(TABLES)[::-1]
    if dialect == "postgresql":
        return [f"TRUNCATE {', '.join(names)} RESTART IDENTITY"]
    if dialect == "mysql":
        emptied = [f"TRUNCATE TABLE {table}" for table in names]
        return ["SET SESSION foreign_key_checks = 0", *emptied, "SET SESSION foreign_key_checks = 1"]
    again = [f"ALTER TABLE {table} ALTER COLUMN id RESTART WITH 1" for table in names]
    numbered = dialect == "firebird" and workload == "hospital-sql"
    return [*(f"DELETE FROM {table}" for table in names), *(again if numbered else ())]


class ServerWithArms(msgspec.Struct):
    """A server with a schema for each arm, and the agent connected to both."""

    engine: Engine
    agent: Agent
    codecs: dict[Arm, Codec]
    fields: dict[Arm, Connection]

    def do(self, arm: Arm, workload: str, name: str) -> list[list[list[str | None]]]:
        """Run one operation of the study, over all records, in one transaction."""
        records: list[Record | None] = [*RECORDS] if name == "insert" else [None]
        written = [
            sql
            for one in records
            for sql in statements.operation(workload, self.engine.dialect, self.codecs[arm], name, one)
        ]
        self.agent.query(arm, "BEGIN")
        answers = [self.agent.query(arm, sql) for sql in written]
        self.agent.query(arm, "COMMIT")
        return answers

    def make(self, arm: Arm, workload: str) -> None:
        for sql in statements.tables(workload, self.engine.dialect, self.codecs[arm]):
            self.agent.query(arm, sql)

    def drop(self, arm: Arm) -> None:
        """Use a connection without prepared statements, because on Firebird these keep their tables in use."""
        self.agent.connect(arm, self.fields[arm])
        for sql in statements.drop():
            self.agent.query(arm, sql)

    def counts(self, arm: Arm) -> list[int]:
        return [int(self.agent.query(arm, f"SELECT count(*) FROM {table}")[0][0] or 0) for table in TABLES]

    def stored(self, arm: Arm, table: str, column: str) -> list[str]:
        """Return what a column stores."""
        codec = self.codecs[arm]
        shown = codec.hex(column) if isinstance(codec, Encrypting) else column
        return [str(row[0]) for row in self.agent.query(arm, f"SELECT {shown} FROM {table}")]


@pytest.fixture(scope="module", params=SERVERS, ids=lambda value: value[0])
def both_arms(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerWithArms]:
    name, version, mechanism_name = request.param
    installation, engine, mechanism = require_server(name, version), engines.get(name), mechanisms.get(mechanism_name)
    assert isinstance(mechanism, Columns)
    factors, run_id = mechanism.check({}), run_directory.new_id()
    logs = tmp_path_factory.mktemp("logs")
    with supervisor.Supervisor(run_id) as run_supervisor, Agent(log=logs / "agent.log") as agent:
        scratch = supervisor.scratch(run_id, run_supervisor)
        directory, keys = scratch / "data", scratch / "keys"
        for path in (directory, keys):
            path.mkdir(mode=0o700)
            run_ownership.hand_over(path)
        engine.initialise(installation, directory, run_supervisor)
        server = engine.start(StartRequest(installation, directory, run_supervisor, logs=logs))
        try:
            secrets = columns.secrets_of(mechanism, engine, factors, keys)
            fields = server.connection() | engine.plaintext_fields()
            reach: dict[Arm, Connection] = {}
            for arm in ARMS:
                schema = columns.schema_name(arm)
                OwnSchema.of(engine).make_schema(agent, fields, schema, run_id)
                arm_fields = mechanism.connection(engine, arm, factors, keys)
                reach[arm] = fields | arm_fields | OwnSchema.of(engine).in_own_schema(schema)
                agent.connect(arm, reach[arm])
                for sql in mechanism.prepare(engine, factors):
                    agent.query(arm, sql)
            yield ServerWithArms(engine, agent, {arm: secrets.of(arm) for arm in ARMS}, reach)
        finally:
            server.stop()


def texts(rows: list[list[str | None]]) -> list[list[str | None]]:
    """Return the secrets in the rows of a SELECT, in the order of their numbers."""
    return [[row[1], *row[3:6], *row[10:12]] for row in sorted(rows, key=lambda row: int(row[0] or 0))]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_operation_does_what_it_says_in_both_arms(both_arms: ServerWithArms, workload: str) -> None:
    seen: dict[Arm, list[list[str | None]]] = {}
    for arm in ARMS:
        both_arms.make(arm, workload)
        try:
            both_arms.do(arm, workload, "insert")
            assert both_arms.counts(arm) == [N] * 5
            ((rows),) = both_arms.do(arm, workload, "select")
            seen[arm] = sorted(rows, key=lambda row: int(row[0] or 0))
            first = both_arms.stored(arm, "state", "name")
            both_arms.do(arm, workload, "update")
            named = both_arms.agent.query(arm, f"SELECT {both_arms.codecs[arm].open('name', 40)} FROM state")
            assert named == [[CHOSEN]] * N
            if arm == "encrypted":
                # A random IV: as many different values as calls of the function.
                changed_ = both_arms.stored(arm, "state", "name")
                assert len(set(changed_)) == N
                chosen = sum(record.state == CHOSEN for record in RECORDS)
                assert len(set(changed_) - set(first)) == N - chosen, "a state that had the name already is left alone"
                for column in ("source_id", "cnes", "origin", "user_name"):
                    assert len(set(both_arms.stored(arm, "notification", column))) == N
                assert CHOSEN.encode().hex() not in "".join(changed_).lower()
            both_arms.do(arm, workload, "delete")
            assert both_arms.counts(arm) == [0] * 5
        finally:
            both_arms.drop(arm)
    assert seen["plain"] == seen["encrypted"]
    assert texts(seen["plain"]) == [
        [record.source_id, record.cnes, record.origin, record.user_name, record.state, record.municipality]
        for record in RECORDS
    ]
    assert [[int(value or 0) for value in row[12:]] for row in seen["plain"]] == [
        [getattr(record, name) for name in (*hospital_records.OUTCOMES, *hospital_records.OCCUPANCY)]
        for record in RECORDS
    ]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_delete_takes_the_chosen_state_and_no_other(both_arms: ServerWithArms, workload: str) -> None:
    arm: Arm = "encrypted"
    both_arms.make(arm, workload)
    try:
        both_arms.do(arm, workload, "insert")
        chosen = sum(record.state == CHOSEN for record in RECORDS)
        assert 0 < chosen < N
        both_arms.do(arm, workload, "delete")
        assert both_arms.counts(arm) == [N - chosen] * 5
        ((rows),) = both_arms.do(arm, workload, "select")
        assert texts(rows) == [
            [record.source_id, record.cnes, record.origin, record.user_name, record.state, record.municipality]
            for record in RECORDS
            if record.state != CHOSEN
        ]
    finally:
        both_arms.drop(arm)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_load_gives_the_rows_that_inserts_give_and_under_load_the_tables_keep_their_size(
    both_arms: ServerWithArms, workload: str
) -> None:
    definition = workloads.get(workload)
    codec = both_arms.codecs["encrypted"]
    program = workloads.prepare(definition, both_arms.engine.dialect, {}, N, codec)
    for arm in ARMS:
        for step in program.tables(arm).load:
            both_arms.agent.query(arm, step.sql)
    try:
        checked = {arm: both_arms.agent.query(arm, program.tables(arm).check) for arm in ARMS}
        assert checked["plain"] == checked["encrypted"]
        assert checked["plain"][0][0] == str(N)
        for arm in ARMS:
            ((rows),) = both_arms.do(arm, workload, "select")
            assert [row[0] for row in texts(rows)] == [record.source_id for record in RECORDS]
        both_arms.agent.program(program)
        for arm in ARMS:
            answer = both_arms.agent.slice(arm, 120, discard=0, seed=5, operations=60)
            assert (answer.errors, answer.operations) == (0, 60), answer.first_error
            after = both_arms.counts(arm)
            assert len(set(after)) == 1
            assert N <= after[0] < N + 30
            for sql in empty(workload, both_arms.engine.dialect):
                both_arms.agent.query(arm, sql)
            assert both_arms.counts(arm) == [0] * 5
            both_arms.do(arm, workload, "insert")
            ((rows),) = both_arms.do(arm, workload, "select")
            assert sorted(int(row[0] or 0) for row in rows) == list(range(1, N + 1)), "numbers begin with 1 again"
    finally:
        for arm in ARMS:
            both_arms.drop(arm)


@pytest.mark.parametrize("both_arms", SERVERS[:1], indirect=True, ids=["postgresql"])
@pytest.mark.parametrize("iv", ["random", "fixed"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_postgresql_calls_the_function_as_often_as_there_are_values(
    both_arms: ServerWithArms, workload: str, iv: str
) -> None:
    mechanism = mechanisms.get("pgcrypto-cbc-256")
    assert isinstance(mechanism, Columns)
    arm: Arm = "encrypted"
    codec = mechanism.codec(both_arms.engine, {"iv": iv}, bytes(range(32)), bytes(16))
    both_arms = msgspec.structs.replace(both_arms, codecs={arm: codec})
    others = N - sum(record.state == CHOSEN for record in RECORDS)
    wanted = {"insert": (TEXTS * N, 0), "select": (0, TEXTS * N), "update": (others, N), "delete": (0, N)}
    both_arms.agent.query(arm, "SET track_functions = 'all'")
    both_arms.make(arm, workload)
    try:
        before = calls(both_arms.agent, arm)
        for name in OPERATIONS:
            if name == "delete" and iv == "fixed":
                # The reason for counting: a constant under a fixed IV is sealed once, however many rows there are. (As
                # bytes: convert_to
                # is only stable, so it is called for each row.)
                constant = codec.seal(f"'{CHOSEN}'", 40).replace(
                    f"convert_to('{CHOSEN}', 'UTF8')", f"'\\x{CHOSEN.encode().hex()}'::bytea"
                )
                both_arms.agent.query(arm, f"UPDATE state SET name = {constant}")
                folded = calls(both_arms.agent, arm)
                assert (folded[0] - before[0], folded[1] - before[1]) == (1, 0)
                before = folded
            both_arms.do(arm, workload, name)
            after = calls(both_arms.agent, arm)
            assert (after[0] - before[0], after[1] - before[1]) == wanted[name], name
            before = after
    finally:
        both_arms.drop(arm)


def calls(agent: Agent, arm: Arm) -> tuple[int, int]:
    """Calls of encrypt_iv and decrypt_iv so far."""
    agent.query(arm, "SELECT pg_stat_force_next_flush()")
    sql = "SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname IN ('encrypt_iv', 'decrypt_iv')"
    counts = {str(row[0]): int(row[1] or 0) for row in agent.query(arm, sql)}
    return counts.get("encrypt_iv", 0), counts.get("decrypt_iv", 0)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_sqlite_runs_them_too(tmp_path: Path, workload: str) -> None:
    with Agent(log=tmp_path / "agent.log") as agent:
        agent.connect(
            "plain", Connection(driver="sqlite", path=str(tmp_path / "data.db"), pragmas="PRAGMA foreign_keys = ON")
        )
        inside = ServerWithArms(engines.get("sqlite"), agent, {"plain": PLAIN}, {})
        inside.make("plain", workload)
        inside.do("plain", workload, "insert")
        ((rows),) = inside.do("plain", workload, "select")
        assert [row[0] for row in texts(rows)] == [record.source_id for record in RECORDS]
        inside.do("plain", workload, "update")
        assert inside.stored("plain", "state", "name") == [CHOSEN] * N
        inside.do("plain", workload, "delete")
        assert inside.counts("plain") == [0] * 5


# ── the whole path ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("target", "workload", "extra"),
    [
        ("postgresql:pgcrypto-cbc-256", "hospital", ("--rows", "60")),
        ("mariadb:aes-cbc-256", "hospital-2024", ("--csv", "register.csv")),
    ],
)
def test_it_is_run_end_to_end(
    tmp_path: Path, require_server: RequireServer, target: str, workload: str, extra: tuple[str, ...]
) -> None:
    require_server(target.partition(":")[0])
    write(tmp_path / "register.csv", file_of(SOME[:60]))
    done = measured("run", target, "--workload", workload, *extra, *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert (cell["status"], cell["workload"], cell["rows"]) == ("ok", workload, 60)
    assert cell["overhead"]["server_cpu_per_op"]["ratio"] > 0
    assert all(arm.get("errors", 0) == 0 for arm in cell["arms"].values())
    assert json.dumps(cell).count("passed") >= 2


def test_times_that_are_blank_are_filled_for_what_is_inserted_under_load() -> None:
    blank = [msgspec.structs.replace(record, notified="", created="") for record in SOME[:4]]
    per_record = hospital_sql.variables("INSERT :notified :created :state", blank)
    assert len(per_record) == 4
    for variables, one in zip(per_record, blank, strict=True):
        values = {variable.name: variable.value for variable in variables}
        assert values["notified"] == values["created"] == one.updated
    never = msgspec.structs.replace(SOME[0], notified="", created="", updated="")
    assert str(hospital_sql.variables("INSERT :notified", [never])[0][0].value).startswith("2021-01-01 03:00")
    with pytest.raises(UsageError, match="no record"):
        hospital_sql.variables("INSERT :notified", [])
