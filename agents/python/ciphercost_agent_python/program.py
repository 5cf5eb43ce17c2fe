"""What an operation is, and which part of it each arm runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from ciphercost_agent_python import acts, expression
from ciphercost_agent_python.acts import Act, Step
from ciphercost_agent_python.expression import Expression
from ciphercost_agent_python.failure import bad_message, no_program
from ciphercost_agent_python.fields import Fields
from ciphercost_agent_python.kinds import Kind
from ciphercost_agent_python.script import Drawn, Loop, Script

MODES = ("prepared", "extended", "simple")


class Into(NamedTuple):
    prefix: str
    every: bool
    """The last row counts, if there is any, instead of the only one."""


class Statement(NamedTuple):
    sql: str
    parameters: tuple[int, ...]
    """Indices of variables, in order of `$1`, `$2` …"""
    into: Into | None


class Item(NamedTuple):
    """A statement, or a step that is none, of one arm, or of both if `arm` is None."""

    arm: str | None
    what: Statement | Step

    def is_for(self, arm: str) -> bool:
        return self.arm in (None, arm)


class Transaction(NamedTuple):
    name: str
    weight: int
    items: list[Item]


class Program:
    def __init__(self, name: str, mode: str, tries: int) -> None:
        if mode not in MODES:
            raise bad_message("mode: must be prepared, extended or simple")
        self._name, self._mode, self._tries = name, mode, tries
        self._names: list[str] = []
        self._kinds: list[Kind] = []
        self._transactions: list[Transaction] = []
        self._counters: dict[str, list[Iterator[int]]] = {}
        """What each arm's sequences take next. Survives slices and reconnections."""

    def add_variable(self, name: str, kind: Kind) -> None:
        if not name or name.split() != [name]:
            raise bad_message(f'variable name "{name}": must be one word')
        if name in self._names:
            raise bad_message(f'variable "{name}" is already declared')
        self._names.append(name)
        self._kinds.append(kind)
        self._counters.clear()

    def add_transaction(self, name: str, weight: int) -> None:
        if weight < 1:
            raise bad_message("weight: must be a positive integer")
        if any(known.name == name for known in self._transactions):
            raise bad_message(f'transaction "{name}" is already declared')
        self._transactions.append(Transaction(name, weight, []))

    def add_statement(self, transaction: str, arm: str | None, sql: str, parameters: str, into: Into | None) -> None:
        indices = tuple(self.variable("parameters", name) for name in parameters.split())
        if len({index for index in indices if self._kinds[index].name == "each"}) > 1:
            raise bad_message('parameters: a statement may use at most one variable of kind "each"')
        self._transaction(transaction).items.append(Item(arm, Statement(sql, indices, into)))

    def add_step(self, transaction: str, arm: str | None, do: str, fields: Fields) -> None:
        """Takes the fields of the step, which has its own and no others."""
        variable, to = -1, None
        if do == "set":
            variable = self.variable("variable", fields.text("variable"))
        if do in acts.WITH_EXPRESSION:
            to = self.expression(fields.text("expression"))
        elif do not in acts.WITHOUT:
            raise bad_message(f'do: "{do}" is not known')
        fields.end()
        if do == "set" and self._kinds[variable].name != "computed":
            raise bad_message('variable: a step sets only one of kind "computed"')
        self._transaction(transaction).items.append(Item(arm, Step(do, variable, to)))

    def _transaction(self, name: str) -> Transaction:
        for known in self._transactions:
            if known.name == name:
                return known
        raise bad_message(f'no transaction "{name}" is declared')

    def variable(self, field: str, name: str) -> int:
        """The number of a declared variable, which `field` of a message names."""
        if name not in self._names:
            raise bad_message(f'{field}: no variable "{name}" is declared')
        return self._names.index(name)

    def expression(self, text: str) -> Expression:
        return expression.read(text, self._names)

    def script(self, arm: str) -> Script:
        """What one arm runs: its own statements and those of both arms. Raises Failure."""
        if not self._transactions:
            raise no_program(f'program "{self._name}" has no transaction')
        statements: list[Statement] = []
        drawn: list[Drawn] = []
        loops: list[Loop] = []
        weight = 0
        for transaction in self._transactions:
            first = len(statements)
            items = [item.what for item in transaction.items if item.is_for(arm)]
            own = [what for what in items if isinstance(what, Statement)]
            decides = any(isinstance(item.what, Step) for item in transaction.items)
            if not own and not decides:
                raise no_program(f'transaction "{transaction.name}" has no statement for arm "{arm}"')
            statements += own
            numbers = itertools.count(first)
            steps = [Step("run", next(numbers)) if isinstance(what, Statement) else what for what in items]
            compiled = acts.compiled(steps) if decides else []
            used = self._used(own, compiled)
            if compiled and any(self._kinds[variable].name == "each" for variable in used):
                raise no_program('a transaction with steps has no variable of kind "each"')
            self._add_loops(statements, first, loops)
            weight += transaction.weight
            drawn.append(Drawn(weight, first, len(statements), tuple(used), tuple(compiled)))
        counters = self._counters.setdefault(arm, [itertools.count(kind.low) for kind in self._kinds])
        return Script(
            tuple(statements), tuple(drawn), tuple(loops), weight, tuple(self._names), tuple(self._kinds), counters, self._mode, self._tries
        )  # fmt: skip

    def _used(self, statements: list[Statement], compiled: list[Act]) -> list[int]:
        """The variables that statements use, that steps read or set, and that rows may set: no operation begins with a value of the last one."""
        found = {variable for statement in statements for variable in statement.parameters}
        for statement in statements:
            if (into := statement.into) is not None:
                found |= {
                    index
                    for index, (name, kind) in enumerate(zip(self._names, self._kinds, strict=True))
                    if kind.name == "computed" and name.startswith(into.prefix)
                }
        for act in compiled:
            if act.do == "set":
                found.add(act.number)
            if act.expression is not None:
                found |= act.expression.variables
        return sorted(found)

    def _add_loops(self, statements: list[Statement], first: int, loops: list[Loop]) -> None:
        """Consecutive statements of a transaction that use the same variable of kind `each` form a loop."""
        own = len(loops)
        for at in range(first, len(statements)):
            for variable in sorted(set(statements[at].parameters)):
                if self._kinds[variable].name != "each":
                    continue
                before = loops[-1] if len(loops) > own else None
                if before is not None and before.variable == variable and before.last == at:
                    loops[-1] = before._replace(last=at + 1)
                else:
                    loops.append(Loop(variable, at, at + 1))
