"""Text of others reaches no terminal with what steers it, and a command that a user may copy is quoted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ciphercost
from ciphercost.model.errors import Interrupted
from ciphercost.model.printable import printable
from ciphercost.provision import scratch_schema

ROOT = Path(ciphercost.__file__).parent
OTHERS = {"model/grants.py", "model/schema.py", "report/plots/__init__.py"}
"""Programs for developers that print what they generate, and a process whose output ciphercost reads."""
RAW = {"commands/_say.py", "commands/__init__.py", "commands/completion.py"}
"""Where commands print text that needs no cleaning, or has had it."""
EVIL = "x\x1b[31m\x9b\u202e\x07y"


def test_nothing_is_printed_without_being_cleaned() -> None:
    bare = []
    for path in sorted(ROOT.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or name in OTHERS:
                continue
            called = ast.unparse(node.func)
            if called == "click.echo" and name not in RAW:
                bare.append(f"{name}: {called}")
            if called == "print" and not (
                (node.args and "printable(" in ast.unparse(node.args[0])) or name == "commands/_complain.py"
            ):
                bare.append(f"{name}: {ast.unparse(node)}")
    assert bare == []


def test_a_schema_that_is_left_is_named_without_what_a_server_said(capsys: pytest.CaptureFixture[str]) -> None:
    scratch_schema.say_left(f"the schema s is left: {EVIL}")
    assert capsys.readouterr().err == f"ciphercost: the schema s is left: {printable(EVIL)}\n"
    assert printable(EVIL) == "x\ufffd[31m\ufffd\ufffd\ufffdy"
    assert printable("a\nb\tc") == "a\nb\tc"


def test_a_command_to_copy_is_quoted() -> None:
    text = str(Interrupted(Path("/tmp/a b$(x)")))
    assert "`ciphercost resume '/tmp/a b$(x)'`" in text
    assert "`ciphercost report '/tmp/a b$(x)'`" in text
    assert "`ciphercost resume runs/1`" in str(Interrupted(Path("runs/1")))
