"""pgbench's script language: expressions, meta commands, and the steps that an agent gets of them."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import agent_messages, script
from ciphercost.load.pgbench import evaluate, parser, reader
from ciphercost.load.pgbench.expression import Call, Constant, Name, Node, Value, printed, with_prefix
from ciphercost.load.pgbench.source import Source
from ciphercost.load.program import Program, default_seed
from ciphercost.load.script_parts import FlowStep, Script, Statement
from ciphercost.model.errors import UsageError

OTHER = {
    "=": 5,
    "<>": 5,
    "<": 5,
    "<=": 5,
    "|": 6,
    "#": 6,
    "&": 6,
    "<<": 6,
    ">>": 6,
    "+": 7,
    "-": 7,
    "*": 8,
    "/": 8,
    "%": 8,
}


def prefix(text: str) -> str:
    return printed(parser.parse(Source("here", text), 0)[0])


def steps(text: str, dialect: str = "postgresql", *, simple: bool = False) -> list[str]:
    """The flow of a script, a word or a statement each."""
    parsed = script.parse(text, {}, "my.sql", dialect=dialect, simple=simple)
    return [
        item.sql if isinstance(item, Statement) else " ".join(filter(None, (item.do, item.variable, item.expression)))
        for item in parsed.flow
    ]


# ── expressions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":a * 2 + greatest(:a, 3) % 7", "(+ (* :a 2) (% (greatest :a 3) 7))"),
        ("1 - 2 - 3", "(- (- 1 2) 3)"),
        ("- :a % 3", "(% (- 0 :a) 3)"),
        ("- 9223372036854775808", "-9223372036854775808"),
        ("~ 1 | 2 + 3", "(| (# -1 1) (+ 2 3))"),
        ("~ 1 + 2", "(# -1 (+ 1 2))"),
        ("NOT 1 = 2 AND true", "(and (not (= 1 2)) true)"),
        ("1 > 2 or 3 >= 4", "(or (< 2 1) (<= 4 3))"),
        ("1 != 2", "(<> 1 2)"),
        ("1 < 2 is not true", "(not (is (< 1 2) true))"),
        ("1 isnull is false", "(is (is 1 null) false)"),
        ("1 notnull", "(not (is 1 null))"),
        ("case when :a > 2 then 1 end", "(case (< 2 :a) 1 null)"),
        ("CASE WHEN 1 THEN 2 when 3 then 4 ELSE 5 END", "(case 1 2 3 4 5)"),
        ("1.5e3 + .5 + 2.", "(+ (+ 1500.0 0.5) 2.0)"),
        ("1e30", "1e+30"),
        ("hash(:a) & 1023", "(& (hash_murmur2 :a :default_seed) 1023)"),
        ("hash_fnv1a(1, 5)", "(hash_fnv1a 1 5)"),
        ("permute(:a, 10)", "(permute :a 10 :default_seed)"),
        ("power(2, PI())", "(pow 2 (pi))"),
        ("random_gaussian(1, 1000, 2.5)", "(random_gaussian 1 1000 2.5)"),
        ("1 + \\\n 2", "(+ 1 2)"),
        (":ä_1", ":ä_1"),
    ],
)
def test_an_expression_in_prefix_form(text: str, expected: str) -> None:
    assert prefix(text) == expected


NODES: st.SearchStrategy[Node] = st.recursive(
    st.one_of(
        st.builds(Constant, st.one_of(st.integers(0, 2**63 - 1), st.booleans(), st.none())),
        st.builds(Constant, st.floats(0, allow_infinity=False, allow_nan=False)),
        st.builds(Name, st.sampled_from(["a", "b_1", "ü"])),
    ),
    lambda inner: st.one_of(
        st.builds(Call, st.sampled_from([*OTHER, "and", "or"]), st.tuples(inner, inner)),
        st.builds(Call, st.just("not"), st.tuples(inner)),
        st.builds(Call, st.just("is"), st.tuples(inner, st.sampled_from([Constant(None), Constant(True)]))),
        st.builds(Call, st.just("case"), st.tuples(inner, inner, inner)),
        st.builds(Call, st.sampled_from(["least", "greatest"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Call, st.sampled_from(["mod", "random", "pow"]), st.tuples(inner, inner)),
    ),
    max_leaves=12,
)


def infix(node: Node, least: int = 0) -> str:
    """The text of an expression with the parentheses that it needs, and no others."""
    match node:
        case Call(operation="not", operands=(only,)):
            return _enclosed(f"not {infix(only, 3)}", least > 3)
        case Call(operation="is", operands=(left, right)):
            return _enclosed(f"{infix(left, 4)} is {printed(right)}", least > 4)
        case Call(operation="case", operands=(condition, value, otherwise)):
            return f"case when {infix(condition)} then {infix(value)} else {infix(otherwise)} end"
        case Call(operation="and" | "or" as operation, operands=(left, right)):
            precedence = {"or": 1, "and": 2}[operation]
            return _enclosed(
                f"{infix(left, precedence)} {operation} {infix(right, precedence + 1)}", least > precedence
            )
        case Call(operation=operation, operands=(left, right)) if operation in OTHER:
            precedence = OTHER[operation]
            left_least = precedence + (precedence == 5)  # comparisons don't chain
            text = f"{infix(left, left_least)} {operation} {infix(right, precedence + 1)}"
            return _enclosed(text, least > precedence)
        case Call(operation=operation, operands=operands):
            return f"{operation}({', '.join(map(infix, operands))})"
    return printed(node)


def _enclosed(text: str, wanted: bool) -> str:
    return f"({text})" if wanted else text


@given(NODES)
def test_an_expression_written_out_is_read_as_it_was(node: Node) -> None:
    assert prefix(infix(node)) == printed(node)


@given(st.text(st.sampled_from("abc:1 2.+-*/%<>=!|&#~(),isnotandcasewhenend\\\n'\";é"), max_size=60))
def test_any_text_is_an_expression_or_refused_with_its_place(text: str) -> None:
    try:
        node, end = parser.parse(Source("here", text), 0)
    except UsageError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert re.match(r"here, line \d+, column \d+: ", refused)
        return
    assert end == len(text) or text[end] == "\n"
    assert with_prefix(printed(node), "t0.").count(":t0.") == printed(node).count(":")


@pytest.mark.parametrize(
    "text", ["(" * 3000 + "1" + ")" * 3000, "1" + "+1" * 3000, "-" * 3000 + "1", "not " * 3000 + "1"]
)
def test_a_bottomless_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="operators within one another"):
        prefix(text)


# ── what is wrong, and where ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("\\set a 1 +\nSELECT 1;", 1, 11, "unexpected the end of the line"),
        ("SELECT 1;\n\\set a 1 -- why\n", 2, 13, "a variable is written :why"),
        ("\\set a 1;\nSELECT 1;", 1, 9, "unexpected character ';'"),
        ("\\set a 1 = 2 = 3\nSELECT 1;", 1, 14, "don't chain"),
        ("\\set a greatst(1)\nSELECT 1;", 1, 8, "did you mean 'greatest'"),
        ("\\set a 1 + \\\n  abs(1, 2)\nSELECT 1;", 2, 3, "abs takes (number), got 2"),
        ("\\set a 2\n\\set b :a / 0\nSELECT 1;", 2, 11, "division by zero"),
        ("\\set a random(1, 2)\n\\set b :a * 2 + 5 % 0\nSELECT 1;", 2, 19, "division by zero"),
        ("\\set a 9223372036854775807 + 1\nSELECT 1;", 1, 28, "does not fit"),
        ("\\set a 9223372036854775808\nSELECT 1;", 1, 8, "above the greatest integer"),
        ("\\set a 1\n\\set b :aa + 1\nSELECT 1;", 2, 8, "did you mean 'a'"),
        ("\\set b :a\n\\set a 1\nSELECT 1;", 1, 8, "set only below"),
        ("\\set a permute(1, 0)\nSELECT 1;", 1, 8, "above 0"),
        ("\\set a random_gaussian(1, 9, 1.5)\nSELECT 1;", 1, 8, "at least 2"),
        ("\\set a not 1\nSELECT 1;", 1, 8, "TRUE and FALSE"),
        ("\\if 1\nSELECT 1;", 1, 1, "\\if has no \\endif"),
        ("SELECT 1;\n\\else\n", 2, 1, "\\else without \\if"),
        ("\\if 1\n\\else\nSELECT 1;\n  \\elif 2\n\\endif", 4, 3, "\\elif after \\else"),
        ("\\if 1\nSELECT 1;\n\\endif x", 3, 8, "unexpected 'x'"),
        ("\\if\nSELECT 1;\n\\endif", 1, 1, "write '\\if EXPRESSION'"),
        ("\\sleep\nSELECT 1;", 1, 1, "\\sleep NUMBER"),
        ("\\sleep 2 min\nSELECT 1;", 1, 10, "write us, ms or s"),
        ("\\sleep x\nSELECT 1;", 1, 8, "not a time"),
        ("\\sleep -2ms\nSELECT 1;", 1, 8, "below 0"),
        ("\\gset\nSELECT 1;", 1, 1, "must follow a statement"),
        ("SELECT 1 AS a \\gset\n\\gset b\n", 2, 1, "must follow a statement"),
        ("SELECT 1 AS a \\gset 1x\n", 1, 21, "can't begin the name"),
        ("\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline", 2, 15, "can't stand in a pipeline"),
        ("\\startpipeline\nSELECT 1;", 1, 1, "has no \\endpipeline"),
        ("\\startpipeline\n\\startpipeline\nSELECT 1;", 2, 1, "before its \\endpipeline"),
        ("SELECT 1;\n\\syncpipeline", 2, 1, "without \\startpipeline"),
        ("\\endpipline\nSELECT 1;", 1, 1, "did you mean 'endpipeline'"),
        ("\\setshell a date\nSELECT 1;", 1, 1, "a command of the shell"),
        ("\\if 1\n\\set a sequence(1)\n\\endif\nSELECT :a;", 2, 1, "outside of \\if"),
        ("\\set a each(1, 5)\n\\sleep 1 ms\nSELECT :a;", 1, 1, "each(…) makes loops"),
        ("\\set a sequence(1) + 1\nSELECT :a;", 1, 8, "must be the whole expression"),
    ],
)
def test_an_error_names_its_line_and_column(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"my.sql, line {line}, column {column}: ")) as caught:
        script.parse(text, {}, "my.sql", dialect="postgresql")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT :a;\n\\set a 1\n\\set a 2", "line 1, column 8: ':a' is set only below"),
        ("\\if 1\n\\endif\n\nSELECT\n :b;", "line 5, column 2: ':b' is not set"),
        ("SELECT 1 AS top \\gset o_\nSELECT :p_top;", "line 2, column 8: ':p_top' is not set"),
        ("SELECT 1 \\; SELECT 2;", "line 1, column 11: '\\;' joins statements"),
    ],
)
def test_a_statement_s_error_names_its_place(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        script.parse(text, {}, "my.sql", dialect="postgresql")


def test_what_may_never_run_is_no_certain_error() -> None:
    assert steps(
        "\\set a case when :client_id > 5 then 1 / 0 else 2 end\n\\if false\n\\set b 1 / 0\n\\endif\nSELECT :a;"
    )


# ── scripts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_that_only_draws_needs_no_steps() -> None:
    parsed = script.parse("\\set n 10\n\\set a random(1, :n * 2)\n\\set b :n - 1\nSELECT :a, :b;", {})
    assert not parsed.computes
    assert [(variable.kind, variable.high, variable.value) for variable in parsed.variables] == [
        ("constant", None, "10"),
        ("uniform", 20, None),
        ("constant", None, "9"),
    ]


def test_branches_and_waits_stand_between_the_statements() -> None:
    text = "\\set n random(1, 10)\n\\if :n > 5\nSELECT 1;\n\\elif :n > 2\n\\sleep :n ms\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n"
    assert steps(text) == [
        "set n (random 1 10)",
        "if (< 5 :n)",
        "SELECT 1",
        "elif (< 2 :n)",
        "sleep (* :n 1000)",
        "SELECT 2",
        "else",
        "SELECT 3",
        "endif",
    ]
    parsed = script.parse(text, {})
    assert parsed.decides
    assert [statement.sql for statement in parsed.statements] == ["SELECT 1", "SELECT 2", "SELECT 3"]


def test_results_become_variables_that_later_commands_use() -> None:
    parsed = script.parse(
        "SELECT max(id) AS top FROM orders \\gset o_\n\\set half :o_top / 2\nSELECT ':o_top', :half \\aset\nSELECT :last_name;",
        {},
        dialect="postgresql",
    )
    first, second, third = parsed.statements
    assert [(one.into, one.every) for one in (first, second, third)] == [("o_", False), ("", True), (None, False)]
    assert second.parameters == ("o_top", "half")
    assert {variable.name for variable in parsed.variables} == {"o_top", "half", "last_name"}
    assert {variable.kind for variable in parsed.variables} == {"computed"}


def test_a_result_s_statement_may_end_before_its_command() -> None:
    parsed = script.parse("SELECT 1 AS a;\n\\GSET x_\nSELECT :x_a;", {}, dialect="postgresql")
    assert [statement.into for statement in parsed.statements] == ["x_", None]


def test_a_backslash_ends_a_statement_and_no_string() -> None:
    text = "SELECT E'\\\\set', $$\n\\if\n$$ -- \\else\n, 1 \\sleep 1 us\nSELECT 2"
    assert steps(text) == ["SELECT E'\\\\set', $$\n\\if\n$$ -- \\else\n, 1", "sleep 1", "SELECT 2"]


def test_commands_continue_behind_a_backslash() -> None:
    assert steps("\\set a :client_id + \\\n 1\n\\sleep \\\n 3 \\\n us\nSELECT :a;") == [
        "set a (+ :client_id 1)",
        "sleep 3",
        "SELECT $1",
    ]


def test_statements_may_be_joined_where_they_travel_as_text() -> None:
    parsed = script.parse("SELECT 1 \\; SELECT 2;\nSELECT 3;", {}, dialect="postgresql", simple=True)
    assert [statement.sql for statement in parsed.statements] == ["SELECT 1 ; SELECT 2", "SELECT 3"]


@pytest.mark.parametrize("dialect", ["mysql", "sqlite", "firebird", "duckdb", "h2"])
def test_only_postgresql_has_pipelines(dialect: str) -> None:
    with pytest.raises(UsageError, match="only PostgreSQL has pipelines"):
        steps("\\startpipeline\nSELECT 1;\n\\endpipeline", dialect)
    assert steps("\\if 1\nSELECT 1;\n\\endif", dialect)


def test_pipelines_need_more_than_text() -> None:
    text = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline"
    assert steps(text) == ["startpipeline", "SELECT 1", "syncpipeline", "SELECT 2", "endpipeline"]
    with pytest.raises(UsageError, match="have no pipelines"):
        steps(text, simple=True)


def test_defined_variables_are_values_until_a_script_sets_them() -> None:
    known = {"tab": "orders", "n": "5", "on": "true"}
    parsed = script.parse("\\if :on\nSELECT :n, ':tab' FROM :tab_x;\n\\endif", known | {"tab_x": "orders_x"})
    assert parsed.statements[0].sql.split() == [
        "SELECT",
        "5,",
        "'orders'",
        "FROM",
        "orders_x",
    ]
    assert parsed.flow[0] == FlowStep("if", expression="true")
    changed = script.parse("\\set n :n + 1\n\\set n :n + 1\nSELECT :n;", known)
    assert [item.expression for item in changed.flow if isinstance(item, FlowStep)] == ["5", "(+ :n 1)", "(+ :n 1)"]


def test_a_defined_text_is_no_number() -> None:
    with pytest.raises(UsageError, match=r"line 1, column 8: ':tab' is not a number"):
        script.parse("\\set n :tab + 1\nSELECT :n;", {"tab": "orders"}, "my.sql")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-7", -7),
        ("2.50", 2.5),
        ("1e3", 1000.0),
        ("NULL", None),
        ("t", True),
        ("On", True),
        ("ye", True),
        ("of", False),
    ],
)
def test_texts_of_variables_have_the_values_that_pgbench_gives_them(text: str, value: Value) -> None:
    assert (evaluate.value_of(text), type(evaluate.value_of(text))) == (value, type(value))


@pytest.mark.parametrize("text", [" ", "orders", "1_000", "0x10", "1e999", "9223372036854775808", "nan"])
def test_other_texts_have_none(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        evaluate.value_of(text)


# ── what an agent gets ────────────────────────────────────────────────────────────────────────────────────────────────


def program(*scripts: Script) -> Program:
    return Program(
        name="own",
        load=(),
        check="",
        transactions=tuple((f"s{number}", 1, parsed) for number, parsed in enumerate(scripts)),
        read_only=True,
        per_request=False,
        clients=1,
        parameters={},
    )


def test_messages_come_in_the_order_of_the_script() -> None:
    text = "SELECT 1 AS top \\gset o_\n\\if :o_top > hash(:client_id)\nSELECT :o_top;\n\\endif"
    messages = list(agent_messages.program_messages(program(script.parse(text, {}), script.parse("SELECT 1", {}))))
    lines = [agent_messages.line(message).decode().strip() for message in messages]
    assert '{"type":"variable","name":"t0.o_top","kind":"computed"}' in lines
    assert '{"type":"variable","name":"t0.client_id","kind":"client"}' in lines
    assert lines[4:9] == [
        '{"type":"transaction","name":"t0","weight":1}',
        '{"type":"statement","transaction":"t0","sql":"SELECT 1 AS top","parameters":"","into":"t0.o_"}',
        '{"type":"step","transaction":"t0","do":"if","expression":"(< (hash_murmur2 :t0.client_id :t0.default_seed) :t0.o_top)"}',
        '{"type":"statement","transaction":"t0","sql":"SELECT $1","parameters":"t0.o_top"}',
        '{"type":"step","transaction":"t0","do":"endif"}',
    ]


def test_seeds_are_the_run_s() -> None:
    parsed = script.parse("\\set a hash(1)\nSELECT :a, :random_seed;", {})
    values = [
        {variable.name: variable.value for variable in program(parsed).seeded(seed).transactions[0][2].variables}
        for seed in (5, 6)
    ]
    assert [value["random_seed"] for value in values] == ["5", "6"]
    assert [value["default_seed"] for value in values] == [str(default_seed(5)), str(default_seed(6))]
    assert len({default_seed(seed) for seed in range(100)}) == 100
    assert all(-(2**63) <= default_seed(seed) < 2**63 for seed in range(100))


def test_an_automatic_variable_may_be_set_to_something_else() -> None:
    parsed = script.parse("\\set client_id :client_id * 2\nSELECT :client_id;", {})
    kinds = {variable.name: variable.kind for variable in parsed.variables}
    assert kinds == {"client_id.automatic": "client", "client_id": "computed"}


def test_how_many_statements_run_is_counted_where_branches_decide() -> None:
    assert program(script.parse("\\sleep 1 ms\nSELECT 1;\nSELECT 2;", {})).statements == 2
    assert program(script.parse("\\if :client_id\nSELECT 1;\n\\endif\nSELECT 2;", {})).statements == 0


# ── any text ──────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = ["\\set a ", "\\if ", ":a", "1", " + ", "\n", ";", "SELECT ", "\\endif", "\\else", "\\gset ", "x_", "'", "$$", "--", "/*", "(",
         "\\sleep 1", "\\", "\\;", " ", "random(1, 2)", "sequence(1)", ":x_y", "\\startpipeline", "\\endpipeline"]  # fmt: skip


@given(
    st.lists(st.sampled_from(WORDS), max_size=25).map("".join), st.sampled_from(["postgresql", "mysql", "sqlite", ""])
)
def test_any_script_is_read_or_refused(text: str, dialect: str) -> None:
    try:
        parsed = script.parse(text, {"b": 1}, "here", dialect=dialect)
    except UsageError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert refused.startswith("here")
        return
    assert [item for item in parsed.flow if isinstance(item, Statement)] == list(
        parsed.statements if parsed.flow else ()
    )
    declared = {variable.name for variable in parsed.variables}
    assert declared.issuperset(itertools.chain.from_iterable(statement.parameters for statement in parsed.statements))
    for item in parsed.flow:
        if isinstance(item, FlowStep):
            assert declared.issuperset(re.findall(r":([\w.]+)", item.expression))


@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join))
def test_the_commands_of_a_script_have_their_places(text: str) -> None:
    try:
        commands = reader.read(Source("here", text), "postgresql")
    except UsageError:
        return
    for command in commands:
        if isinstance(command, reader.Meta):
            assert text[command.at] == "\\"
