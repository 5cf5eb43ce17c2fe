"""secret_sql: macros for secrets expand to one arm's SQL; all other text stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import own_scripts, secret_sql, workloads
from ciphercost.load.codec import Codec
from ciphercost.load.workloads import has_secrets, prepare, read
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import ARMS


class Loud(Codec):
    """A codec that returns its arguments as text."""

    def column(self, length: int) -> str:
        return f"COLUMN[{length}]"

    def seal(self, value: str, length: int) -> str:
        return f"SEAL[{value}|{length}]"

    def open(self, column: str, length: int) -> str:
        return f"OPEN[{column}|{length}]"


@pytest.mark.parametrize(
    ("text", "clear", "sealed"),
    [
        ("name secret(60) NOT NULL", "name varchar(60) NOT NULL", "name COLUMN[60] NOT NULL"),
        ("VALUES (sealed(:name, 60))", "VALUES (:name)", "VALUES (SEAL[:name|60])"),
        ("SELECT opened(s.name, 60) FROM s", "SELECT s.name FROM s", "SELECT OPEN[s.name|60] FROM s"),
        ("WHERE matches(name, :name, 40)", "WHERE name = :name", "WHERE OPEN[name|40] = :name"),
        ("SEALED ( 'a' , 5 )", "'a'", "SEAL['a'|5]"),
        ("sealed('a, (b) it''s', 20)", "'a, (b) it''s'", "SEAL['a, (b) it''s'|20]"),
        ("sealed(concat('a', f(1, 2)), 9)", "concat('a', f(1, 2))", "SEAL[concat('a', f(1, 2))|9]"),
        ("sealed(opened(a, 5) || 'x', 6)", "a || 'x'", "SEAL[OPEN[a|5] || 'x'|6]"),
        ("sealed(a, 1), sealed(b, 2)", "a, b", "SEAL[a|1], SEAL[b|2]"),
        (
            "sealed(CASE WHEN id > 0 THEN 'x' END, 40)",
            "CASE WHEN id > 0 THEN 'x' END",
            "SEAL[CASE WHEN id > 0 THEN 'x' END|40]",
        ),
        ("sealed(/* a, b) */ x, 3)", "/* a, b) */ x", "SEAL[/* a, b) */ x|3]"),
    ],
)
def test_each_word_becomes_what_the_arm_has(text: str, clear: str, sealed: str) -> None:
    assert secret_sql.used(text)
    assert secret_sql.expand(text) == clear
    assert secret_sql.expand(text, Loud()) == sealed


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'sealed(a, 1)' FROM t",
        'SELECT "opened(a, 1)" FROM t',
        "SELECT 1 -- sealed(a, 1)",
        "SELECT /* secret(5) */ 1",
        "SELECT unsealed(a, 1), sealed_at, secret FROM t",
        "INSERT INTO sealed VALUES (1)",
        "SELECT a - -1, b / 2, (c, d) FROM t",
        "",
    ],
)
def test_what_is_no_macro_is_left_alone(text: str) -> None:
    assert not secret_sql.used(text)
    assert secret_sql.expand(text, Loud()) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sealed(a, 1", "is not closed"),
        ("sealed(a)", r"write sealed\(EXPRESSION, LENGTH\), got sealed\(a\)"),
        ("sealed(a, b)", "write sealed"),
        ("secret(x)", r"write secret\(LENGTH\)"),
        ("secret()", r"write secret\(LENGTH\)"),
        ("matches(a, 5)", r"write matches\(COLUMN, EXPRESSION, LENGTH\)"),
        ("opened(, 5)", "write opened"),
    ],
)
def test_what_is_wrongly_written_is_said_with_its_form(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        secret_sql.expand(text, where="workload x, load")
    assert str(error.value).startswith("workload x, load")


SQL = st.text(alphabet="abc '\"(),-*/\n0123:;|", max_size=60)


@given(SQL)
def test_text_without_macros_never_changes(text: str) -> None:
    assert secret_sql.expand(text, Loud()) == text


@given(st.text(alphabet="ab 1+|.", min_size=1, max_size=20).filter(str.strip), st.integers(1, 500))
def test_a_value_comes_out_as_it_went_in(value: str, length: int) -> None:
    assert secret_sql.expand(f"x sealed({value}, {length}) y", Loud()) == f"x SEAL[{value.strip()}|{length}] y"


def test_a_workload_with_secrets_has_one_script_an_arm_and_others_have_one_for_both() -> None:
    program = prepare(workloads.get("search"), "postgresql", {}, codec=Loud())
    assert {statement.arm for _, _, script in program.transactions for statement in script.statements} == set(ARMS)
    assert "OPEN[" in program.tables("encrypted").check
    assert "OPEN[" not in program.tables("plain").check
    assert "COLUMN[40]" in next(iter(program.tables("encrypted").load)).sql
    plain = prepare(workloads.get("point-select"), "postgresql", {}, codec=Loud())
    assert {statement.arm for _, _, script in plain.transactions for statement in script.statements} == {""}


def test_secrets_are_found_wherever_a_workload_has_them() -> None:
    script = '[[transaction]]\nname = "a"\nscript = "SELECT 1"\n'
    head = 'title = "t"\nmeasures = "m"\n'
    assert not has_secrets(read(head + script, "x"))
    assert has_secrets(read(head + 'load = "CREATE TABLE t (a secret(5))"\n' + script, "x"))
    assert has_secrets(read(head + script + '[dialect.mysql]\na = "SELECT opened(a, 5)"\n', "x"))
    assert {name for name in workloads.names() if has_secrets(workloads.get(name))} >= {"search", "sort"}


def test_a_function_of_the_users_own_is_no_macro(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "own.sql"
    file.write_text("SELECT sealed(1), matches(a, b)")
    program = prepare(own_scripts.workload([str(file)], [], tables=False), "postgresql", {}, codec=Loud())
    assert program.transactions[0][2].statements[0].sql == "SELECT sealed(1), matches(a, b)"


def test_a_workload_tells_the_values_of_its_average_operation() -> None:
    head = 'title = "t"\nmeasures = "m"\nparameters = { rows = 10 }\n'
    one = '[[transaction]]\nname = "a"\nscript = "SELECT 1"\nweight = 3\nvalues = { sealed = "2" }\n'
    other = '[[transaction]]\nname = "b"\nscript = "SELECT 2"\n'
    told = 'values = { opened = "2 * :rows" }\n'
    assert prepare(read(head + one + other + told, "x"), "postgresql", {}).values == {"sealed": 1.5, "opened": 5.0}
    assert prepare(read(head + one + other, "x"), "postgresql", {}).values == {}, "one transaction does not tell"
    assert prepare(workloads.get("sort"), "postgresql", {}, rows=70).values == {"opened": 70.0}


@pytest.mark.parametrize("name", ["secret-insert", "secret-read", "search"])
def test_what_a_workload_tells_of_its_values_is_what_its_statements_do(name: str) -> None:
    workload = workloads.get(name)
    (transaction,) = workload.transaction
    for dialect in ("postgresql", "mysql", "sqlite", "firebird", "h2"):
        text = secret_sql.expand(
            str(workload.dialect.get(dialect, {}).get(transaction.name, transaction.script)), Loud()
        )
        ((told, count),) = prepare(workload, dialect, {}).values.items()
        assert count == text.count({"sealed": "SEAL["}.get(told, "OPEN[")) == 1, dialect
