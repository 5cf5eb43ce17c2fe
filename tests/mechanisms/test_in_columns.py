"""Mechanisms in columns on real servers: values survive, every value is encrypted, witnesses can fail, findings fit the
mode."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from cryptography.hazmat.decrepit.ciphers import modes as old
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import steady
from ciphercost import commands, engines, mechanisms
from ciphercost.engines import Engine, Server, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.host import canary_scan, run_ownership, supervisor
from ciphercost.load.agent import Agent
from ciphercost.load.codec import PLAIN, Codec
from ciphercost.mechanisms._column import BLOCK, Columns, secret
from ciphercost.mechanisms.pgcrypto import LOG_NO_STATEMENT
from ciphercost.model import run_directory
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import ARMS, Arm, CellSpec, Spec
from ciphercost.plan import specs
from ciphercost.prove import column_checks
from ciphercost.provision import columns
from ciphercost.provision.columns import LENGTH, TABLE, ArmView, Secrets
from ciphercost.report import formats
from ciphercost.runs import pipeline
from conftest import RequireServer

SERVERS = ("postgresql@15", "postgresql@18", "mysql@9.7", "mariadb@11.8", "mariadb@10.11", "firebird@4.0")
LETTERS = 60
TEXTS = (
    "",
    "x",
    "sixteen letters.",
    "sixteen letters." * 2,
    "Grüße aus Köln, über dreißig Byte",
    "日本語のテキスト",
    "x" * LETTERS,
    "€" * LETTERS,
    'it\'s \\ a "quote"',
)
ROWS = 100


class ServerWithArms:
    """A server with a schema for each arm; the agent is connected to it under the arms' names."""

    def __init__(self, engine: Engine, version: str, server: Server, agent: Agent, secrets: Path) -> None:
        self.engine, self.version, self.server, self.agent, self.secrets = engine, version, server, agent, secrets
        for arm in ARMS:
            OwnSchema.of(engine).make_schema(
                agent, server.connection() | engine.plaintext_fields(), columns.schema_name(arm), "test"
            )

    def sealing(self, mechanism: Columns, factors: dict[str, str]) -> Secrets:
        """Switch this mechanism on: connect both arms and create what it needs in both."""
        sealing = columns.secrets_of(mechanism, self.engine, factors, self.secrets)
        for arm in ARMS:
            fields = self.server.connection() | mechanism.connection(self.engine, arm, factors, self.secrets)
            self.agent.connect(arm, fields | OwnSchema.of(self.engine).in_own_schema(columns.schema_name(arm)))
            for statement in mechanism.prepare(self.engine, factors):
                self.agent.query(arm, statement)
            self.drop(arm, TABLE)
        return sealing

    def drop(self, arm: Arm, table: str) -> None:
        if self.engine.name == "firebird":
            with contextlib.suppress(AgentError):
                self.agent.query(arm, f"DROP TABLE {table}")
        else:
            self.agent.query(arm, f"DROP TABLE IF EXISTS {table}")

    def ask(self, sql: str) -> list[list[str | None]]:
        return self.agent.query("encrypted", sql)

    def table(self, codec: Codec) -> None:
        self.drop("encrypted", "t")
        self.ask(f"CREATE TABLE t (id integer NOT NULL, sealed_ {codec.column(LETTERS)}, clear_ varchar({LETTERS}))")

    def literal(self, text: str) -> str:
        doubled = text.replace("'", "''")
        return f"'{doubled}'" if self.engine.dialect != "mysql" else "'" + doubled.replace("\\", "\\\\") + "'"

    def rows(self, expression: str) -> str:
        """Return ROWS rows of (a number from 1, the expression), computed by the server."""
        if self.engine.name == "postgresql":
            return f"SELECT n, {expression} FROM generate_series(1, {ROWS}) AS n"
        one = "SELECT 1 FROM RDB$DATABASE" if self.engine.name == "firebird" else "SELECT 1"
        numbers = f"WITH RECURSIVE s(n) AS ({one} UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
        return f"{numbers} SELECT n, {expression} FROM s"

    def arm_view(self, sealing: Secrets, canary: str, arm: Arm) -> ArmView:
        assert self.server.directory is not None
        return ArmView(arm, sealing, canary, self.agent, arm, (self.server.directory,))

    def some(self, **factors: str) -> tuple[Columns, dict[str, str]]:
        """Return a mechanism of this server, of the usual kind."""
        name = "pgcrypto-cbc-256" if self.engine.name == "postgresql" else "aes-cbc-256"
        mechanism = get("aes-ecb-128" if self.version.startswith("10.") else name)
        return mechanism, mechanism.check(factors)

    @property
    def cases(self) -> Iterator[tuple[str, Columns, dict[str, str]]]:
        """Yield every mechanism of this version, with every IV."""
        for mechanism in map(mechanisms.get, mechanisms.of(self.engine)):
            if not isinstance(mechanism, Columns) or mechanism.name.startswith("client-"):
                continue
            try:
                mechanism.check_version(self.engine, self.version)
            except UsageError:
                continue
            ivs = next((factor.values for factor in mechanism.factors if factor.name == "iv"), ("",))
            for iv in ivs:
                yield f"{mechanism.name} {iv}", mechanism, mechanism.check({"iv": iv} if iv else {})


def get(name: str) -> Columns:
    mechanism = mechanisms.get(name)
    assert isinstance(mechanism, Columns)
    return mechanism


@pytest.fixture(scope="module", params=SERVERS)
def both_arms(request: pytest.FixtureRequest, require_server: RequireServer) -> Iterator[ServerWithArms]:
    name, _, version = request.param.partition("@")
    installation = require_server(name, version)
    engine = engines.get(name)
    settings = LOG_NO_STATEMENT if name == "postgresql" else {}
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        (scratch / "data").mkdir()
        run_ownership.hand_over(scratch / "data")
        engine.initialise(installation, scratch / "data", run_supervisor)
        server = engine.start(
            StartRequest(installation, scratch / "data", run_supervisor, settings=settings, logs=scratch)
        )
        with Agent() as agent:
            yield ServerWithArms(engine, installation.version, server, agent, scratch / "secrets")
        server.stop()


def test_sealed_values_come_back_unchanged(both_arms: ServerWithArms) -> None:
    for name, mechanism, factors in both_arms.cases:
        codec = both_arms.sealing(mechanism, factors).codec
        both_arms.table(codec)
        for number, text in enumerate(TEXTS):
            value = both_arms.literal(text)
            both_arms.ask(
                f"INSERT INTO t (id, sealed_, clear_) VALUES ({number}, {codec.seal(value, LETTERS)}, {both_arms.literal(text)})"
            )
            matched = codec.match("sealed_", value, LETTERS)
            assert both_arms.ask(f"SELECT id FROM t WHERE id = {number} AND {matched}") == [[str(number)]], (name, text)
        rows = both_arms.ask(f"SELECT {codec.open('sealed_', LETTERS)}, {codec.hex('sealed_')} FROM t ORDER BY id")
        assert [row[0] for row in rows] == list(TEXTS), name
        assert not [text for text, (_, stored) in zip(TEXTS, rows, strict=True) if in_clear(text, str(stored))], name


def in_clear(text: str, stored: str) -> bool:
    return len(text) > 1 and text.encode().hex() in stored.lower()


def test_every_row_of_a_statement_has_an_iv_of_its_own(both_arms: ServerWithArms) -> None:
    """It is neither a constant folded by the planner nor an expression evaluated once per statement."""
    for name, mechanism, factors in both_arms.cases:
        codec = both_arms.sealing(mechanism, factors).codec
        both_arms.table(codec)
        wanted = ROWS if factors.get("iv") == "random" or mechanism.name == "pgp-sym" else 1
        constant, another = (codec.seal(text, LETTERS) for text in ("'constant'", "'another'"))
        both_arms.ask(f"INSERT INTO t (id, sealed_) {both_arms.rows(constant)}")
        opened = codec.open("sealed_", LETTERS)
        for text in ("constant", "another"):
            assert both_arms.ask(f"SELECT count(DISTINCT sealed_), count(*) FROM t WHERE {opened} = '{text}'") == [
                [str(wanted), str(ROWS)]
            ], name
            both_arms.ask(f"UPDATE t SET sealed_ = {another}")
        varied = codec.seal("CONCAT('name ', id)" if both_arms.engine.dialect == "mysql" else "'name ' || id", LETTERS)
        both_arms.ask(f"UPDATE t SET sealed_ = {varied}")
        rows = both_arms.ask(f"SELECT {opened} FROM t ORDER BY id")
        assert rows == [[f"name {number}"] for number in range(1, ROWS + 1)], name


@pytest.mark.parametrize("iv", [bytes(range(100, 116)), b"\xff" * BLOCK], ids=["any", "overflow"])
def test_the_bytes_equal_those_of_another_implementation(both_arms: ServerWithArms, iv: bytes) -> None:
    """The second IV makes a counter overflow into all of its bytes."""
    text = "Grüße aus Köln, über dreißig Byte lang"
    compared = 0
    for name, mechanism, factors in both_arms.cases:
        if factors.get("iv") == "random" or mechanism.name == "pgp-sym":
            continue
        key = bytes.fromhex(both_arms.sealing(mechanism, factors).key.reveal())
        codec = mechanism.codec(both_arms.engine, factors, key, iv)
        here = " FROM RDB$DATABASE" if both_arms.engine.name == "firebird" else ""
        stored = both_arms.ask(f"SELECT {codec.hex(f'({codec.seal(both_arms.literal(text), LETTERS)})')}{here}")[0][0]
        mode = mechanism.name.split("-")[1] if "-" in mechanism.name else ""
        if (cipher := by_mode(mode, key, iv)) is None:
            continue  # the library has no cfb1
        padded = text.encode()
        if mode in ("ecb", "cbc"):
            missing = BLOCK - len(padded) % BLOCK
            padded += bytes(missing) if both_arms.engine.name == "firebird" else bytes([missing]) * missing
        encryptor = cipher.encryptor()
        assert bytes.fromhex(str(stored)) == encryptor.update(padded) + encryptor.finalize(), name
        compared += 1
    assert compared


def by_mode(mode: str, key: bytes, iv: bytes) -> Any:
    if not mode:
        return Cipher(algorithms.ChaCha20(key, bytes(4) + iv[:12]), None)
    known = {
        "ecb": modes.ECB(),
        "cbc": modes.CBC(iv),
        "ctr": modes.CTR(iv),
        "ofb": old.OFB(iv),
        "cfb": old.CFB(iv),
        "cfb128": old.CFB(iv),
        "cfb8": old.CFB8(iv),
    }
    return Cipher(algorithms.AES(key), known[mode]) if mode in known else None


def test_each_finding_applies_only_to_mechanisms_with_the_fault(both_arms: ServerWithArms) -> None:
    for name, mechanism, factors in both_arms.cases:
        sealing = both_arms.sealing(mechanism, factors)
        canary = canary_scan.canary()
        columns.fill(both_arms.agent, "encrypted", sealing, canary, "encrypted")
        arm_view = msgspec.structs.replace(both_arms.arm_view(sealing, canary, "encrypted"), places=())
        assert {finding.code for finding in column_checks.findings(arm_view)} == expected(name), name


def expected(name: str) -> set[str]:
    """Return the findings that a mechanism must have, by its mode and IV."""
    if name.startswith("pgp-sym"):
        return set()
    codes = {"unauthenticated"}
    if "-ecb-" in name:
        return codes | {"pattern-shows", "equality-shows"}
    if name.endswith("fixed"):
        codes.add("equality-shows")
        if any(mode in name for mode in ("-ctr-", "-ofb-", "chacha20", "-cfb-", "-cfb128-")):
            codes.add("key-stream-reused")
    return codes


@pytest.mark.parametrize("both_arms", [name for name in SERVERS if name.startswith("postgresql")], indirect=True)
def test_pgp_without_its_mdc_does_not_detect_a_change(both_arms: ServerWithArms) -> None:
    mechanism = get("pgp-sym")
    sealing = both_arms.sealing(mechanism, mechanism.check({"mdc": "off"}))
    columns.fill(both_arms.agent, "encrypted", sealing, "canary0123456789", "encrypted")
    arm_view = both_arms.arm_view(sealing, "canary0123456789", "encrypted")
    assert [finding.code for finding in column_checks.findings(arm_view)] == ["unauthenticated"]


# ── witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def heard(both_arms: ServerWithArms, sealing: Secrets, canary: str, arm: Arm) -> dict[str, bool]:
    """Return each witness's verdict on an arm; an error is a no."""
    verdicts = {}
    for name, witness in (("server", column_checks.server), ("disk", column_checks.disk)):
        try:
            verdicts[name] = witness(both_arms.arm_view(sealing, canary, arm))[0]
        except AgentError:
            verdicts[name] = False
    return verdicts


def test_both_witnesses_confirm_correct_arms(both_arms: ServerWithArms) -> None:
    sealing, canary = both_arms.sealing(*both_arms.some()), canary_scan.canary()
    for arm in ARMS:
        columns.fill(both_arms.agent, arm, sealing, canary, arm)
        assert heard(both_arms, sealing, canary, arm) == {"server": True, "disk": True}


def test_an_encrypted_arm_loaded_unencrypted_fails_both(both_arms: ServerWithArms) -> None:
    sealing, canary = both_arms.sealing(*both_arms.some()), canary_scan.canary()
    both_arms.ask(f"CREATE TABLE {TABLE} (id integer NOT NULL, word {PLAIN.column(LENGTH)})")
    for number, text in columns.rows(canary, "encrypted").items():
        both_arms.ask(f"INSERT INTO {TABLE} (id, word) VALUES ({number}, '{text}')")
    assert heard(both_arms, sealing, canary, "encrypted") == {"server": False, "disk": False}


def test_a_plain_arm_that_is_encrypted_fails_both(both_arms: ServerWithArms) -> None:
    sealing, canary = both_arms.sealing(*both_arms.some()), canary_scan.canary()
    mechanism, factors = both_arms.some()
    arm_fields = mechanism.connection(both_arms.engine, "encrypted", factors, both_arms.secrets)
    schema = OwnSchema.of(both_arms.engine).in_own_schema(columns.schema_name("plain"))
    both_arms.agent.connect("plain", both_arms.server.connection() | arm_fields | schema)
    both_arms.agent.query("plain", f"CREATE TABLE {TABLE} (id integer NOT NULL, word {sealing.codec.column(LENGTH)})")
    for number, text in columns.rows(canary, "plain").items():
        value = sealing.codec.seal(f"'{text}'", LENGTH)
        both_arms.agent.query("plain", f"INSERT INTO {TABLE} (id, word) VALUES ({number}, {value})")
    assert heard(both_arms, sealing, canary, "plain") == {"server": False, "disk": False}


def test_a_wrong_key_fails_the_servers_witness(both_arms: ServerWithArms) -> None:
    sealing, canary = both_arms.sealing(*both_arms.some()), canary_scan.canary()
    columns.fill(both_arms.agent, "encrypted", sealing, canary, "encrypted")
    other = msgspec.structs.replace(sealing, key=Secret("0" * len(sealing.key.reveal())))
    assert heard(both_arms, other, canary, "encrypted") == {"server": False, "disk": True}


def test_a_wrong_key_proves_nothing_if_the_right_one_fails_too(both_arms: ServerWithArms) -> None:
    sealing, canary = both_arms.sealing(*both_arms.some()), canary_scan.canary()
    columns.fill(both_arms.agent, "encrypted", sealing, canary, "encrypted")
    arm_view = both_arms.arm_view(sealing, canary, "encrypted")
    codec = sealing.codec
    stored = bytes.fromhex(str(arm_view.ask(codec.hex("word"))))

    class Blind(columns.ArmView, frozen=True):
        def opened(self, codec: Codec, stored: bytes = b"") -> str | None:
            return None

    blind = Blind(**{name: getattr(arm_view, name) for name in arm_view.__struct_fields__})
    assert column_checks.server(arm_view)[0]
    assert not column_checks.server(blind)[0]
    with pytest.raises(AgentError, match="an unchanged stored value does not decrypt"):
        column_checks.notices(blind, stored)


@pytest.mark.parametrize("version", ["abc", "lts", "19beta1", ""])
def test_a_version_without_numbers_is_left_to_the_server_to_refuse(version: str) -> None:
    for name, engine in (("aes-cbc-256", "mariadb"), ("pgcrypto-cfb-256", "postgresql")):
        mechanisms.get(name).check_version(engines.get(engine), version)


def test_a_canary_in_clear_in_any_table_of_the_encrypted_schema_fails_the_disks_witness(
    both_arms: ServerWithArms,
) -> None:
    sealing, canary = both_arms.sealing(*both_arms.some()), canary_scan.canary()
    columns.fill(both_arms.agent, "encrypted", sealing, canary, "encrypted")
    both_arms.drop("encrypted", "notes")
    both_arms.ask("CREATE TABLE notes (note varchar(100))")
    both_arms.ask(f"INSERT INTO notes VALUES ('{columns.word(canary, 'encrypted')}')")
    assert heard(both_arms, sealing, canary, "encrypted") == {"server": True, "disk": False}


def test_a_disk_witness_that_searched_nothing_proves_nothing(both_arms: ServerWithArms, tmp_path: Path) -> None:
    sealing = both_arms.sealing(*both_arms.some())
    arm_view = msgspec.structs.replace(both_arms.arm_view(sealing, "x", "encrypted"), places=(tmp_path,))
    assert column_checks.disk(arm_view) == (False, "no bytes seen: the witness examined nothing")


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_error_messages_of_a_server_show_no_key(both_arms: ServerWithArms) -> None:
    sealing = both_arms.sealing(*both_arms.some())
    shown, value = [], sealing.codec.seal("'x'", 10)
    for broken in (f"SELECT 1 WHERE ({value}", f"SELECT wrong wrong {value}"):
        with pytest.raises(AgentError) as error:
            both_arms.ask(broken)
        shown.append(str(error.value))
    assert not any(sealing.key.reveal()[:12] in text for text in shown)
    if both_arms.engine.dialect == "mysql":
        assert "[key]" in shown[1]


def test_a_server_that_logs_statements_is_detected(both_arms: ServerWithArms) -> None:
    mechanism, factors = both_arms.some()
    sealing, canary = both_arms.sealing(mechanism, factors), canary_scan.canary()
    columns.fill(both_arms.agent, "encrypted", sealing, canary, "encrypted")
    arm_view = both_arms.arm_view(sealing, canary, "encrypted")
    assert not column_checks.written_keys(arm_view)
    if both_arms.engine.name == "postgresql":
        both_arms.ask("SET log_min_error_statement = error")
        assert [(finding.code, finding.closes) for finding in column_checks.written_keys(arm_view)] == [
            ("key-in-log", "log_min_error_statement = panic")
        ]
    elif both_arms.engine.dialect == "mysql":
        both_arms.ask("SET GLOBAL general_log = ON")
        try:
            arm_view.ask(sealing.codec.open("word", LENGTH))
            findings = column_checks.written_keys(arm_view)
        finally:
            both_arms.ask("SET GLOBAL general_log = OFF")
        assert [finding.code for finding in findings] == ["key-in-log", "key-in-files"]
        assert findings[0].closes == "general_log = OFF"


def test_a_binary_log_of_statements_fails_the_disks_witness_and_is_found_with_what_closes_it(
    both_arms: ServerWithArms,
) -> None:
    if both_arms.engine.name != "mysql":
        return
    mechanism, factors = get("aes-cbc-128"), {"iv": "fixed"}
    both_arms.sealing(mechanism, factors)
    both_arms.ask("SET GLOBAL binlog_format = 'STATEMENT'")
    try:
        sealing, canary = both_arms.sealing(mechanism, factors), canary_scan.canary()
        columns.fill(both_arms.agent, "encrypted", sealing, canary, "encrypted")
        passed, detail = column_checks.disk(both_arms.arm_view(sealing, canary, "encrypted"))
        findings = column_checks.written_keys(both_arms.arm_view(sealing, canary, "encrypted"))
    finally:
        both_arms.ask("SET GLOBAL binlog_format = 'ROW'")
    assert not passed
    assert "binlog" in detail
    assert ("key-in-log", "binlog_format = ROW") in [(finding.code, finding.closes) for finding in findings]


def test_the_key_is_in_no_file_of_the_servers(both_arms: ServerWithArms) -> None:
    """Not even in that of a function created for the mechanism."""
    if both_arms.engine.name == "mysql":
        return  # earlier tests made it log statements
    for name, mechanism, factors in both_arms.cases:
        if mechanism.prepare(both_arms.engine, factors):
            own_key = Secret(secret(both_arms.secrets, name.replace(" ", "-"), mechanism.key_bytes).hex())
            fresh = msgspec.structs.replace(both_arms.sealing(mechanism, factors), key=own_key)
            columns.fill(both_arms.agent, "encrypted", fresh, "canary0123456789", "encrypted")
            findings = column_checks.written_keys(both_arms.arm_view(fresh, "canary0123456789", "encrypted"))
            assert "key-in-files" not in [finding.code for finding in findings], name


# ── how often ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Calls:
    """PostgreSQL's own counts of function calls."""

    def __init__(self, both_arms: ServerWithArms) -> None:
        self.both_arms = both_arms
        both_arms.ask("SET track_functions = 'all'")
        self.before = self._now()

    def _now(self) -> dict[str, int]:
        self.both_arms.ask("SELECT pg_stat_force_next_flush()")
        rows = self.both_arms.ask("SELECT funcname, sum(calls) FROM pg_stat_user_functions GROUP BY 1")
        return {str(name): int(str(calls)) for name, calls in rows}

    def since(self) -> dict[str, int]:
        now = self._now()
        changes = {name: now[name] - self.before.get(name, 0) for name in now}
        self.before = now
        return {name: calls for name, calls in changes.items() if calls}


def test_a_statement_calls_the_function_once_for_each_value(both_arms: ServerWithArms) -> None:
    if both_arms.engine.name != "postgresql":
        return
    for iv in ("random", "fixed"):
        mechanism, factors = both_arms.some(iv=iv)
        codec = both_arms.sealing(mechanism, factors).codec
        both_arms.table(codec)
        calls = Calls(both_arms)
        value, same = codec.seal("'name ' || n", LETTERS), codec.seal("CASE WHEN id > 0 THEN 'same' END", LETTERS)
        both_arms.ask(f"INSERT INTO t (id, sealed_) {both_arms.rows(value)}")
        drawn = {"gen_random_bytes": ROWS} if iv == "random" else {}
        assert calls.since() == {"encrypt_iv": ROWS, **drawn}
        opened = codec.open("sealed_", LETTERS)
        both_arms.ask(f"SELECT id FROM t ORDER BY {opened} LIMIT 10")
        assert calls.since() == {"decrypt_iv": ROWS}
        matched = codec.match("sealed_", "'name 7'", LETTERS)
        both_arms.ask(f"SELECT count(*) FROM t WHERE {matched}")
        assert calls.since() == ({"decrypt_iv": ROWS} if iv == "random" else {"encrypt_iv": 1})
        both_arms.ask(f"UPDATE t SET sealed_ = {same}")
        assert calls.since() == {"encrypt_iv": ROWS, **drawn}


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_stored_bytes_grow_by_the_encrypted_bytes(both_arms: ServerWithArms) -> None:
    sealing = both_arms.sealing(*both_arms.some())
    for arm in ARMS:
        codec = sealing.of(arm)
        both_arms.drop(arm, "person")
        both_arms.agent.query(arm, f"CREATE TABLE person (id integer NOT NULL, name {codec.column(LETTERS)})")
        sealed = codec.seal("'seventeen letters'", LETTERS)
        for _ in range(20):
            both_arms.agent.query(arm, f"INSERT INTO person (id, name) {both_arms.rows(sealed)}")
        both_arms.agent.query(arm, "CREATE INDEX person_name ON person (name)")
        if both_arms.engine.dialect == "mysql":
            both_arms.agent.query(arm, "ANALYZE TABLE person")
    sizes = column_checks.sizes(both_arms.arm_view(sealing, "", arm) for arm in ARMS)
    for kind in ("table_bytes", "index_bytes"):
        assert sizes["encrypted"][kind] > sizes["plain"][kind] > 0
    # 2,000 rows of 17 characters, or of 32 to 48 bytes.
    assert 34_000 < sizes["plain"]["table_bytes"] < sizes["encrypted"]["table_bytes"] < 600_000


def test_a_run_shows_what_is_protected_beside_its_cost(require_server: RequireServer, tmp_path: Path) -> None:
    for name in ("postgresql", "mariadb"):
        require_server(name, "")
    cells = [
        CellSpec("postgresql", "pgcrypto-cbc-256", workload="search", rows=500),
        CellSpec("mariadb", "aes-ecb-128", workload="sort", rows=500),
    ]
    spec = Spec(cells=cells, mode="quick", sessions=1, time=1, latency=False, slice_seconds=0.05)
    result, directory = steady.measured(partial(pipeline.run, spec), tmp_path)
    assert [(cell.status, cell.reason) for cell in result.cells] == [("ok", "")] * len(cells)
    for cell in result.cells:
        assert cell.stored["encrypted"]["table_bytes"] > cell.stored["plain"]["table_bytes"] > 0
        assert cell.stored["encrypted"]["index_bytes"] > cell.stored["plain"]["index_bytes"] > 0
    assert [cell.encryption["cipher"] for cell in result.cells] == ["AES-256-CBC", "AES-128-ECB"]
    assert [len(cell.findings) for cell in result.cells] == [1, 3]
    text = formats.get("terminal")(result)
    for words in ("stored bytes, tables", "what it protects", "finding, high: pattern-shows"):
        assert words in text
    for path in directory.rglob("*"):
        if path.is_file():
            assert b"\\x" not in path.read_bytes(), path
            assert b"X'" not in path.read_bytes(), path


# ── refused before anything is started ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run postgresql:pgcrypto-cbc-256", "workload point-select has no secret column"),
        ("run mysql:aes-cbc-256 --workload tpcb", "one of "),
        ("run mariadb:aes-cbc-256 --sql FILE", "--sql uses tables as they are"),
        ("run mariadb@10.11:aes-cbc-256 --workload search", "before 11.2 AES_ENCRYPT has only ECB"),
        ("run mariadb@10.11:aes-ecb-256 --workload search", "only 128-bit keys"),
        ("run postgresql@15:pgcrypto-cfb-128 --workload search", "has no CFB"),
        ("run mysql:aes-ctr-256 --workload search", "mysql has no mechanism 'aes-ctr-256'"),
        ("run sqlite:aes-cbc-256 --workload search", "sqlite has no mechanism"),
        ("run mariadb:aes-ecb-128 --iv fixed --workload search", "ECB has no IV"),
        ("run postgresql:tls --iv fixed", "tls has no choice of IV"),
        ("run mariadb:aes-cbc-128 --iv fixed --set iv=random --workload search", "set the same factor"),
        ("prove postgresql:pgp-sym --iv fixed", "pgp-sym has no choice of IV"),
        ("run postgresql:pgp-sym --set kdf_iter=12 --workload search", "from 1024 to 65011712"),
        ("run postgresql:pgp-sym --set kdf_iter=²²²² --workload search", "from 1024 to 65011712"),
        ("run postgresql:pgp-sym --set kdf=simple --set kdf_iter=2048 --workload search", "kdf=iterated"),
    ],
)
def test_what_can_not_be_is_refused(arguments: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "own.sql"
    file.write_text("SELECT sealed(1)")
    with pytest.raises(UsageError) as error:
        commands.cli.main(arguments.replace("FILE", str(file)).split(), standalone_mode=False)
    assert words in str(error.value)


def test_the_error_suggests_a_workload_with_secrets() -> None:
    with pytest.raises(UsageError, match="search, secret-insert, secret-read, sort"):
        specs.check(Spec(cells=[CellSpec("postgresql", "pgcrypto-cbc-256")]))


def test_iv_is_short_for_the_factor() -> None:
    done = CliRunner().invoke(
        commands.cli, ["run", "mariadb:aes-cbc-128", "--iv", "fixed", "--workload", "search", "--print-spec"]
    )
    assert 'factors = { "iv" = "fixed" }' in done.output


def test_a_secret_too_long_for_firebirds_function_is_refused() -> None:
    mechanism = get("aes-ofb-128")
    codec = mechanism.codec(engines.get("firebird"), {"iv": "random"}, bytes(16), bytes(16))
    assert codec.seal("x", 1020)
    with pytest.raises(UsageError, match="the limit is 1020"):
        codec.seal("x", 1021)


def test_every_family_name_expands_to_its_mechanisms() -> None:
    for mechanism in map(mechanisms.get, mechanisms.names()):
        if mechanism.family:
            assert mechanism.name in unfolded(mechanism.family)
    assert mechanisms.folded(["aes-cbc-128", "tls", "aes-ecb-128"]) == ["aes-{cbc,ecb}-128", "tls"]


def unfolded(family: str) -> list[str]:
    """Expand `a-{b,c}` to `a-b` and `a-c`."""
    words = [part.strip("{}").split(",") for part in family.split("-")]
    return ["-".join(parts) for parts in itertools.product(*words)]


def test_on_your_own_server_only_schemas_are_created_and_they_are_dropped(
    both_arms: ServerWithArms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pgcrypto belongs to the whole database, so it must exist already."""
    if both_arms.engine.name != "postgresql" or both_arms.version < "18":
        return
    fields = both_arms.server.connection()
    monkeypatch.setenv("PGPASSWORD", reveal(fields.password))
    url = f"postgresql://{fields.user}@127.0.0.1:{fields.port}/{fields.database}"
    cell = CellSpec("postgresql", "pgcrypto-cbc-256", workload="search", rows=100, url=url)
    spec = Spec(cells=[cell], mode="quick", sessions=1, time=1, latency=False, slice_seconds=0.05)
    both_arms.sealing(*both_arms.some())
    before = OwnSchema.of(both_arms.engine).schemas(both_arms.agent, fields)
    for there, status in ((False, "failed"), (True, "ok")):
        both_arms.ask("DROP EXTENSION IF EXISTS pgcrypto CASCADE")
        if there:
            both_arms.ask("CREATE EXTENSION pgcrypto SCHEMA public")
        result, _ = steady.measured(partial(pipeline.run, spec), tmp_path / status)
        assert result.cells[0].status == status
        assert ("CREATE EXTENSION pgcrypto SCHEMA public" in result.cells[0].reason) == (not there)
        assert OwnSchema.of(both_arms.engine).schemas(both_arms.agent, fields) == before
    assert [finding.code for finding in result.cells[0].findings] == ["unauthenticated"]
