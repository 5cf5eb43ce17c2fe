"""The statements of the study's application, counted by real servers, and which of its columns are encrypted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ciphercost import engines, mechanisms
from ciphercost.engines import Engine, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.host import run_ownership, supervisor
from ciphercost.load import secret_columns, workloads
from ciphercost.load.agent import Agent
from ciphercost.load.codec import PLAIN, Codec, Encrypting
from ciphercost.load.tables import hospital_records, hospital_sql
from ciphercost.load.tables.hospital_sql import CHOSEN, OPERATIONS
from ciphercost.mechanisms._column import Columns
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import ARMS, Arm, CellSpec
from ciphercost.plan import resolve
from ciphercost.provision import columns
from ciphercost.studies.column_functions import application, servers, statements, stored
from conftest import RequireServer
from processes import wait_for

N = 15
RECORDS = list(hospital_records.records(N, 1))
MARK = "ciphercost_mark_"
"""Prefix of the marker statement that a trace is read up to."""
KINDS = ("insert", "select", "update", "delete")
TRACE = """database
{{
    enabled = true
    log_statement_finish = true
    time_threshold = 0
    max_sql_length = 200
    log_filename = {path}
}}
"""


# ── as text ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", ["postgresql", "mysql", "firebird", "sqlite"])
def test_statements_are_as_many_as_the_application_sends(dialect: str) -> None:
    for name in OPERATIONS:
        sent = list(application.operation(dialect, None, name, RECORDS))
        assert dict(Counter(sql.split()[0].lower() for sql in sent)) == application.counts(name, N)
        for sql in sent:
            assert not re.search(r"(?<!:):[a-z]|\\set|only in a run|50701", sql), sql


def test_an_update_reads_everything_before_it_changes_anything() -> None:
    kinds = [sql.split()[0] for sql in application.operation("mysql", None, "update", RECORDS)]
    assert kinds == ["SELECT"] * (1 + 4 * N) + ["UPDATE"] * N
    deleted = list(application.operation("mysql", None, "delete", RECORDS))[1 + 4 * N :]
    tables = [re.findall(r"DELETE FROM (\w+)", sql)[0] for sql in deleted]
    assert tables == ["notification", "state", "municipality", "patient", "occupancy"] * N


def test_the_workload_names_twenty_one_secret_columns_in_every_dialect() -> None:
    workload = workloads.get(application.WORKLOAD)
    assert len(application.SECRETS) == 21
    assert secret_columns.names(workload) == application.SECRETS
    for overrides in workload.dialect.values():
        if "load" in overrides:
            assert re.findall(r"secret\(\d+, (\w+)\)", str(overrides["load"])) == list(application.SECRETS)


@pytest.mark.parametrize(
    ("given", "secret"),
    [
        (None, application.SECRETS),
        ("all", application.SECRETS),
        ("none", ()),
        ("0", ()),
        ("2", ("state", "municipality")),
        ("21", application.SECRETS),
        ("cnes,state", ("state", "cnes")),
        ("cnes+updated", ("cnes", "updated")),
    ],
)
def test_only_the_chosen_columns_are_encrypted(given: str | None, secret: tuple[str, ...], tmp_path: Path) -> None:
    factors = {} if given is None else {"secret": given}
    cell = CellSpec("mariadb", "aes-ecb-128", workload=application.WORKLOAD, factors=factors)
    mechanism, engine = mechanisms.get("aes-ecb-128"), engines.get("mariadb")
    assert isinstance(mechanism, Columns)
    codec = columns.secrets_of(mechanism, engine, mechanism.check({}), tmp_path).of("encrypted")
    program = resolve.resolve(cell).encrypted_program(codec)
    encrypted = []
    for step in program.tables("encrypted").load:
        if step.sql.startswith("CREATE TABLE"):
            table = step.sql.split()[2]
            encrypted += [hospital_sql.APPLICATION[table][name] for name in re.findall(r"(\w+) varbinary", step.sql)]
    assert sorted(encrypted) == sorted(secret)
    assert not any("varbinary" in step.sql for step in program.tables("plain").load)


@pytest.mark.parametrize("given", ["", "22", "-1", "stat", "state,state", "state,", "2,state", "ALL"])
def test_a_choice_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"secret={given}: ")):
        resolve.resolve(CellSpec("mariadb", "aes-ecb-128", workload=application.WORKLOAD, factors={"secret": given}))


def test_a_states_name_is_written_in_digits() -> None:
    assert stored.digits("'d''Ab'") == "'642741" + "62'"


# ── on real servers ───────────────────────────────────────────────────────────────────────────────────────────────────


class ServerWithArms(msgspec.Struct):
    engine: Engine
    agent: Agent
    codecs: dict[Arm, Codec]
    logs: Path
    trace: Path

    def do(self, arm: Arm, name: str) -> list[list[list[str | None]]]:
        self.agent.query(arm, "BEGIN")
        codec = self.codecs[arm]
        answers = [
            self.agent.query(arm, sql) for sql in application.operation(self.engine.dialect, codec, name, RECORDS)
        ]
        self.agent.query(arm, "COMMIT")
        return answers

    def counted(self, arm: Arm, name: str) -> dict[str, int]:
        """The server's own count of the statements of one operation."""
        before = self.so_far(arm)
        self.do(arm, name)
        return {kind: count for kind, count in (self.so_far(arm) - before).items() if kind in KINDS}

    def so_far(self, arm: Arm) -> Counter[str]:
        if self.engine.name == "mariadb":
            rows = self.agent.query(arm, "SHOW SESSION STATUS LIKE 'Com\\_%'")
            return Counter({str(name).removeprefix("Com_"): int(count or 0) for name, count in rows})
        if self.engine.name == "postgresql":
            texts = [path.read_text(errors="replace") for path in self.logs.iterdir() if path.is_file()]
            return Counter(word.lower() for text in texts for word in re.findall(r"LOG:  statement: (\w+)", text))
        return self.traced(arm)

    def traced(self, arm: Arm) -> Counter[str]:
        """Firebird's trace may lag behind: it is complete once it contains a later marker statement. Markers are not counted."""
        mark = f"{MARK}{run_directory.new_id()}"
        self.agent.query(arm, f"SELECT '{mark}' FROM RDB$DATABASE")
        wait_for("the trace", lambda: self.trace.exists() and mark in self.trace.read_text(errors="replace"))
        text = self.trace.read_text(errors="replace")
        executed = re.findall(r"EXECUTE_STATEMENT_FINISH.*?\n-{10,}\n(\w+)([^\n]*)", text, re.DOTALL)
        return Counter(word.lower() for word, rest in executed if MARK not in rest)


@pytest.fixture(scope="module", params=list(servers.PAIRS))
def both_arms(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerWithArms]:
    name = str(request.param)
    pair = servers.PAIRS[name]
    installation, engine, mechanism = require_server(name, ""), engines.get(name), mechanisms.get(pair.published)
    assert isinstance(mechanism, Columns)
    factors, run_id = mechanism.check(pair.factors), run_directory.new_id()
    logs = tmp_path_factory.mktemp("logs")
    agents = tmp_path_factory.mktemp("agents")
    with supervisor.Supervisor(run_id) as run_supervisor, Agent(log=agents / "agent.log") as agent:
        scratch = supervisor.scratch(run_id, run_supervisor)
        directory, keys = scratch / "data", scratch / "keys"
        for path in (directory, keys):
            path.mkdir(mode=0o700)
            run_ownership.hand_over(path)
        engine.initialise(installation, directory, run_supervisor)
        trace, config = directory / "trace.log", directory / "trace.conf"
        config.write_text(TRACE.format(path=trace))
        run_ownership.hand_over(config)
        settings = {"postgresql": {"log_statement": "all"}, "firebird": {"AuditTraceConfigFile": str(config)}}
        server = engine.start(
            StartRequest(installation, directory, run_supervisor, logs=logs, settings=settings.get(name, {}))
        )
        try:
            secrets = columns.secrets_of(mechanism, engine, factors, keys)
            fields = server.connection() | engine.plaintext_fields()
            codecs: dict[Arm, Codec] = {arm: stored.as_the_study(name, secrets.of(arm)) for arm in ARMS}
            for arm in ARMS:
                schema = columns.schema_name(arm)
                OwnSchema.of(engine).make_schema(agent, fields, schema, run_id)
                changes = mechanism.connection(engine, arm, factors, keys)
                agent.connect(arm, fields | changes | OwnSchema.of(engine).in_own_schema(schema))
                for sql in mechanism.prepare(engine, factors):
                    agent.query(arm, sql)
                for sql in statements.tables(application.WORKLOAD, engine.dialect, codecs[arm]):
                    agent.query(arm, sql)
            yield ServerWithArms(engine, agent, codecs, logs, trace)
        finally:
            server.stop()


def test_the_servers_own_statement_counts_are_the_applications_and_its_rows_come_back(
    both_arms: ServerWithArms,
) -> None:
    seen: dict[Arm, list[list[list[str | None]]]] = {}
    for arm in ARMS:
        assert both_arms.counted(arm, "insert") == application.counts("insert", N), arm
        assert both_arms.counted(arm, "select") == application.counts("select", N), arm
        seen[arm] = both_arms.do(arm, "select")
        which_are_encrypted(both_arms, arm)
        assert both_arms.counted(arm, "update") == application.counts("update", N), arm
        named = both_arms.do(arm, "select")[1::4]
        digits = arm == "encrypted" and both_arms.engine.name == "firebird"
        assert named == [[[CHOSEN.encode().hex() if digits else CHOSEN]]] * N
        assert both_arms.counted(arm, "delete") == application.counts("delete", N), arm
        left = [both_arms.agent.query(arm, f"SELECT count(*) FROM {table}")[0][0] for table in hospital_sql.TABLES]
        assert left == ["0"] * 5
    assert seen["plain"][0] == seen["encrypted"][0]
    assert len(seen["plain"]) == 1 + 4 * N
    for number, record in enumerate(RECORDS):
        _, town, counts, person = seen["encrypted"][1 + 4 * number :][:4]
        assert town == [[record.municipality, str(record.number)]]
        assert person == [[record.user_name, record.origin]]
        values = [
            record.cnes,
            *(str(getattr(record, name)) for name in (*hospital_records.OCCUPANCY, *hospital_records.OUTCOMES)),
        ]
        assert counts == [[str(record.number), *values]]


def which_are_encrypted(both_arms: ServerWithArms, arm: Arm) -> None:
    """Checks stored values: in the encrypted arm exactly the 21 columns, in the plain arm none."""
    codec = both_arms.codecs[arm]
    encrypted = []
    for table, fields in hospital_sql.APPLICATION.items():
        for column, field in fields.items():
            rows = both_arms.agent.query(
                arm, f"SELECT {shown(both_arms, codec, column, field)} FROM {table} ORDER BY id"
            )
            clear = [str(getattr(record, field)) for record in RECORDS]
            stored_values = [str(row[0] or "") for row in rows]
            if stored_values != clear:
                encrypted.append(field)
                texts = [value for value in clear if len(value) > 2]
                assert not any(
                    value.encode().hex() in stored_value.lower()
                    for value, stored_value in zip(texts, stored_values, strict=False)
                )
    assert Counter(encrypted) == (Counter(application.SECRETS) if arm == "encrypted" else Counter())


def shown(both_arms: ServerWithArms, codec: Codec, column: str, field: str) -> str:
    """The stored value of a column, bytes as hexadecimal digits."""
    if codec is PLAIN or field not in application.SECRETS or both_arms.engine.name == "postgresql":
        return column
    assert isinstance(codec, stored.Unchanged)
    assert isinstance(codec.inner, Encrypting)
    return codec.inner.hex(column)
