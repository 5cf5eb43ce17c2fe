"""Scripts that decide: both agents compute, draw, branch and try again alike. Rust on SQLite, Java on H2, and both on PostgreSQL."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from asking import ask
from ciphercost.estimate.histogram import quantiles
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import drivers, java
from ciphercost.model.connection import Connection, JdbcConnection, Pool
from ciphercost.model.errors import AgentError, CiphercostError
from ciphercost.model.histogram import decode
from ciphercost.model.secret import Secret, reveal
from conftest import Require, RequireServer
from test_vectors import VECTORS
from userservers import user_server

EXPRESSIONS = [
    tuple(line.split("\t"))
    for line in (VECTORS / "expressions.tsv").read_text().splitlines()
    if line and not line.startswith("#")
]
VALUES = [(expression, value) for expression, value in EXPRESSIONS if not value.startswith("!")]
ERRORS = [(expression, value.removeprefix("! ")) for expression, value in EXPRESSIONS if value.startswith("!")]
COMPUTED = {"kind": "computed"}
SLEEP_US = 60_000
Variables = Mapping[str, Mapping[str, Any]]
Part = Mapping[str, Any]


def step(do: str, expression: str | None = None, variable: str | None = None) -> Part:
    fields = {"type": "step", "do": do, "expression": expression, "variable": variable}
    return {name: value for name, value in fields.items() if value is not None}


def statement(sql: str, parameters: str = "", **more: Any) -> Part:
    return {"type": "statement", "sql": sql, "parameters": parameters, **more}


def script(agent: Agent, variables: Variables, *parts: Part, **settings: Any) -> None:
    ask(agent, {"type": "program", "name": "test", **settings})
    for name, fields in variables.items():
        ask(agent, {"type": "variable", "name": name, **fields})
    ask(agent, {"type": "transaction", "name": "only", "weight": 1})
    for part in parts:
        ask(agent, {**part, "transaction": "only"})


def operate(agent: Agent, operations: int, seed: int = 1, **more: Any) -> dict[str, Any]:
    """The answer to a slice, as it comes."""
    ask(agent, {"type": "slice", "arm": "plain", "seconds": 60, "operations": operations, "seed": seed, **more})
    answer: dict[str, Any] = json.loads(agent.line(60))
    return answer


def refused(agent: Agent) -> str:
    """The code with which a slice is refused."""
    with pytest.raises(AgentError) as caught:
        operate(agent, 1)
    return caught.value.code


@pytest.fixture(scope="module")
def command(require: Require) -> list[str]:
    try:
        drivers.find("", "h2").jars()
        return java.command()
    except CiphercostError as error:
        require(None, str(error))
        raise


@pytest.fixture(scope="module")
def java_agent(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with Agent(command, log=tmp_path_factory.mktemp("logs") / "agent.log", env=java.OTHERS) as agent:
        yield agent


def in_memory(**more: Any) -> JdbcConnection:
    """A database in the Java agent's memory, which ends with its one connection."""
    told = drivers.Address("jdbc:h2:mem:", {})
    return drivers.connection(drivers.find("", "h2"), told, "sa", Secret(""), more=more)  # type: ignore[arg-type]


@pytest.fixture
def h2(java_agent: Agent) -> Agent:
    """The Java agent, connected to an empty database in its memory."""
    java_agent.connect("plain", in_memory())
    java_agent.query("plain", "CREATE TABLE seen (number INTEGER, stored VARCHAR(99))")
    return java_agent


@pytest.fixture
def sqlite() -> Iterator[Agent]:
    with Agent() as agent:
        agent.connect("plain", Connection(driver="sqlite", path=":memory:"))
        agent.query("plain", "CREATE TABLE seen (number INTEGER, stored VARCHAR(99))")
        yield agent


@pytest.fixture(params=["rust", "java"])
def embedded(request: pytest.FixtureRequest) -> Agent:
    """Each agent with an empty database of its own."""
    agent: Agent = request.getfixturevalue("sqlite" if request.param == "rust" else "h2")
    return agent


def seen(agent: Agent) -> Sequence[Sequence[object]]:
    return agent.query("plain", "SELECT number, stored FROM seen ORDER BY number")


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────

DRAWN: Variables = {
    "u": {"kind": "uniform", "low": -5, "high": 10**12},
    "t": {"kind": "text", "length": 21},
    "n": {"kind": "sequence", "low": 1},
    "c": {"kind": "constant", "value": "7"},
}
WHOLE = (
    "(random 1 1000000)", "(random_zipfian 1 100000 1.1)", "(random_zipfian -9 5000 0.6)", "(random_exponential 1 1000000 2.5)",
    "(random_gaussian 1 1000000 2.5)", "(permute :n 1000 42)", "(permute :u 9223372036854775807 :n)", "(hash_murmur2 :u :n)",
    "(hash_fnv1a :u :c)", "(case (< (random 1 6) 3) (random 1 100) (< :n 200) :n 0)", "(% :u (+ :n 1))",
)  # fmt: skip
"""Expressions with the same value, bit for bit, in both agents."""
REAL = ("(exp (/ :n 100.0))", "(ln :n)", "(pow :n 1.3)", "(pow 1.0001 :n)", "(sqrt :n)", "(/ :u 3.0)")
"""Those that may differ in the last bit: Java's `exp`, `ln` and `pow` are not those of the C library."""


def test_both_agents_compute_and_draw_the_same(sqlite: Agent, h2: Agent) -> None:
    values = []
    for agent in (sqlite, h2):
        # Draws of variables come before those of expressions, whichever statement uses them.
        parts = [statement("INSERT INTO seen VALUES (0, $1)", "t")]
        for number, expression in enumerate((*WHOLE, *REAL), start=1):
            parts += [step("set", expression, "a"), statement(f"INSERT INTO seen VALUES ({number}, $1)", "a")]
        script(agent, {"a": COMPUTED, **DRAWN}, *parts)
        answer = operate(agent, 300, seed=2**63 + 11)
        assert (answer["operations"], answer["errors"], answer["retries"]) == (300, 0, 0), answer["first_error"]
        rows = agent.query("plain", "SELECT number, stored FROM seen ORDER BY _rowid_")
        whole = [row for row in rows if int(str(row[0])) <= len(WHOLE)]
        values.append((whole, [float(str(value)) for number, value in rows if int(str(number)) > len(WHOLE)]))
    (whole, real), (whole_of_java, real_of_java) = values
    assert len(whole) == 300 * (len(WHOLE) + 1)
    assert whole == whole_of_java
    assert len(real) == 300 * len(REAL)
    assert all(math.isclose(one, other, rel_tol=1e-14) for one, other in zip(real, real_of_java, strict=True))


def test_what_has_no_value_fails_with_the_same_words(embedded: Agent) -> None:
    for expression, text in ERRORS:
        script(embedded, {"a": COMPUTED}, step("set", expression, "a"), statement("SELECT 1"))
        answer = operate(embedded, 2)
        assert (answer["operations"], answer["errors"], answer["error_kinds"]) == (0, 2, "statement=2"), expression
        assert answer["first_error"] == f"statement: {text}", expression


def test_a_variable_has_no_value_of_the_operation_before(embedded: Agent) -> None:
    script(
        embedded, {"a": COMPUTED, "o_a": COMPUTED, "n": DRAWN["n"]},
        step("if", "(= :n 1)"), step("set", "5", "a"), step("endif"), statement("INSERT INTO seen VALUES ($1, $2)", "n a"),
    )  # fmt: skip
    answer = operate(embedded, 3)
    assert (answer["operations"], answer["errors"]) == (1, 2)
    assert answer["first_error"] == "statement: variable a has no value yet"
    assert seen(embedded) == [["1", "5"]]


def test_a_text_of_a_row_is_a_number_a_boolean_or_null_if_it_reads_like_one(embedded: Agent) -> None:
    rows = [("17", "(+ :a 1)", "18"), (" -5 ", "(+ :a 1)", "-4"), ("2.5", "(* :a 2)", "5"), ("OFF", "(case :a 1 2)", "2"),
            ("NULL", "(case (is :a null) 1 2)", "1"), ("1e2", "(int :a)", "100"), ("t", "(case :a 1 2)", "1")]  # fmt: skip
    for text, expression, value in rows:
        script(
            embedded, {"a": COMPUTED, "b": COMPUTED}, statement(f"SELECT '{text}' AS a", into=""),
            step("set", f"(int {expression})", "b"), statement("INSERT INTO seen VALUES (1, $1)", "b"),
        )  # fmt: skip
        assert operate(embedded, 1)["first_error"] == "", text
        assert seen(embedded) == [["1", value]], text
        embedded.query("plain", "DELETE FROM seen")
    script(embedded, {"a": COMPUTED, "b": COMPUTED}, statement("SELECT 'Ada' AS a", into=""), step("set", ":a", "b"))
    assert operate(embedded, 1)["first_error"] == "statement: variable a is no number, boolean or NULL"


# ── what runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_branches_rows_and_parameters(embedded: Agent) -> None:
    variables = dict.fromkeys(("a", "b", "o_highest", "none", "yes"), COMPUTED) | {"n": DRAWN["n"]}
    script(
        embedded, variables,
        step("set", "(+ (* :n 2) (% (greatest :n 3) 7))", "a"),
        step("set", "(/ :a 4.0)", "b"),
        step("set", "(+ null 1)", "none"),
        step("set", "(< 1 2)", "yes"),
        statement("SELECT coalesce(max(number), 0) AS highest, 'x' AS other FROM seen", into="o_"),
        step("if", "(= :o_highest 0)"), statement("INSERT INTO seen VALUES ($1, 'first')", "n"),
        step("elif", "(< :o_highest 2)"), statement("INSERT INTO seen VALUES ($1, $2)", "n b"), step("sleep", "(* 2 1000)"),
        step("elif", ":o_highest"), statement("INSERT INTO seen VALUES ($1, $2)", "n none"),
        step("else"), statement("DELETE FROM seen"),
        step("endif"),
        statement("SELECT 1 WHERE $1", "yes"),
    )  # fmt: skip
    answer = operate(embedded, 3, seed=7)
    assert (answer["operations"], answer["rows"], answer["retries"]) == (3, 6, 0), answer["first_error"]
    assert seen(embedded) == [["1", "first"], ["2", "1.75"], ["3", None]]


@pytest.mark.parametrize(
    ("sql", "every", "error", "value"),
    [
        ("SELECT 1 AS a WHERE 1 = 0", False, "expected one row, got 0", "9"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a", False, "expected one row, got 2", "9"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a", True, "", "2"),
        ("SELECT 1 AS a WHERE 1 = 0", True, "", "0"),
        ("SELECT 3 AS A", False, "", "3"),
    ],
)
def test_one_row_gives_values_or_the_last_of_them(
    embedded: Agent, sql: str, every: bool, error: str, value: str
) -> None:
    embedded.query("plain", "INSERT INTO seen VALUES (1, '9')")
    script(
        embedded, {"a": COMPUTED}, step("set", "0", "a"), statement(sql, into="", every=every),
        statement("UPDATE seen SET stored = $1", "a"),
    )  # fmt: skip
    assert operate(embedded, 1)["first_error"] == (f"statement: \\gset: {error}" if error else "")
    assert seen(embedded) == [["1", value]]


def test_a_failed_expression_rolls_back_what_was_begun(embedded: Agent) -> None:
    script(
        embedded, {"a": COMPUTED}, statement("BEGIN"), statement("INSERT INTO seen VALUES (9, 'never')"),
        step("set", "(/ 1 0)", "a"), statement("COMMIT"),
    )  # fmt: skip
    answer = operate(embedded, 2)
    assert (answer["operations"], answer["error_kinds"]) == (0, "statement=2")
    assert seen(embedded) == []


def test_time_asleep_is_no_latency(embedded: Agent) -> None:
    script(embedded, {}, step("sleep", str(SLEEP_US)), statement("SELECT 1"))
    answer = operate(embedded, 5)
    assert answer["seconds"] >= 5 * SLEEP_US / 1e6
    # If latency included it, every value would show it; a delayed machine affects only some.
    assert quantiles(decode(answer["histogram"]), [0.1])[0] < SLEEP_US * 1000 / 2


def test_a_step_of_the_other_arm_is_not_taken(embedded: Agent) -> None:
    script(
        embedded, {"a": COMPUTED},
        step("set", "1", "a"), {**step("set", "2", "a"), "arm": "encrypted"}, {**step("sleep", "(/ 1 0)"), "arm": "encrypted"},
        {**statement("SELECT nonsense FROM nowhere"), "arm": "encrypted"}, statement("INSERT INTO seen VALUES (1, $1)", "a"),
    )  # fmt: skip
    assert operate(embedded, 1)["errors"] == 0
    assert seen(embedded) == [["1", "1"]]


def test_what_an_agent_without_them_refuses(embedded: Agent) -> None:
    script(embedded, {}, statement("SELECT 1"))
    assert operate(embedded, 1)["operations"] == 1
    for mode in ("simple", "extended"):
        script(embedded, {}, statement("SELECT 1"), mode=mode)
        assert refused(embedded) == "statement"
    script(embedded, {}, step("startpipeline"), statement("SELECT 1"), step("syncpipeline"), step("endpipeline"))
    assert refused(embedded) == "statement"
    script(embedded, {}, step("sleep", "3600000001"), statement("SELECT 1"))
    assert operate(embedded, 1)["error_kinds"] == "statement=1"


# ── the Java agent ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_has_its_number(java_agent: Agent) -> None:
    told = msgspec.structs.replace(in_memory(connections=3), url="jdbc:h2:mem:clients;DB_CLOSE_DELAY=-1")
    java_agent.connect("plain", told)
    java_agent.query("plain", "CREATE TABLE seen (number INTEGER, stored VARCHAR(99))")
    script(java_agent, {"me": {"kind": "client"}}, statement("INSERT INTO seen VALUES ($1, 'x')", "me"))
    assert operate(java_agent, 9)["operations"] == 9
    assert seen(java_agent) == [[str(number), "x"] for number in (0, 0, 0, 1, 1, 1, 2, 2, 2)]


REFUSES = "SELECT CASE WHEN NEXT VALUE FOR tries % 3 <> 0 THEN SIGNAL('40001', 'try again') END"
"""Two of three runs fail with a serialization failure."""


@pytest.mark.parametrize("more", [{}, {"autocommit": False}, {"prepared": False}])
def test_an_operation_that_was_not_serialized_begins_again_with_the_same_values(
    java_agent: Agent, more: dict[str, Any]
) -> None:
    java_agent.connect("plain", in_memory(**more))
    java_agent.query("plain", "CREATE TABLE seen (number INTEGER, stored VARCHAR(99)); CREATE SEQUENCE tries")
    parts = (
        statement("BEGIN"), step("set", "(random 1 1000000)", "a"), statement("INSERT INTO seen VALUES ($1, $2)", "n a"),
        step("sleep", "1000"), statement(REFUSES), statement("COMMIT"),
    )  # fmt: skip
    variables = {"a": COMPUTED, "n": DRAWN["n"]}
    script(java_agent, variables, *parts, tries=3)
    answer = operate(java_agent, 4)
    assert (answer["operations"], answer["errors"], answer["retries"], answer["rows"]) == (4, 0, 8, 4)
    tried = seen(java_agent)
    assert [number for number, _ in tried] == ["1", "2", "3", "4"]
    java_agent.query("plain", "DELETE FROM seen")
    script(java_agent, variables, *(part for part in parts if part.get("sql") != REFUSES))
    assert operate(java_agent, 4)["retries"] == 0
    assert seen(java_agent) == tried
    script(java_agent, variables, *parts, tries=2)
    answer = operate(java_agent, 3)
    assert (answer["operations"], answer["retries"], answer["error_kinds"]) == (1, 2, "40001=2")


def test_an_operation_for_which_there_is_a_connection_begins_again_on_it(java_agent: Agent) -> None:
    told = msgspec.structs.replace(in_memory(per_request=True), url="jdbc:h2:mem:each;DB_CLOSE_DELAY=-1")
    java_agent.connect("plain", told)
    java_agent.query("plain", "CREATE SEQUENCE tries")
    script(java_agent, {}, statement(REFUSES), tries=3)
    answer = operate(java_agent, 2)
    assert (answer["operations"], answer["retries"], answer["connects"]) == (2, 4, 2)


def test_batches_have_no_steps_and_are_not_tried_again(java_agent: Agent) -> None:
    insert = statement("INSERT INTO seen VALUES (1, '1')")
    for settings, parts, more in (
        ({"how": "batch", "batch": 10}, (step("sleep", "1"), insert), {}),
        ({"how": "batch", "batch": 10}, ({**insert, "into": ""},), {}),
        ({"how": "batch", "batch": 10}, (insert,), {"tries": 2}),
        ({"autocommit": False, "commit_every": 2}, (insert,), {"tries": 2}),
    ):
        java_agent.connect("plain", in_memory(**settings))
        java_agent.query("plain", "CREATE TABLE seen (number INTEGER, stored VARCHAR(99))")
        script(java_agent, {}, *parts, **more)
        assert refused(java_agent) == "statement"
        script(java_agent, {}, insert, tries=1)
        assert operate(java_agent, 2)["operations"] == 2


def test_whoever_sleeps_has_not_lost_its_connection(h2: Agent) -> None:
    script(h2, {}, statement("SELECT 1"), step("sleep", "3500000"), statement("SELECT 1"))
    assert operate(h2, 1, timeout=2)["operations"] == 1


# ── PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────────────

FUNCTION = """CREATE FUNCTION refuse() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('tries') % 3 <> 0 THEN RAISE 'try again' USING ERRCODE = '40001'; END IF; RETURN 1; END $$"""


@pytest.fixture(scope="module")
def postgresql(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Pool]]:
    """How each agent connects to a server."""
    require_server("postgresql")
    with user_server("postgresql", tmp_path_factory.mktemp("server")) as server:
        fields = server.fields | {"connections": 1, "threads": 1}
        driver = drivers.find("", "postgresql")
        told = drivers.address(
            driver, drivers.Target("127.0.0.1", fields.port, str(fields.database)), drivers.TlsRequest()
        )
        password = Secret(reveal(fields.password)) if fields.password else None
        yield {"rust": fields, "java": drivers.connection(driver, told, str(fields.user), password)}


@pytest.fixture(params=["rust", "java"])
def networked(request: pytest.FixtureRequest, postgresql: Mapping[str, Pool]) -> Iterator[Agent]:
    agent: Agent = request.getfixturevalue("java_agent") if request.param == "java" else Agent()
    agent.connect("plain", postgresql[request.param])
    agent.query("plain", "DROP TABLE IF EXISTS seen; CREATE TABLE seen (number integer, stored text)")
    yield agent
    agent.disconnect("plain")
    if request.param == "rust":
        agent.close()


def test_values_are_those_of_pgbench(networked: Agent) -> None:
    parts = [
        part
        for number, (expression, _) in enumerate(VALUES)
        for part in (step("set", expression, "a"), statement(f"INSERT INTO seen VALUES ({number}, $1)", "a"))
    ]
    script(networked, {"a": COMPUTED}, *parts)
    assert operate(networked, 1)["first_error"] == ""
    values = ["NULL" if value is None else value for _, value in seen(networked)]
    assert dict(zip([expression for expression, _ in VALUES], values, strict=True)) == dict(VALUES)


def test_computed_values_have_the_type_of_their_column(networked: Agent) -> None:
    networked.query(
        "plain", "DROP TABLE IF EXISTS typed; CREATE TABLE typed (a numeric, b boolean, c double precision, d bigint)"
    )
    variables = dict.fromkeys("abcd", COMPUTED)
    sets = [
        step("set", expression, name)
        for name, expression in zip("abcd", ("0.1", "(= 1 1)", "(/ 1 3.0)", "null"), strict=True)
    ]
    script(networked, variables, *sets, statement("INSERT INTO typed VALUES ($1, $2, $3, $4)", "a b c d"))
    assert operate(networked, 1)["first_error"] == ""
    assert networked.query("plain", "SELECT * FROM typed") == [["0.1", "t", "0.333333333333333", None]]


def test_serialization_failures_are_tried_again(networked: Agent) -> None:
    networked.query(
        "plain", f"DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries; DROP FUNCTION IF EXISTS refuse(); {FUNCTION}"
    )
    parts = (
        statement("BEGIN"), step("set", "(random 1 1000000)", "a"), statement("INSERT INTO seen VALUES (1, $1)", "a"),
        statement("SELECT refuse()"), statement("END"),
    )  # fmt: skip
    script(networked, {"a": COMPUTED}, *parts, tries=3)
    answer = operate(networked, 4)
    assert (answer["operations"], answer["errors"], answer["retries"]) == (4, 0, 8)
    assert len(seen(networked)) == 4
    script(networked, {"a": COMPUTED}, *parts, tries=2)
    answer = operate(networked, 3)
    assert (answer["operations"], answer["retries"], answer["error_kinds"]) == (1, 2, "40001=2")
