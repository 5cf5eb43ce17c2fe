"""The types of messages are the agents' own, and a message on the wire is what PROTOCOL.md says."""

from __future__ import annotations

import json
import pickle
import re
import types
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import rust_structs
from ciphercost.load import agent_messages
from ciphercost.load.agent_messages import Answer
from ciphercost.load.request_message import Request
from ciphercost.load.script_parts import Variable
from ciphercost.model.connection import Changes, Connected, Connection, JdbcCalls, JdbcChanges, JdbcConnection, Pool
from ciphercost.model.secret import Secret
from ciphercost.model.slices import AgentSlice
from rust_structs import Field

AGENTS = Path(__file__).parents[2] / "agents"
BY_JDBC_ALONE = {"properties"}
"""Fields of a `Connection` that only `JdbcAgent` reads: it translates them."""
OURS = {"checked", "client_certificate"}
"""What ciphercost adds to an answer."""
JAVAS = {"driver_version", "jit_ms", "gc_ms", "process_cpu_ns", "encrypted", "protocol", "cipher"}
"""What only the Java agent adds to an answer."""


def kind_of(hint: Any) -> str:
    """A type as `rust_structs` names it."""
    if get_origin(hint) is Annotated:
        return kind_of(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        (only,) = [member for member in get_args(hint) if member is not type(None)]
        return kind_of(only)
    if get_origin(hint) is Literal:
        return "|".join(sorted(get_args(hint)))
    return "str" if hint is Secret else str(hint.__name__)


def fields_of(message: type[msgspec.Struct]) -> dict[str, Field]:
    hints = get_type_hints(message, include_extras=True)
    required = {field.name for field in msgspec.structs.fields(message) if field.required}
    return {name: Field(kind_of(hints[name]), name not in required) for name in message.__struct_fields__}


def kinds(fields: dict[str, Field]) -> dict[str, str]:
    return {name: field.kind for name, field in fields.items()}


# ── the types ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_has_the_fields_of_every_driver_of_the_rust_agent() -> None:
    rust: dict[str, str] = {"driver": "str"}
    for structs in rust_structs.variants("Connect").values():
        for name in structs:
            fields = kinds(rust_structs.struct(name))
            unlike = {key: (fields[key], rust[key]) for key in fields.keys() & rust.keys() if fields[key] != rust[key]}
            assert not unlike, f"{name}: a field with another type in another driver"
            rust |= fields
    ours = kinds(fields_of(Connection))
    assert {name: kind for name, kind in ours.items() if name not in BY_JDBC_ALONE} == rust


def test_what_is_not_sent_is_the_rust_agents_default() -> None:
    structs = {name for held in rust_structs.variants("Connect").values() for name in held}
    rust = {name: field for struct in structs for name, field in rust_structs.struct(struct).items()}
    for field in msgspec.structs.fields(Connection):
        if field.name in rust.keys() - {"arm", "host", "port"} and not rust[field.name].optional:
            assert field.default is None, field.name  # some driver needs it, so whoever omits it hears of that
        elif isinstance(field.default, bool):
            assert field.default is False, field.name
    assert "fn one() -> usize {\n    1\n}" in rust_structs.MESSAGES
    assert (Connection(driver="").connections, Connection(driver="").threads) == (1, 1)


def test_a_jdbc_connection_has_the_fields_that_the_java_agent_takes() -> None:
    """The rule: they are the names that `Session.connect`, `Jdbc` and `Deadline.seconds` take from `fields`."""
    java = AGENTS / "java" / "src" / "main" / "java" / "ciphercost" / "agent"
    connect = re.search(
        r"    private \S+ \S+ connect\(Fields fields\).*?\n    }\n", (java / "Session.java").read_text(), re.DOTALL
    )
    deadline = re.search(
        r"    static double seconds\(Fields fields.*?\n    }\n", (java / "Deadline.java").read_text(), re.DOTALL
    )
    assert connect
    assert deadline
    sources = connect[0] + deadline[0] + (java / "Jdbc.java").read_text()
    kinds_of = {"text": "str", "flag": "bool", "within": "int", "number": "float"}
    taken = {name: kinds_of[take] for take, name in re.findall(r'fields\.(\w+)\("(\w+)"', sources) if take != "has"}
    ours = kinds(fields_of(JdbcConnection))
    assert ours | {"how": "str"} == taken
    for word in ours["how"].split("|"):
        assert f'case "{word}" ->' in sources


@pytest.mark.parametrize(
    ("changes", "whole"), [(Changes, Connection), (JdbcChanges, JdbcConnection)], ids=["Connection", "JdbcConnection"]
)
def test_changes_name_the_same_fields_with_the_same_types(changes: Any, whole: type[Pool]) -> None:
    hints = get_type_hints(whole)
    assert get_type_hints(changes) == {name: hints[name] for name in whole.__struct_fields__}
    assert set(get_type_hints(JdbcCalls)) < set(get_type_hints(JdbcChanges))


def requests() -> dict[str, type[Request]]:
    return {str(request.__struct_config__.tag): request for request in Request.__subclasses__()}


def test_every_request_has_the_fields_of_the_rust_agents() -> None:
    structs = {name.lower(): held[0] for name, held in rust_structs.variants("Request").items()}
    assert requests().keys() == structs.keys() - {"connect", "bye"}
    for tag, message in requests().items():
        rust, ours = rust_structs.struct(structs[tag]), fields_of(message)
        assert kinds(ours) == kinds(rust), tag
        assert not [name for name, field in rust.items() if ours[name].optional and not field.optional], tag


def test_every_answer_has_the_fields_of_the_rust_agents() -> None:
    answers: dict[str, type[msgspec.Struct]] = {"Hello": agent_messages.HelloAnswer, "Ok": agent_messages.Ok, "Error": agent_messages.Failed,
               "Rows": agent_messages.Rows, "Floor": agent_messages.FloorAnswer}  # fmt: skip
    assert set(answers.values()) == set(Answer.__subclasses__())
    answers |= {"Connected": Connected, "Slice": AgentSlice}
    for variant, answer in answers.items():
        rust, ours = kinds(rust_structs.answer(variant)), kinds(fields_of(answer))
        more = OURS | JAVAS if variant in ("Connected", "Slice") else set()
        assert {name: kind for name, kind in ours.items() if name not in more - rust.keys()} == rust, variant


# ── the wire ──────────────────────────────────────────────────────────────────────────────────────────────────────────

POSTGRES = Connection(
    driver="postgres", host="::1", port=5432, user="u", database="d", password=Secret("p"), connections=8, tls="require"
)
GOLDEN: dict[str, agent_messages.Message] = {
    '{"type":"hello","protocol":1}': agent_messages.Hello(1),
    '{"type":"cipher","name":"aes256-gcm","key":"00ff"}': agent_messages.Cipher("aes256-gcm", Secret("00ff")),
    '{"type":"variable","name":"t0.a","kind":"uniform","low":0,"high":9}': Variable("t0.a", "uniform", low=0, high=9),
    '{"type":"statement","transaction":"t0","sql":"SELECT 1","parameters":""}': agent_messages.Statement(
        "t0", "SELECT 1", ""
    ),
    '{"type":"query","arm":"a","sql":"SELECT 1","timeout":2.0,"all":true}': agent_messages.Query(
        "a", "SELECT 1", 2.0, all=True
    ),
    '{"type":"slice","arm":"a","seconds":0.5,"discard":0.2,"seed":7,"timeout":120.0}': agent_messages.Slice(
        arm="a", seconds=0.5, discard=0.2, seed=7, timeout=120.0
    ),
    '{"type":"floor","cipher":"chacha20","bytes":10,"unit":5}': agent_messages.Floor("chacha20", 10, 5),
    '{"type":"disconnect","arm":"a"}': agent_messages.Disconnect("a"),
    '{"type":"connect","arm":"a","driver":"postgres","connections":8,"timeout":30.0,"user":"u","password":"p","host":"::1",'
    '"port":5432,"database":"d","tls":"require"}': agent_messages.connect_message("a", POSTGRES | {"timeout": 30.0}),
    '{"type":"connect","arm":"a","driver":"jdbc","timeout":30.0,"user":"u","url":"jdbc:x:","jars":"x.jar","autocommit":false}': (
        agent_messages.connect_message(
            "a", JdbcConnection(driver="jdbc", url="jdbc:x:", jars="x.jar", user="u", autocommit=False, timeout=30.0)
        )
    ),
}


@pytest.mark.parametrize("line", GOLDEN)
def test_a_message_is_one_flat_line_and_a_default_is_not_sent(line: str) -> None:
    assert agent_messages.line(GOLDEN[line]) == line.encode() + b"\n"


def test_a_default_from_another_process_is_not_sent_either() -> None:
    message = agent_messages.Slice(arm="a", seconds=2.0, discard=0.2, seed=1, timeout=30.0)
    same = agent_messages.Slice(
        arm="a",
        seconds=2.0,
        discard=0.2,
        seed=1,
        timeout=30.0,
        rate=float("0.0"),
        arrivals=pickle.loads(pickle.dumps("even")),
    )
    assert same.arrivals is not message.arrivals
    assert agent_messages.line(same) == agent_messages.line(message)


def connects() -> list[dict[str, Any]]:
    """Every `connect` of the protocol's vectors that an agent accepts."""
    accepted = []
    for path in sorted((AGENTS / "vectors").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines() if not line.startswith("#") and line]
        for one, other in pairwise(lines):
            if one.get("send", {}) and isinstance(one["send"], dict) and one["send"].get("type") == "connect":
                accepted += [one["send"]] if other.get("expect", {}).get("type") == "connected" else []
    return accepted


def test_every_connect_of_the_vectors_stays_the_same_message() -> None:
    assert len(connects()) > 10
    for message in connects():
        kind: type[Pool] = JdbcConnection if message["driver"] == "jdbc" else Connection
        read = msgspec.convert(message, kind, dec_hook=lambda _, text: Secret(text))
        again = json.loads(agent_messages.line(read))
        defaults: dict[str, object] = {"connections": 1, "threads": 1}
        assert {
            name: value for name, value in message.items() if defaults.get(name) != value and value is not False
        } == {name: value for name, value in again.items() if value is not False}


def test_nothing_shows_a_password() -> None:
    assert "p" not in repr(POSTGRES.password)
    assert "'p'" not in repr(POSTGRES)
    with pytest.raises(TypeError):
        msgspec.json.encode(POSTGRES)
