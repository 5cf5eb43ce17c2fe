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
def user_shop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require
) -> Iterator[Shop]:
    name = request.param
    require(list(engines.get(name).available()), f"no {name} here: `ciphercost install {name}`")
    with shop(name, tmp_path_factory.mktemp("shop")) as running:
        yield running


@pytest.mark.parametrize("client", ["rust", "jdbc"])
def test_own_tables_are_measured_with_the_right_to_read_alone(user_shop: Shop, client: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(f"{ID}SELECT customer, note {FROM_ORDERS}\n")
    before = user_shop.state()
    argv = (*user_shop.argv, "--sql", "own.sql", *SHORT, *(("--client", "jdbc") if client == "jdbc" else ()))
    done = measured(*argv, "--json", "out.json", cwd=tmp_path, **user_shop.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result_of(tmp_path)["cells"][0]["status"] == "ok"
    assert "creates nothing" in " ".join(done.stderr.replace("===", " ").split())
    assert user_shop.state() == before
    assert [statement for statement in user_shop.said() if FORBIDDEN.search(statement)] == []
    assert user_shop.said() or user_shop.name == "firebird"


def open_one(
    user_shop: Shop, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str = "rust"
) -> Opened:
    """Open a session that runs this text. Both arms must do operations without an error, and no schema may exist."""
    for name, value in user_shop.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "own.sql").write_text(text)
    session = opened(user_shop.cell(tmp_path / "own.sql", client.replace("rust", "")), tmp_path)
    assert not session.schemas
    for answer in session.slices.values():
        assert (answer.errors, answer.first_error) == (0, "")
        assert answer.operations > 0
    return session


VOLATILE = {
    "postgresql": f"{ID}SELECT id, now(), pg_backend_pid(), random() {FROM_ORDERS}",
    "mysql": f"{ID}SELECT id, sysdate(6), uuid(), connection_id() {FROM_ORDERS}",
    "mariadb": f"{ID}SELECT id, sysdate(6), uuid(), connection_id() {FROM_ORDERS}",
    "firebird": f"{ID}SELECT id, gen_uuid(), current_connection, rand() {FROM_ORDERS}",
}


@pytest.mark.parametrize("client", ["rust", "jdbc"])
def test_values_that_differ_from_call_to_call_are_measured_and_named(
    user_shop: Shop, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_one(user_shop, VOLATILE[user_shop.name], tmp_path, monkeypatch, client)
    assert not session.verdict.differs
    assert len(session.verdict.varies) == 3
    assert not any(column.lower().startswith("id ") for column in session.verdict.varies)
    assert ", ".join(session.verdict.varies) in session.verdict.note


DIFFERENT = {
    "postgresql": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();",
    "mysql": "SELECT variable_value FROM performance_schema.session_status WHERE variable_name = 'Ssl_version';",
    "mariadb": "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_version';",
    "firebird": "SELECT mon$wire_crypt_plugin FROM mon$attachments WHERE mon$attachment_id = current_connection;",
}


@pytest.mark.parametrize("beside", ["", "now"])
def test_an_arm_that_agrees_with_itself_and_not_with_the_other_is_refused(
    user_shop: Shop, beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DIFFERENT[user_shop.name] + (f"\n{VOLATILE[user_shop.name]}" if beside else "")
    session = open_one(user_shop, text, tmp_path, monkeypatch)
    assert session.verdict.differs
    assert not session.verdict.note


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
    user_shop: Shop, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in WRITTEN[user_shop.name]:
        session = open_one(user_shop, text, tmp_path, monkeypatch, client)
        assert (session.verdict.differs, session.verdict.varies) == ("", ()), text


def test_a_table_that_may_be_written_is_written_by_both_arms(
    user_shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\\set id random(1, 100)\nUPDATE counters SET hits = hits + 1 WHERE id = :id;"
    session = open_one(user_shop, text, tmp_path, monkeypatch)
    table = "shop.counters" if user_shop.name in ("mysql", "mariadb") else "counters"
    hits = user_shop.server.ask(
        f"SELECT CAST(SUM(hits) AS INTEGER) FROM {table}".replace("INTEGER", "SIGNED" if "shop" in table else "INTEGER")
    )
    assert int(str(hits[0][0])) >= sum(answer.operations for answer in session.slices.values())


def test_connecting_needs_no_right_and_creates_nothing(
    user_shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in user_shop.environment.items():
        monkeypatch.setenv(name, value)
    session = opened(structs.replace(user_shop.cell(tmp_path), sql="", workload="connect"), tmp_path)
    assert (session.verdict.differs, session.schemas) == ("", {})


@pytest.mark.parametrize("user_shop", ["mysql", "mariadb"], indirect=True)
def test_a_url_without_a_database_reaches_qualified_names(
    user_shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", user_shop.environment["MYSQL_PWD"])
    (tmp_path / "own.sql").write_text(f"{ID}SELECT note FROM shop.orders WHERE id = :id")
    session = opened(
        structs.replace(user_shop.cell(tmp_path / "own.sql"), url=user_shop.url.removesuffix("shop")), tmp_path
    )
    assert (session.verdict.differs, session.schemas) == ("", {})


def test_a_key_value_store_runs_the_users_own_commands(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("valkey")
    (tmp_path / "own.kv").write_text("\\set id random(1, 9)\nSET 'user::id:name' \"Ada L.\"\nGET user::id:name\n")
    session = opened(CellSpec("valkey", "tls", sql=str(tmp_path / "own.kv"), clients=2), tmp_path)
    for answer in session.slices.values():
        assert (answer.errors, answer.rows) == (0, 2 * answer.operations)
