"""client-aes-gcm-256 on real servers: what the application encrypts and decrypts, how often, the witnesses, and what is
refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ciphercost import commands, engines, mechanisms
from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import run_ownership, supervisor
from ciphercost.load import script, secret_sql, workloads
from ciphercost.load.agent import Agent
from ciphercost.load.codec import PLAIN, Codec
from ciphercost.load.program import Program
from ciphercost.load.script_parts import Script
from ciphercost.mechanisms.client_aes_gcm_256 import MARK, MECHANISM, OVERHEAD
from ciphercost.model import run_directory
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.secret import Secret
from ciphercost.model.slices import AgentSlice
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import column_checks
from ciphercost.provision import columns
from ciphercost.provision.columns import LENGTH, TABLE, ArmView, Secrets
from conftest import RequireServer
from test_real import measured

CANARY = "canary0123456789abcdef"
TEXTS = ("", "x", "sixteen letters.", "Grüße, 日本語", 'it\'s \\ a "quote"', "€" * 60, "\\xc101", "c101")
ROWS = 25
SECRETS = 6
"""Secret values of a record: four of the notification, the names of state and municipality."""


# ── pure ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def codec_of(engine: str) -> Codec:
    return MECHANISM.codec(engines.get(engine), {}, bytes(32), b"")


def parsed(text: str, engine: str = "postgresql") -> Script:
    return script.parse(secret_sql.expand(text, codec_of(engine), "here"), {"rows": 5}, "here")


def test_variables_are_sealed_by_the_agent_and_columns_opened() -> None:
    sealed_script = parsed(
        "\\set a random_text(5)\n\\set b random(1, :rows)\n"
        "UPDATE t SET x = sealed(:a, 9), y = :a, z = sealed(:a, 9) WHERE id = :b AND u = ':a'; SELECT opened(t.x, 9), y FROM t;"
    )
    write, read = sealed_script.statements
    assert write.sql == "UPDATE t SET x = $1, y = $2, z = $1 WHERE id = $3 AND u = $4"
    assert (write.parameters, write.open) == (("a.sealed", "a", "b", "a"), False)
    assert (read.sql, read.parameters, read.open) == ("SELECT t.x, y FROM t", (), True)
    assert [(variable.name, variable.kind, variable.of) for variable in sealed_script.variables][2:] == [
        ("a.sealed", "sealed", "a")
    ]


def test_both_arms_draw_the_same() -> None:
    text = "\\set a random_text(5)\nINSERT INTO t VALUES (sealed(:a, 9)); SELECT 1 FROM t;"
    both = script.by_arm(script.parse(secret_sql.expand(text), {}), parsed(text))
    assert [variable.name for variable in both.variables] == ["a", "a.sealed"]
    assert [(statement.arm, statement.parameters) for statement in both.statements] == [
        ("plain", ("a",)), ("plain", ()), ("encrypted", ("a.sealed",)), ("encrypted", ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "SELECT opened(a, 9) FROM t",
        "SELECT id, opened(a, 9) AS name, opened(t.b, 9) word, n FROM t WHERE n > 3 ORDER BY id",
        "SELECT id, (SELECT opened(name, 9) FROM state s WHERE s.id = n.state_id), n FROM n",
        "/* opened(a, 9) = 1 */ SELECT 'opened(a, 9) ||', opened(a, 9) -- + 1\n FROM t",
        "INSERT INTO t (a) VALUES (1) RETURNING id, opened(a, 9)",
    ],
)
def test_values_in_select_lists_are_opened(text: str) -> None:
    (statement,) = parsed(text).statements
    assert statement.open
    assert "ciphercost" not in statement.sql


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t WHERE opened(a, 9) = 'x'",
        "SELECT id FROM t ORDER BY opened(a, 9)",
        "SELECT max(opened(a, 9)) FROM t",
        "SELECT opened(a, 9) || 'x' FROM t",
        "SELECT 'x' || opened(a, 9) FROM t",
        "SELECT opened(a, 9) = 'x' FROM t",
        "SELECT DISTINCT opened(a, 9) FROM t",
        "SELECT opened(lower(a), 9) FROM t",
        "SELECT CASE WHEN (SELECT opened(a, 9) FROM t) = 'x' THEN 1 END FROM t",
        "SELECT n FROM (SELECT opened(a, 9) AS n FROM t) AS d",
        "SELECT id FROM t WHERE 'x' IN (SELECT opened(a, 9) FROM t)",
        "DELETE FROM t WHERE matches(a, 'x', 9)",
        "UPDATE t SET a = sealed(b || 'x', 9)",
        "INSERT INTO t SELECT sealed(name, 9) FROM u",
        "INSERT INTO t VALUES (sealed(:rows, 9))",
    ],
)
def test_what_needs_a_server_with_the_key_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="here"):
        parsed(text)


@pytest.mark.parametrize("workload", ["search", "sort", "hospital", "hospital-2024"])
def test_an_unfit_workload_is_refused_before_anything_starts(workload: str) -> None:
    done = CliRunner().invoke(commands.cli, ["run", "sqlite:client-aes-gcm-256", "--workload", workload, "--quick"])
    assert isinstance(done.exception, UsageError), done.output
    message = str(done.exception)
    assert workload in message
    assert "hospital-client" in message or "a mechanism with functions of the server" in message


# ── on real servers ───────────────────────────────────────────────────────────────────────────────────────────────────


class ServerWithArms(msgspec.Struct):
    """A server with a schema for each arm, and the agent connected to both."""

    engine: Engine
    agent: Agent
    secrets: Secrets
    places: tuple[Path, ...]

    def codec(self, arm: Arm) -> Codec:
        return self.secrets.of(arm)

    def drop(self, arm: Arm, table: str) -> None:
        with contextlib.suppress(AgentError):  # if there is none
            self.agent.query(arm, f"DROP TABLE {table}")

    def arm_view(self, arm: Arm, secrets: Secrets | None = None) -> ArmView:
        return ArmView(arm, secrets or self.secrets, CANARY, self.agent, arm, self.places)

    def literal(self, text: str) -> str:
        doubled = text.replace("'", "''")
        return f"'{doubled}'" if self.engine.dialect != "mysql" else "'" + doubled.replace("\\", "\\\\") + "'"

    def run(self, arm: Arm, operations: int, seed: int = 3) -> AgentSlice:
        done = self.agent.slice(arm, 60, discard=0, seed=seed, operations=operations)
        assert (done.operations, done.errors) == (operations, 0), done.first_error
        return done


@pytest.fixture(scope="module", params=MECHANISM.engines)
def both_arms(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerWithArms]:
    engine = engines.get(request.param)
    installation = engine.find() if engine.embedded else require_server(request.param)
    logs, run_id = tmp_path_factory.mktemp("logs"), run_directory.new_id()
    with supervisor.Supervisor(run_id) as run_supervisor, Agent(log=logs / "agent.log") as agent:
        scratch = supervisor.scratch(run_id, run_supervisor)
        keys = scratch / "keys"
        keys.mkdir(mode=0o700)
        secrets = columns.secrets_of(MECHANISM, engine, {}, keys)
        servers: list[Server] = []
        for arm in ARMS:
            if engine.embedded or not servers:
                directory = scratch / f"data-{arm}"
                directory.mkdir(mode=0o700)
                run_ownership.hand_over(directory)
                engine.initialise(installation, directory, run_supervisor)
                servers.append(engine.start(StartRequest(installation, directory, run_supervisor, logs=logs)))
            fields = servers[-1].connection() | MECHANISM.connection(engine, arm, {}, keys)
            if not engine.embedded:
                OwnSchema.of(engine).make_schema(agent, fields, columns.schema_name(arm), run_id)
                fields |= OwnSchema.of(engine).in_own_schema(columns.schema_name(arm))
            agent.connect(arm, fields)
        try:
            yield ServerWithArms(engine, agent, secrets, tuple(scratch.glob("data-*")) if not engine.embedded else ())
        finally:
            for server in servers:
                server.stop()


def program_of(both_arms: ServerWithArms, *names: str) -> Program:
    """Return hospital-client in both arms, reduced to these transactions."""
    definition = workloads.get("hospital-client")
    program = workloads.prepare(definition, both_arms.engine.dialect, {}, ROWS, both_arms.secrets.codec)
    return msgspec.structs.replace(
        program, transactions=tuple(transaction for transaction in program.transactions if transaction[0] in names)
    )


@pytest.fixture(scope="module")
def filled(both_arms: ServerWithArms) -> ServerWithArms:
    program = program_of(both_arms, "select")
    for arm in ARMS:
        for step in program.tables(arm).load:
            both_arms.agent.query(arm, step.sql)
    return both_arms


def test_literals_are_sealed_here_and_opened_with_the_key(both_arms: ServerWithArms) -> None:
    for arm in ARMS:
        codec = both_arms.codec(arm)
        both_arms.drop(arm, "t")
        both_arms.agent.query(arm, f"CREATE TABLE t (id integer NOT NULL, a {codec.column(60)})")
        for number, text in enumerate(TEXTS):
            value = codec.seal(both_arms.literal(text), 60)
            both_arms.agent.query(arm, f"INSERT INTO t (id, a) VALUES ({number}, {value})")
    codec = both_arms.secrets.codec
    rows = both_arms.agent.query("encrypted", f"SELECT {codec.hex('a')} FROM t ORDER BY id")
    stored = [bytes.fromhex(str(row[0])) for row in rows]
    assert [codec.opened(value).decode() for value in stored] == list(TEXTS)
    assert all(
        value.startswith(MARK) and len(value) == len(text.encode()) + OVERHEAD
        for value, text in zip(stored, TEXTS, strict=True)
    )
    one = script.parse(secret_sql.expand("SELECT id, opened(a, 60) FROM t ORDER BY id", codec), {})
    plain = script.parse("SELECT id, a FROM t ORDER BY id", {})
    program = msgspec.structs.replace(program_of(both_arms), transactions=(("t", 1, script.by_arm(plain, one)),))
    both_arms.agent.program(program)
    seen = {arm: both_arms.run(arm, 2) for arm in ARMS}
    assert seen["plain"].checksum == seen["encrypted"].checksum
    assert (seen["plain"].opened, seen["encrypted"].opened) == (0, 2 * len(TEXTS))


def test_every_value_is_sealed_and_opened_once_per_operation(filled: ServerWithArms) -> None:
    counts = {
        "insert": (SECRETS, 0),
        "select": (0, SECRETS * ROWS),
        "find": (0, ROWS),
        "update": (1, 0),
        "delete": (0, 0),
    }
    for name, (sealed, opened) in counts.items():
        filled.agent.program(program_of(filled, name))
        done = {arm: filled.run(arm, 4) for arm in ARMS}
        # The four inserted ones count too.
        opened = opened * (ROWS + 4) // ROWS
        assert (done["plain"].sealed, done["plain"].opened) == (0, 0), name
        assert (done["encrypted"].sealed, done["encrypted"].opened) == (4 * sealed, 4 * opened), name
        assert done["plain"].checksum == done["encrypted"].checksum, name
        assert done["plain"].rows == done["encrypted"].rows, name


def test_the_check_compares_the_decrypted_values(filled: ServerWithArms) -> None:
    program = program_of(filled, "select")

    def answer(arm: Arm) -> list[list[str | None]]:
        tables = program.tables(arm)
        return tables.read(filled.agent.query(arm, tables.check))

    assert answer("plain") == answer("encrypted")
    assert len(answer("plain")) == ROWS
    sealed = filled.secrets.codec.seal("'NoServer'", 40)
    filled.agent.query("encrypted", f"UPDATE state SET name = {sealed} WHERE id = 3")
    assert answer("plain") != answer("encrypted")
    other = filled.secrets.wrong.seal("'NoServer'", 40)
    filled.agent.query("encrypted", f"UPDATE state SET name = {other} WHERE id = 3")
    with pytest.raises(AgentError, match="does not open"):
        answer("encrypted")


def filled_canary(both_arms: ServerWithArms, codec: Codec | None = None) -> None:
    for arm in ARMS:
        both_arms.drop(arm, TABLE)
        columns.fill(both_arms.agent, arm, both_arms.secrets, CANARY, arm)
    if codec is not None:
        both_arms.drop("encrypted", TABLE)
        both_arms.agent.query("encrypted", f"CREATE TABLE {TABLE} (id integer NOT NULL, word {codec.column(LENGTH)})")
        for number, text in columns.rows(CANARY, "encrypted").items():
            sealed = codec.seal(f"'{text}'", LENGTH)
            both_arms.agent.query("encrypted", f"INSERT INTO {TABLE} (id, word) VALUES ({number}, {sealed})")


def test_the_witness_confirms_both_arms_without_findings(both_arms: ServerWithArms) -> None:
    filled_canary(both_arms)
    for arm in ARMS:
        passed, words = column_checks.server(both_arms.arm_view(arm))
        assert passed, words
    assert column_checks.findings(both_arms.arm_view("encrypted")) == []


def test_a_wrong_key_is_witnessed(both_arms: ServerWithArms) -> None:
    filled_canary(both_arms)
    other = msgspec.structs.replace(both_arms.secrets, key=Secret(bytes(32).hex()))
    passed, words = column_checks.server(both_arms.arm_view("encrypted", other))
    assert not passed
    assert "does not open" in words


def test_values_in_clear_are_witnessed(both_arms: ServerWithArms) -> None:
    filled_canary(both_arms, PLAIN)
    passed, words = column_checks.server(both_arms.arm_view("encrypted"))
    assert not passed, words
    passed, words = column_checks.disk(both_arms.arm_view("encrypted"))
    assert not passed, words


# ── the whole path ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["postgresql", "sqlite"])
def test_it_is_run_end_to_end(
    engine: str, require_server: RequireServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine != "sqlite":
        require_server(engine)
    options = ["--workload", "hospital-client", "--rows", "50", "--quick", "--time", "4s", "--json", "out.json"]
    done = measured("run", f"{engine}:client-aes-gcm-256", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert cell["status"] == "ok"
    assert cell["encryption"]["cipher"] == "AES-256-GCM"
    assert cell["encryption"]["client_library"].startswith("OpenSSL")
    assert cell.get("findings", []) == []
    assert all(proof["passed"] for proof in cell["proofs"])


def test_it_is_a_mechanism_of_every_server() -> None:
    assert mechanisms.get("client-aes-gcm-256") is MECHANISM
    assert set(MECHANISM.engines) == {
        name
        for name in engines.names()
        if isinstance(engines.get(name), StoresData) and engines.get(name).language == "sql"
    } - {"duckdb", "turso", "h2"}, (
        "the agent's drivers of DuckDB and Turso open no sealed values, and the Java agent makes none"
    )
