"""The program as one arm runs it. Draws an operation from a seed and a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ciphercost_agent_python import rng, scalar
from ciphercost_agent_python.failure import Failure, statement
from ciphercost_agent_python.kinds import Kind

if TYPE_CHECKING:
    from ciphercost_agent_python.acts import Act
    from ciphercost_agent_python.program import Statement

END, SLEEP = -1, -2
"""In place of a statement's number: the operation has ended; first, it sleeps for its `sleep_us`."""
LONGEST_SLEEP_US = 3_600_000_000
UNSET = object()
"""In place of a value: a computed variable has none yet."""


class Drawn(NamedTuple):
    """A transaction."""

    up_to: int
    """Sum of the weights up to and including this one's."""
    first: int
    last: int
    """Its statements are `first` to below `last`."""
    variables: tuple[int, ...]
    acts: tuple[Act, ...]
    """Empty if its statements run one after the other."""


class Loop(NamedTuple):
    """Statements `first` to below `last` run once per value of the variable: all of them for one value before the next."""

    variable: int
    first: int
    last: int


class Script(NamedTuple):
    statements: tuple[Statement, ...]
    transactions: tuple[Drawn, ...]
    loops: tuple[Loop, ...]
    weight: int
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    counters: list[Iterator[int]]
    mode: str
    tries: int
    """How often an operation is tried at most; 0 and 1: once."""

    @property
    def decides(self) -> bool:
        """Whether some transaction has steps."""
        return any(drawn.acts for drawn in self.transactions)

    @property
    def has_pipelines(self) -> bool:
        return any(act.do == "pipeline" for drawn in self.transactions for act in drawn.acts)

    def runs_as(self, other: Script | None) -> bool:
        """Whether a connection that is prepared for this script can run the other."""
        return other is not None and (self.statements, self.names) == (other.statements, other.names)

    def variable_for(self, prefix: str, column: str) -> int:
        """The variable for a column of this name: the very name, or else one that differs in case; -1 for none."""
        if prefix + column in self.names:
            return self.names.index(prefix + column)
        for at, name in enumerate(self.names):
            if name.startswith(prefix) and name.removeprefix(prefix).lower() == column.lower():
                return at
        return -1

    def short_name(self, variable: int) -> str:
        """A variable's name without that of its transaction."""
        return self.names[variable].rpartition(".")[2]


class Operation:
    """One drawn operation: which statements run, with which values. Reused."""

    def __init__(self, script: Script, clients: int) -> None:
        self._script, self._clients = script, clients
        self.values: list[Any] = [UNSET] * len(script.kinds)
        """By variable: None for NULL, a bool, an int, a float, a text, or UNSET."""
        self._taken: dict[int, int] = {}
        self._loops = {loop.last - 1: loop for loop in script.loops}
        self._several = len(script.transactions) > 1
        self.sleep_us = 0
        self.first = self.last = 0

    def draw(self, seed: int, number: int, *, again: bool = False) -> None:
        """Draw an operation, or the same one `again`, with the numbers that its sequences took."""
        script = self._script
        self._seed, self._number = seed, number
        self.random = random = rng.of_operation(seed, number)
        drawn = script.transactions[0]
        if self._several:
            ticket = random.below(script.weight)
            drawn = next(each for each in script.transactions if ticket < each.up_to)
        self._drawn = drawn
        self.first, self.last = drawn.first, drawn.last
        self._current = 0 if drawn.acts else drawn.first - 1
        kinds, values = script.kinds, self.values
        for variable in drawn.variables:
            kind = kinds[variable]
            if kind.draw is not None:
                values[variable] = kind.draw(random)
            elif kind.name == "constant":
                values[variable] = kind.value
            elif kind.name == "sequence":
                if not again:
                    self._taken[variable] = next(script.counters[variable])
                values[variable] = self._taken[variable]
            elif kind.name == "each":
                values[variable] = kind.low
            elif kind.name == "client":
                values[variable] = number % self._clients
            else:
                values[variable] = UNSET

    def draw_again(self) -> None:
        self.draw(self._seed, self._number, again=True)

    def advance(self) -> int:
        """The number of the next statement to run, or SLEEP or END. Raises Failure if an expression has no value."""
        if self._drawn.acts:
            return self._act()
        begun = self._current >= self.first
        self._current = self._after(self._current) if self._loops and begun else self._current + 1
        return self._current if self._current < self.last else END

    def _after(self, statement: int) -> int:
        if (loop := self._loops.get(statement)) is not None:
            kind = self._script.kinds[loop.variable]
            if self.values[loop.variable] < kind.high:
                self.values[loop.variable] += 1
                return loop.first
            self.values[loop.variable] = kind.low  # it may run again later
        return statement + 1

    def _act(self) -> int:
        """Take steps up to the next one that its connection has to take."""
        acts = self._drawn.acts
        while self._current < len(acts):
            act = acts[self._current]
            self._current += 1
            if act.do == "run":
                for variable in self._script.statements[act.number].parameters:
                    if self.values[variable] is UNSET:
                        raise self._unset(variable)
                return act.number
            if act.do == "jump":
                self._current = act.number
                continue
            assert act.expression is not None
            value = act.expression.evaluate(self)
            if act.do == "set":
                self.values[act.number] = value
            elif act.do == "unless":
                if not scalar.is_true(value):
                    self._current = act.number
            elif (time := scalar.integer(value)) > LONGEST_SLEEP_US:
                raise statement(f"\\sleep {time} us: at most an hour")
            elif time > 0:
                self.sleep_us = time
                return SLEEP
        return END

    def scalar(self, variable: int) -> Any:
        """A variable's value in an expression. Raises Failure."""
        value = self.values[variable]
        if value is UNSET:
            raise self._unset(variable)
        if isinstance(value, str):
            return scalar.of_text(value, self._script.short_name(variable))
        return value

    def parameter(self, variable: int) -> Any:
        """A variable's value as a parameter. One that has none yet is an empty text."""
        value = self.values[variable]
        return "" if value is UNSET else value

    def _unset(self, variable: int) -> Failure:
        return statement(f"variable {self._script.short_name(variable)} has no value yet")
