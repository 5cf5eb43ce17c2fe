"""A user's own statements on tables that ciphercost did not make: measured with the right to read alone, and nothing is created."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from ciphercost import engines
from ciphercost.model.spec import CellSpec
from conftest import Require, RequireServer
from shops import ENGINES, Opened, Shop, opened, shop
from test_real import SHORT, measured, result_of

FORBIDDEN = re.compile(r"\b(CREATE|DROP|ALTER|GRANT|search_path|Init DB)\b|^Query USE ", re.IGNORECASE)
"""What no statement of a run on own tables may contain."""
ID = "\\set id random(1, 200)\n"
FROM_ORDERS = "FROM orders WHERE id = :id;"


@pytest.fixture(scope="module", params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require) -> Iterator[Shop]:
    name = request.param
    require(list(engines.get(name).available()), f"no {name} here: `ciphercost install {name}`")
    with shop(name, tmp_path_factory.mktemp("shop")) as found:
        yield found


@pytest.mark.parametrize("client", ["rust", "jdbc"])
def test_own_tables_are_measured_with_the_right_to_read_alone(own: Shop, client: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(f"{ID}SELECT customer, note {FROM_ORDERS}\n")
    before = own.state()
    argv = (*own.argv, "--sql", "own.sql", *SHORT, *(("--client", "jdbc") if client == "jdbc" else ()))
    done = measured(*argv, "--json", "out.json", cwd=tmp_path, **own.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result_of(tmp_path)["cells"][0]["status"] == "ok"
    assert "creates nothing" in " ".join(done.stderr.replace("===", " ").split())
    assert own.state() == before
    assert [each for each in own.said() if FORBIDDEN.search(each)] == []
    assert own.said() or own.name == "firebird"


def open_one(own: Shop, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str = "rust") -> Opened:
    """Open a session that runs this text. Both arms must do operations without an error, and no schema may exist."""
    for name, value in own.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "own.sql").write_text(text)
    found = opened(own.cell(tmp_path / "own.sql", client.replace("rust", "")), tmp_path)
    assert not found.schemas
    for answer in found.slices.values():
        assert (answer.errors, answer.first_error) == (0, "")
        assert answer.operations > 0
    return found


VOLATILE = {
    "postgresql": f"{ID}SELECT id, now(), pg_backend_pid(), random() {FROM_ORDERS}",
    "mysql": f"{ID}SELECT id, sysdate(6), uuid(), connection_id() {FROM_ORDERS}",
    "mariadb": f"{ID}SELECT id, sysdate(6), uuid(), connection_id() {FROM_ORDERS}",
    "firebird": f"{ID}SELECT id, gen_uuid(), current_connection, rand() {FROM_ORDERS}",
}


@pytest.mark.parametrize("client", ["rust", "jdbc"])
def test_values_that_differ_from_call_to_call_are_measured_and_named(
    own: Shop, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = open_one(own, VOLATILE[own.name], tmp_path, monkeypatch, client)
    assert not found.verdict.differs
    assert len(found.verdict.varies) == 3
    assert not any(each.lower().startswith("id ") for each in found.verdict.varies)
    assert "the same arm answers the same operations differently" in found.verdict.note


DIFFERENT = {
    "postgresql": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();",
    "mysql": "SELECT variable_value FROM performance_schema.session_status WHERE variable_name = 'Ssl_version';",
    "mariadb": "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_version';",
    "firebird": "SELECT mon$wire_crypt_plugin FROM mon$attachments WHERE mon$attachment_id = current_connection;",
}


@pytest.mark.parametrize("beside", ["", "now"])
def test_an_arm_that_agrees_with_itself_and_not_with_the_other_is_refused(
    own: Shop, beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DIFFERENT[own.name] + (f"\n{VOLATILE[own.name]}" if beside else "")
    found = open_one(own, text, tmp_path, monkeypatch)
    assert found.verdict.differs
    assert not found.verdict.note


WRITTEN: dict[str, list[str]] = {
    "postgresql": [
        "DO $$ BEGIN PERFORM 1; PERFORM 2; END $$;\nSELECT $q$it's; fine$q$;",
        "SELECT E'a\\'b;c', 'it''s', \"x\" FROM (SELECT 1 AS \"x\") t; /* a ; comment */ -- another ; one",
        f"{ID}SELECT 1 /* a /* nested ; 'one' */ ; it's still */ + 1, '/*', :id;",
        f"{ID}SELECT note_of(:id), '$1', $$ $1 $$, note::varchar(3) {FROM_ORDERS}",
        f"{ID}SELECT doc ? 'a', doc #> '{{a}}', '{{\"fn\": 1}}'::jsonb {FROM_ORDERS}",
        f"{ID}SELECT 'order :id', 'a::id', ':nobody', ':id'::int, E'\\t:id' {FROM_ORDERS}",
        f'{ID}SELECT customer FROM "Elsewhere"."Orders" WHERE id = :id;',
        "SELECT (ARRAY[1, 2, 3])[1:2];\n-- the end ; without a semicolon\nSELECT 2",
    ],
    "mysql": [
        f"{ID}SELECT note_of(:id), `note` {FROM_ORDERS} # a ; comment\nSELECT 'it\\'s; one', \"two;\", 'a''b'; -- last ;",
        f"{ID}SELECT 5--1, /* a ; comment */ 'order :id', '$1', '?', id {FROM_ORDERS}",
        f"{ID}SELECT customer FROM shop.orders WHERE id = :id",
    ],
    "firebird": [
        f"{ID}SELECT note_of(:id), 'it''s; one' {FROM_ORDERS} /* a ; comment */ -- another ;",
        "EXECUTE BLOCK RETURNS (n INTEGER) AS BEGIN n = 1; SUSPEND; n = :n + 1; SUSPEND; END;\nSELECT q'{it's; fine}' FROM rdb$database;",
    ],
}
WRITTEN["mariadb"] = [
    *WRITTEN["mysql"],
    "BEGIN NOT ATOMIC DECLARE n INT; SET n = 1; IF n = 1 THEN SET n = 2; END IF; END; SELECT 1;",
]


@pytest.mark.parametrize("client", ["rust", "jdbc"])
def test_statements_arrive_as_they_are_written(
    own: Shop, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in WRITTEN[own.name]:
        found = open_one(own, text, tmp_path, monkeypatch, client)
        assert (found.verdict.differs, found.verdict.varies) == ("", ()), text


def test_a_table_that_may_be_written_is_written_by_both_arms(
    own: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\\set id random(1, 100)\nUPDATE counters SET hits = hits + 1 WHERE id = :id;"
    found = open_one(own, text, tmp_path, monkeypatch)
    table = "shop.counters" if own.name in ("mysql", "mariadb") else "counters"
    hits = own.server.ask(
        f"SELECT CAST(SUM(hits) AS INTEGER) FROM {table}".replace("INTEGER", "SIGNED" if "shop" in table else "INTEGER")
    )
    assert int(str(hits[0][0])) >= sum(each.operations for each in found.slices.values())


def test_connecting_needs_no_right_and_creates_nothing(
    own: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in own.environment.items():
        monkeypatch.setenv(name, value)
    found = opened(structs.replace(own.cell(tmp_path), sql="", workload="connect"), tmp_path)
    assert (found.verdict.differs, found.schemas) == ("", {})


@pytest.mark.parametrize("own", ["mysql", "mariadb"], indirect=True)
def test_a_url_without_a_database_reaches_qualified_names(
    own: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", own.environment["MYSQL_PWD"])
    (tmp_path / "own.sql").write_text(f"{ID}SELECT note FROM shop.orders WHERE id = :id")
    found = opened(structs.replace(own.cell(tmp_path / "own.sql"), url=own.url.removesuffix("shop")), tmp_path)
    assert (found.verdict.differs, found.schemas) == ("", {})


def test_a_key_value_store_runs_the_users_own_commands(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("valkey")
    (tmp_path / "own.kv").write_text("\\set id random(1, 9)\nSET 'user::id:name' \"Ada L.\"\nGET user::id:name\n")
    found = opened(CellSpec("valkey", "tls", sql=str(tmp_path / "own.kv"), clients=2), tmp_path)
    for answer in found.slices.values():
        assert (answer.errors, answer.rows) == (0, 2 * answer.operations)
