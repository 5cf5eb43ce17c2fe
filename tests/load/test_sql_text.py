"""sql_text: what is a string, a name, a comment and the end of a statement, for each server."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import script, sql_text
from ciphercost.load.pgbench import reader
from ciphercost.load.pgbench.source import Source
from ciphercost.model.errors import UsageError

DIALECTS = ["", "postgresql", "mysql", "sqlite", "duckdb", "firebird", "h2"]


def statements(text: str, dialect: str) -> list[sql_text.Statement]:
    return [
        command.statement for command in reader.read(Source("here", text), dialect) if isinstance(command, reader.Sql)
    ]


LETTERS = st.text(st.sampled_from("'\"`$;:?-/*#\\\n ()[]{}aeEqQ1_:=BEGINCASEND é"), max_size=60)


@given(LETTERS, st.sampled_from(DIALECTS))
def test_tokens_of_any_text_are_the_text(text: str, dialect: str) -> None:
    try:
        tokens = list(sql_text.tokens(text, dialect, "here"))
    except UsageError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert re.match(r"here, line \d+, column \d+: .* not closed$", refused, re.DOTALL)
        return
    assert "".join(token.text for token in tokens) == text


@given(LETTERS, st.sampled_from(DIALECTS))
def test_any_text_is_parsed_or_refused(text: str, dialect: str) -> None:
    try:
        parsed = script.parse(f"\\set a random(1, 2)\nSELECT :a {text}", {}, dialect=dialect)
    except UsageError:
        return
    assert all(statement.sql for statement in parsed.statements)
    assert isinstance(parsed.read_only, bool)


ATOMS: dict[str, list[str]] = {
    "": ["'it''s;'", '"a;b"', "/* ; ' */", "-- ; '\n", "1", ":a", "x"],
    "postgresql": [
        "E'it\\'s;\\\\'",
        "$$;'$$",
        "$t$ ; $$ $u$ $t$",
        "/* /* ; */ ' */",
        "(;)",
        "doc ? 'b'",
        "n::text",
        "a$b$c",
    ],
    "mysql": ["'it\\'s;'", '"two\\";"', "`a;``b`", "# ; '\n", "-- ; '\n", "5--1", "@x := 1"],
    "sqlite": ["`a;b`", "[a;b]"],
    "duckdb": ["E'\\';'", "$$;$$"],
    "firebird": ["q'{it's;}'", "Q'!;'!'", "mon$a"],
    "h2": ["$$;'$$", "/* /* ; */ ' */"],
}


@given(st.data(), st.sampled_from(DIALECTS))
def test_statements_are_split_only_between_them(data: st.DataObject, dialect: str) -> None:
    common = ["'it''s;'", '"a;b"', "/* ; ' */", "1", "x"]
    atom = st.sampled_from(common + ATOMS[dialect])
    written = data.draw(st.lists(st.lists(atom, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=4))
    texts = [f"SELECT {expression}" for expression in written]
    split = statements(" ;\n".join(texts) + data.draw(st.sampled_from(["", ";", ";\n", "; -- ; end"])), dialect)
    assert [statement.sql for statement in split] == [text.strip() for text in texts]


@pytest.mark.parametrize(
    ("dialect", "text", "count"),
    [
        ("postgresql", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; SELECT 1", 2),
        ("postgresql", "BEGIN; SELECT CASE WHEN true THEN 1 END; END;", 3),
        ("postgresql", "CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2); SELECT 1;", 2),
        ("postgresql", "DO $$ BEGIN PERFORM 1; PERFORM 2; END $$;\nSELECT $q$it's; fine$q$;", 2),
        ("mysql", "CREATE PROCEDURE p() BEGIN IF 1 THEN SELECT 1; END IF; CASE 1 WHEN 1 THEN SELECT 2; END CASE; END; SELECT 1", 2),
        ("mysql", "BEGIN; SELECT 1; COMMIT", 3),
        ("mysql", "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END; SELECT 3", 2),
        ("mysql", "/*! SELECT 1 ; */; SELECT 2", 2),
        ("firebird", "EXECUTE BLOCK AS BEGIN IF (1 = 1) THEN BEGIN EXIT; END END; SELECT 1 FROM t", 2),
        ("sqlite", "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END; SELECT 3;", 2),
        ("", "; ; -- nothing ;\n /* ; */ ;", 0),
    ],
)  # fmt: skip
def test_statements_with_statements_in_them(dialect: str, text: str, count: int) -> None:
    assert len(statements(text, dialect)) == count


@pytest.mark.parametrize(
    ("dialect", "text", "words"),
    [
        ("postgresql", "SELECT 1;\nSELECT 'open", "line 2, column 8: the string that begins with 'open is not closed"),
        ("postgresql", "SELECT $a$;$b$", "the dollar-quoted string that begins with $a$ is not closed"),
        ("postgresql", "SELECT /* /* */", "the comment that begins with /* is not closed"),
        ("postgresql", "SELECT (1;\nSELECT 2;", "line 1, column 1: a parenthesis of this statement is not closed"),
        ("mysql", "SELECT `a", "the name that begins with `a is not closed"),
        ("mysql", "SELECT 'a\\';", "is not closed"),
        ("mysql", "DELIMITER //\nSELECT 1 //", "DELIMITER is a command of MySQL's own client"),
        ("firebird", "SET TERM ^;\nSELECT 1 FROM t ^", "SET TERM is a command of Firebird's isql"),
        ("mysql", "CREATE PROCEDURE p() BEGIN SELECT 1;", "BEGIN of this statement is not closed"),
    ],
)
def test_what_is_never_closed_is_refused_with_its_place(dialect: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        statements(text, dialect)


# ── variables in strings ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("dialect", "text", "sql", "parameters"),
    [
        ("postgresql", "SELECT 'n :a', ':a'", "SELECT ('n ' || $1::text), $2", ("a", "a")),
        ("postgresql", "SELECT E'\\t:a!', :a", "SELECT (E'\\t' || $1::text || E'!'), $2", ("a", "a")),
        ("postgresql", "SELECT ':five', 'a::a', ':nobody', ':fives'", "SELECT '5', 'a::a', ':nobody', ':fives'", ()),
        ("postgresql", "SELECT 1 -- :a ':a'", "SELECT 1 -- :a ':a'", ()),
        (
            "postgresql",
            "SELECT doc ? 'x', '$1', $$:nobody $1$$ FROM t",
            "SELECT doc ? 'x', '$1', $$:nobody $1$$ FROM t",
            (),
        ),
        ("mysql", "SELECT 'n:a'", "SELECT CONCAT('n', $1)", ("a",)),
        ("sqlite", "SELECT ':a'", "SELECT (CAST($1 AS TEXT))", ("a",)),
        ("firebird", "SELECT 'n:a' FROM t", "SELECT ('n' || CAST($1 AS VARCHAR(1000))) FROM t", ("a",)),
    ],
)
def test_variables_in_strings_are_replaced_as_pgbench_does(
    dialect: str, text: str, sql: str, parameters: tuple[str, ...]
) -> None:
    parsed = script.parse(f"\\set a random(1, 2)\n{text}", {"five": 5}, dialect=dialect)
    assert (parsed.statements[0].sql, parsed.statements[0].parameters) == (sql, parameters)


@pytest.mark.parametrize(
    ("dialect", "text", "words"),
    [
        ("postgresql", 'SELECT * FROM "t_:a"', "':a' is in a quoted name"),
        ("postgresql", "DO $$ BEGIN PERFORM :a; END $$", "':a' is in this string"),
        ("postgresql", "SELECT interval ':a days'", "literal of type interval"),
        ("postgresql", "SELECT * FROM t_:a", "':a' continues the name t_"),
        ("mysql", "SELECT ?", "instead of '?'"),
        ("sqlite", "SELECT $1", "instead of '$1'"),
    ],
)
def test_a_variable_where_no_parameter_can_be_is_refused(dialect: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        script.parse(f"\\set a random(1, 2)\n{text}", {}, dialect=dialect)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT 'update' FROM t /* delete */", True),
        ('SELECT "a" FROM t', True),
        ("SELECT 1 FROM t FOR UPDATE", False),
        ("WITH a AS (INSERT INTO t VALUES (1) RETURNING 1) SELECT 1", False),
        ("SELECT 1 INTO t", False),
        ("DO $$ BEGIN PERFORM 1; END $$", False),
        ("CALL p()", False),
        ("SELECT $$delete$$", True),
    ],
)
def test_what_only_reads_is_told_by_its_words(text: str, reads: bool) -> None:
    assert script.parse(text, {}, dialect="postgresql").read_only is reads


@pytest.mark.parametrize("command", ["g", "G", "gx", "gexec"])
def test_a_client_s_command_behind_a_statement_is_named(command: str) -> None:
    text = f"SELECT max(id) AS top FROM orders \\{command}\nSELECT 1;"
    with pytest.raises(UsageError, match=rf"here, line 1, column 35: '\\{command}' is not a meta command of pgbench"):
        script.parse(text, {}, "here", dialect="postgresql")
