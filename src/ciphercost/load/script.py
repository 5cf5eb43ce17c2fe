r"""Parses SQL in pgbench's script language into variables, statements with $1, $2 …, and the steps between them. Pure.

`pgbench/` reads expressions and meta commands, `sql_text` the comments, strings and quoted names of the server's own SQL. As in pgbench,
`:NAME` is replaced in strings too. Functions that pgbench has not: `sequence(FIRST)`, `random_text(LENGTH)`, `each(LOW, HIGH)`.
Consecutive statements that use the same `each` variable form a loop: all of them run for one value before the next value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import msgspec

from ciphercost.load import drawn, flow
from ciphercost.load.pgbench import expression, reader
from ciphercost.load.pgbench.source import Source
from ciphercost.load.script_parts import SEAL, SEALED, FlowStep, Script, Statement, Variable
from ciphercost.model.errors import UsageError, nearest

_THINK = re.compile(r"THINK\s+(?:\$(\d+)|(\d+))")
LONGEST_THOUGHT = 3_600_000_000
"""The longest think time in microseconds: an hour."""


def think_us(script: Script, where: str = "script") -> float:
    """Average think time of the script in an open loop, in microseconds. Pure; raises UsageError.

    The HTTP driver (and `null`) supports `THINK :time`: the client waits that many microseconds without a request.
    """
    variables = {variable.name: variable for variable in script.variables}
    total = 0.0
    for statement in script.statements:
        if statement.arm == "encrypted" or statement.sql.split(maxsplit=1)[:1] != ["THINK"]:
            continue  # Both arms have the same think time: skip the encrypted arm's own statements.
        match = _THINK.fullmatch(statement.sql.strip())
        if match is None:
            raise UsageError(f"{where}: '{statement.sql}': write 'THINK :time' with the time in microseconds")
        number, written = match.groups()
        drawn = variables[statement.parameters[int(number) - 1]] if number else Variable("", "constant", value=written)
        if drawn.kind == "constant":
            low = high = int(drawn.value or 0)
        elif drawn.kind == "uniform":
            low, high = drawn.low or 0, drawn.high or 0
        else:
            raise UsageError(f"{where}: THINK :{drawn.name} takes a number or random(LOW, HIGH), in microseconds")
        if not 0 <= low <= high <= LONGEST_THOUGHT:
            raise UsageError(f"{where}: THINK takes 0 to {LONGEST_THOUGHT} microseconds, not {low} to {high}")
        total += (low + high) / 2
    return total


# String literals, quoted identifiers, comments and PostgreSQL's `::` casts must keep their colons.
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*(?!ciphercost:seal).*?\*/|::|(?P<seal>/\*ciphercost:seal\*/)?:(?P<name>[A-Za-z_]\w*)|;|\$\d+",
    re.DOTALL,
)
_WORD = re.compile(r":([A-Za-z_]\w*)")


def bare(text: str) -> str:
    """Return SQL without its comments; quoted text stays. Pure."""
    return _TOKEN.sub(lambda match: " " if match.group(0).startswith(("--", "/*")) else match.group(0), text)


def parse(
    text: str,
    parameters: Mapping[str, int | str],
    where: str = "script",
    given: Sequence[Variable] = (),
    dialect: str = "",
    *,
    simple: bool = False,
) -> Script:
    """Parse a script. Parameters (rows, scale, …) are written into the text. `given`: variables that it need not set.
    `dialect`: an engine's, whose SQL it is. `simple`: statements travel as texts.

    Raises UsageError naming `where`, the place in the text, and what to write instead.
    """
    source = Source(where, text)
    commands = reader.read(source, dialect)
    if not any(isinstance(command, reader.Sql) for command in commands):
        raise UsageError(f"{where}: contains no SQL statement")
    drawn_names = {variable.name for variable in given}
    drawn_names |= {command.variable for command in commands if isinstance(command, reader.Meta)}
    wanted = [name for name in dict.fromkeys(re.findall(rf"{re.escape(SEAL)}:(\w+)", text)) if name in drawn_names]
    script = flow.script_of(commands, source, flow.Setting(parameters, given, dialect, simple))
    sealed = tuple(Variable(name + SEALED, "sealed", of=name) for name in wanted)
    return msgspec.structs.replace(script, variables=script.variables + sealed)


def declared(text: str, parameters: Mapping[str, int | str], where: str) -> tuple[list[Variable], list[str]]:
    """Return the variables that the `\\set` lines of a script without SQL declare, and its other lines at their line numbers.

    Raises UsageError.
    """
    variables: list[Variable] = []
    body: list[str] = []
    source = Source(where, text)
    known = dict(parameters)
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        line = text[at:end]
        if not line.lstrip().startswith("\\"):
            body.append(line)
            at = end + 1
            continue
        at += len(line) - len(line.lstrip())
        command, after = reader.meta(source, at)
        if command.name != "set" or command.node is None:
            raise source.error(
                at, f"'\\{command.name}' needs a server that takes SQL; only '\\set NAME EXPRESSION' is supported here"
            )
        node = drawn.with_constants(command.node, known, source)
        for name in expression.names(node):
            raise source.error(name.at, f"':{name.name}' is no number that is known before the first operation")
        drawn.check(node, source)
        variable = drawn.variable(command.variable, node, source)
        if variable is None:
            raise source.error(
                at, "needs a server that takes SQL; here it can be a whole number or one draw, e.g. random(1, 100)"
            )
        if variable.kind == "constant":
            known[variable.name] = str(variable.value)
        variables.append(variable)
        body += [""] * (text.count("\n", at, after) + 1)
        at = after + 1
    return variables, body


def of_arm(script: Script, arm: str) -> Script:
    """Return the script of one arm alone. Pure."""
    statements = tuple(
        msgspec.structs.replace(statement, arm="") for statement in script.statements if statement.arm in ("", arm)
    )
    steps = tuple(
        msgspec.structs.replace(item, arm="") if isinstance(item, Statement) else item
        for item in script.flow
        if isinstance(item, FlowStep) or item.arm in ("", arm)
    )
    return msgspec.structs.replace(script, statements=statements, flow=steps)


def by_arm(plain: Script, encrypted: Script) -> Script:
    """Merge two scripts that draw the same variables. A statement that is equal in both belongs to both arms. Pure."""
    if plain == encrypted:
        return plain

    def of(script: Script, arm: str) -> tuple[Statement, ...]:
        return tuple(msgspec.structs.replace(statement, arm=arm) for statement in script.statements)

    # The plain arm draws the sealed variables too, unsealed.
    return msgspec.structs.replace(encrypted, statements=(*of(plain, "plain"), *of(encrypted, "encrypted")))


def fill(text: str, parameters: Mapping[str, int | str], where: str = "script") -> str:
    """Write parameters into SQL text: `:rows` becomes 100000. Raises UsageError for an unknown parameter."""

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None or match["seal"]:
            return match.group(0)
        if name not in parameters:
            raise UsageError(f"{where}: ':{name}' is not a parameter; {nearest(name, parameters)}")
        return str(parameters[name])

    return _TOKEN.sub(replace, text)


def evaluate(expression: str, parameters: Mapping[str, int | str], where: str = "expression") -> int:
    """Evaluate integer arithmetic over parameters: + - * / % ( ) min max. Raises UsageError."""
    try:
        tree = ast.parse(_WORD.sub(r"\1", expression).strip(), mode="eval")
    except SyntaxError:
        raise UsageError(f"{where}: '{expression.strip()}' is not an expression") from None
    return _value(tree.body, parameters, where)


def _value(node: ast.expr, parameters: Mapping[str, int | str], where: str) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, parameters, where)
        case ast.Name(id=name):
            if name not in parameters:
                raise UsageError(f"{where}: '{name}' is not a parameter; {nearest(name, parameters)}")
            try:
                return int(parameters[name])
            except ValueError:
                raise UsageError(f"{where}: parameter '{name}' is not a number: '{parameters[name]}'") from None
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, parameters, where), _value(right, parameters, where)
            if isinstance(op, ast.Div | ast.FloorDiv | ast.Mod) and b == 0:
                raise UsageError(f"{where}: division by zero")
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div() | ast.FloorDiv():
                    return a // b
                case ast.Mod():
                    return a % b
        case ast.Call(func=ast.Name(id="min" | "max" as function), args=args) if args:
            values = [_value(argument, parameters, where) for argument in args]
            return min(values) if function == "min" else max(values)
    raise UsageError(f"{where}: only integers, + - * / %, min, max and parameters are allowed")
