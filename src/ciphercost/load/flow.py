r"""flow: the commands of a script → its variables, its statements, and the steps between them. Pure.

A script that sets each variable once, to a number or to one draw, needs no steps: the agent draws its variables and runs its statements.
Any other is a flow, whose commands the agent runs in their order. An operation of it begins with no variable set, where pgbench keeps
them from one transaction to the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ciphercost.load import drawn, inner, places
from ciphercost.load.pgbench import evaluate
from ciphercost.load.pgbench.expression import Constant, Name, Node, printed, replaced
from ciphercost.load.pgbench.reader import Command, Meta, Sql
from ciphercost.load.pgbench.source import Source
from ciphercost.load.script_parts import (
    AUTOMATIC,
    CLIENT_ID,
    DEFAULT_SEED,
    RANDOM_SEED,
    FlowStep,
    Script,
    Statement,
    Variable,
)
from ciphercost.model.errors import nearest

EVERYWHERE = {
    CLIENT_ID: Variable(CLIENT_ID, "client"),
    RANDOM_SEED: Variable(RANDOM_SEED, "constant", value=""),
    DEFAULT_SEED: Variable(DEFAULT_SEED, "constant", value=""),
}
"""Variables that every script has. The empty ones get their values with the run's seed (`Program.seeded`)."""
_BRANCHES = ("if", "elif", "else", "endif")
_PIPES = ("startpipeline", "syncpipeline", "endpipeline")
ONCE = "it must be set once, outside of \\if, because the agent draws it before the operation begins"


class Setting(msgspec.Struct, frozen=True):
    """What a script finds when it runs."""

    known: Mapping[str, int | str] = {}
    """Variables whose values never change."""
    given: Sequence[Variable] = ()
    """Variables that it need not set."""
    dialect: str = ""
    simple: bool = False
    """Whether statements travel as texts, so that several may be one."""


def script_of(commands: Sequence[Command], source: Source, setting: Setting) -> Script:
    """Raises UsageError with the place of what is wrong."""
    for command in commands:
        if isinstance(command, Sql) and any(token == ("code", ";") for token in command.statement.tokens):
            _check_joined(command, source, setting)
    return _straight(commands, source, setting) or _Flow(commands, source, setting).script()


def _check_joined(command: Sql, source: Source, setting: Setting) -> None:
    if setting.dialect not in ("", "postgresql") or not setting.simple:
        statement = command.statement
        joined = next(
            at for token, at in zip(statement.tokens, statement.places, strict=True) if token == ("code", ";")
        )
        raise source.error(
            joined,
            r"'\;' joins statements, which only PostgreSQL takes, and only as text; write ';', or use --protocol simple on PostgreSQL",
        )


def _straight(commands: Sequence[Command], source: Source, setting: Setting) -> Script | None:
    """The script if it needs no steps."""
    variables: list[Variable] = list(setting.given)
    known = dict(setting.known)
    for command in commands:
        if isinstance(command, Sql):
            if command.into is not None:
                return None
            continue
        if command.name != "set" or command.variable in {variable.name for variable in variables}:
            return None
        assert command.node is not None
        node = drawn.with_constants(command.node, known, source)
        drawn.check(node, source)
        variable = drawn.variable(command.variable, node, source)
        if variable is None:
            return None
        known.pop(variable.name, None)
        if variable.kind == "constant":
            known[variable.name] = str(variable.value)
        variables.append(variable)
    statements = [command.statement for command in commands if isinstance(command, Sql)]
    names = {variable.name for variable in variables}
    mentioned = {name for statement in statements for name in _mentioned(statement.tokens)}
    for name in mentioned & EVERYWHERE.keys() - known.keys() - names:
        variables.append(EVERYWHERE[name])
        names.add(name)
    return Script(
        tuple(variables),
        tuple(places.numbered(statement, names, known, source, setting.dialect) for statement in statements),
        setting.dialect,
    )


def _mentioned(tokens: Sequence[tuple[str, str]]) -> list[str]:
    """The variables that a statement names, in strings too."""
    found: list[str] = []
    for kind, text in tokens:
        if kind == "variable":
            found.append(text.removeprefix(":"))
        elif kind in ("string", "name"):
            found += inner.mentioned(text)
    return found


class _Flow:
    def __init__(self, commands: Sequence[Command], source: Source, setting: Setting) -> None:
        self._commands, self._source, self._setting = commands, source, setting
        self._variables = {variable.name: variable for variable in setting.given}
        self._assigned = [
            command.variable for command in commands if isinstance(command, Meta) and command.name == "set"
        ]
        self._known = {name: value for name, value in setting.known.items() if name not in self._assigned}
        self._items: list[Statement | FlowStep] = []
        self._stored: list[tuple[str, str]] = []
        """Of each statement so far whose columns become variables: their prefix, and its text."""
        self._open: list[Meta] = []
        """The `\\if` commands that have no `\\endif` yet, each as its last branch."""
        self._pipe: Meta | None = None

    def script(self) -> Script:
        self._begin()
        for command in self._commands:
            if isinstance(command, Sql):
                self._statement(command)
            elif command.name == "set":
                self._set(command)
            elif command.name in _BRANCHES:
                self._branch(command)
            elif command.name in _PIPES:
                self._pipeline(command)
            else:
                self._step(command)
        if self._open:
            raise self._source.error(self._open[-1].at, rf"\{self._open[-1].name} has no \endif")
        if self._pipe:
            raise self._source.error(self._pipe.at, r"\startpipeline has no \endpipeline")
        statements = tuple(item for item in self._items if isinstance(item, Statement))
        return Script(tuple(self._variables.values()), statements, self._setting.dialect, tuple(self._items))

    def _begin(self) -> None:
        """Set what has a value before the script's first command and gets others in it."""
        for name in dict.fromkeys(self._assigned):
            if name in EVERYWHERE and name not in self._setting.known:
                alias = name + AUTOMATIC
                self._variables[alias] = msgspec.structs.replace(EVERYWHERE[name], name=alias)
                self._computed(name)
                self._items.append(FlowStep("set", name, printed(Name(alias))))
            elif name in self._setting.known:
                try:
                    value = evaluate.value_of(str(self._setting.known[name]))
                except ValueError:
                    continue
                self._computed(name)
                self._items.append(FlowStep("set", name, printed(Constant(value))))

    def _computed(self, name: str) -> None:
        self._variables.setdefault(name, Variable(name, "computed"))

    def _found(self, name: str, *, in_string: bool = False) -> bool:
        """Whether a variable of that name may have a value here. Declares it."""
        if name in self._variables:
            return True
        if name in self._known:
            return False
        if name in EVERYWHERE:
            self._variables[name] = EVERYWHERE[name]
            return True
        for prefix, sql in self._stored:
            column = name.removeprefix(prefix)
            # In a string, `:x` is only a variable if something says so.
            likely = prefix or not in_string or re.search(rf"\b{re.escape(column)}\b", sql)
            if name.startswith(prefix) and column and likely:
                self._computed(name)
                return True
        return False

    def _unset(self, name: str) -> str:
        if name in self._assigned:
            return f"':{name}' is set only below; each operation begins with no variable set"
        return f"':{name}' is not set; {nearest(name, [*self._variables, *self._known, *EVERYWHERE])}"

    def _expression(self, command: Meta) -> Node:
        """The expression of a command, with the values that never change."""
        assert command.node is not None
        node = drawn.with_constants(command.node, self._known, self._source)

        def check(name: Name) -> Node:
            if not self._found(name.name):
                raise self._source.error(name.at, self._unset(name.name))
            return name

        node = replaced(node, check)
        if not self._open or (len(self._open) == 1 and command is self._open[0] and command.name == "if"):
            drawn.check(node, self._source)
        return node

    def _set(self, command: Meta) -> None:
        node = self._expression(command)
        if not drawn.is_ours(node):
            self._computed(command.variable)
            self._items.append(FlowStep("set", command.variable, printed(node)))
            return
        variable = drawn.variable(command.variable, node, self._source)
        assert variable is not None
        if variable.kind == "each":
            raise self._source.error(
                command.at,
                "each(…) makes loops of statements, which a script with meta commands or computed variables can't have; "
                "use random(…) or sequence(…)",
            )
        if self._open or self._assigned.count(variable.name) > 1 or variable.name in self._variables:
            raise self._source.error(command.at, f"':{variable.name}' is a {variable.kind}: {ONCE}")
        self._variables[variable.name] = variable

    def _branch(self, command: Meta) -> None:
        last = self._open[-1] if self._open else None
        if command.name != "if" and last is None:
            raise self._source.error(command.at, rf"\{command.name} without \if before it")
        if command.name in ("elif", "else") and last is not None and last.name == "else":
            raise self._source.error(command.at, rf"\{command.name} after \else; write \endif first")
        if command.name == "endif":
            self._open.pop()
        elif command.name == "if":
            self._open.append(command)
        else:
            self._open[-1] = command
        self._step(command)

    def _step(self, command: Meta) -> None:
        text = printed(self._without_ours(command)) if command.node is not None else ""
        self._items.append(FlowStep(command.name, expression=text))

    def _without_ours(self, command: Meta) -> Node:
        node = self._expression(command)
        if drawn.is_ours(node):
            raise self._source.error(
                command.at, "sequence, random_text and each can only set a variable; write \\set first"
            )
        return node

    def _pipeline(self, command: Meta) -> None:
        if self._setting.dialect not in ("", "postgresql"):
            raise self._source.error(command.at, rf"\{command.name}: only PostgreSQL has pipelines; remove it")
        if self._setting.simple:
            raise self._source.error(
                command.at, rf"\{command.name}: statements that travel as text (simple) have no pipelines"
            )
        if (command.name == "startpipeline") == (self._pipe is not None):
            why = r"before its \endpipeline" if self._pipe else r"without \startpipeline before it"
            raise self._source.error(command.at, rf"\{command.name} {why}")
        if command.name != "syncpipeline":
            self._pipe = command if command.name == "startpipeline" else None
        self._step(command)

    def _statement(self, command: Sql) -> None:
        statement = command.statement
        for (kind, text), at in zip(statement.tokens, statement.places, strict=True):
            name = text.removeprefix(":")
            if kind == "variable" and not statement.body and not self._found(name) and name not in self._known:
                raise self._source.error(at, self._unset(name))
            for within in inner.mentioned(text) if kind in ("string", "name") else ():
                self._found(within, in_string=True)
        numbered = places.numbered(statement, self._variables, self._known, self._source, self._setting.dialect)
        if command.into is not None:
            if self._pipe:
                raise self._source.error(
                    command.at, r"\gset and \aset can't stand in a pipeline, whose results come later"
                )
            self._stored.append((command.into, statement.sql))
            numbered = msgspec.structs.replace(numbered, into=command.into, every=command.every)
        self._items.append(numbered)
