"""Parses SQL in pgbench's script language into variables and statements with $1, $2 … Pure.

Supported: `\\set NAME EXPRESSION`, statements that end with `;`, `:NAME` for a variable, and the comments, strings and
quoted names of the server's own SQL (`sql_text`). As in pgbench, `:NAME` is replaced in strings too. EXPRESSION is
integer arithmetic (+ - * / %, parentheses, min, max, other parameters as `:name`) or one of `random(LOW, HIGH)`,
`random_zipfian(LOW, HIGH, SKEW)`, `sequence(FIRST)`, `random_text(LENGTH)`, `each(LOW, HIGH)`. Consecutive statements
that use the same `each` variable form a loop: all of them run for one value before the next value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import msgspec

from ciphercost.load import inner, sql_text
from ciphercost.load.request_message import Request
from ciphercost.load.sql_text import Token
from ciphercost.model.errors import UsageError, nearest


class Variable(Request, frozen=True, tag="variable"):
    """A variable that the agent draws once per operation, and the message that names it."""

    name: str
    kind: str
    low: int | None = None
    high: int | None = None
    skew: float | None = None
    length: int | None = None
    value: str | None = None
    of: str | None = None
    """The variable whose value this one contains, sealed."""


class Statement(msgspec.Struct, frozen=True):
    sql: str
    parameters: tuple[str, ...]
    arm: str = ""
    """The only arm that runs it; empty: both arms."""
    open: bool = False
    """The agent opens sealed values in its rows."""
    headers: str = ""
    """Of a request: its own headers, one a line."""
    body: str | None = None
    """Of a request: its body as it is in a file. None: it is in the text, or there is none."""


KV = "kv"
"""The dialect of a key-value store's commands."""
_READING_COMMANDS = re.compile(
    r"(?:BITCOUNT|DBSIZE|ECHO|EXISTS|GET|GETBIT|GETRANGE|GETS|HEXISTS|HGET|HGETALL|HKEYS|HLEN|HMGET|"
    r"HSTRLEN|HVALS|LINDEX|LLEN|LPOS|LRANGE|MGET|PING|PTTL|SCARD|SDIFF|SINTER|SISMEMBER|SMEMBERS|"
    r"SMISMEMBER|STRLEN|SUNION|TTL|TYPE|VERSION|XLEN|XRANGE|ZCARD|ZCOUNT|ZRANGE|ZRANK|ZSCORE)\b",
    re.IGNORECASE,
)
"""Commands of key-value stores that change nothing."""


class Script(msgspec.Struct, frozen=True):
    variables: tuple[Variable, ...]
    statements: tuple[Statement, ...]
    dialect: str = ""
    """Whose SQL it is; empty: what all servers have in common."""

    @property
    def read_only(self) -> bool:
        """Whether every statement only reads, judging by its words."""
        if self.dialect == KV:
            return all(_READING_COMMANDS.match(each.sql) is not None for each in self.statements)
        return all(_reads(each.sql, self.dialect) for each in self.statements)


_THINK = re.compile(r"THINK\s+(?:\$(\d+)|(\d+))")
LONGEST_THOUGHT = 3_600_000_000
"""The longest think time in microseconds: an hour."""


def think_us(script: Script, where: str = "script") -> float:
    """Average think time of the script in an open loop, in microseconds. Pure; raises UsageError.

    The HTTP driver (and `null`) supports `THINK :time`: the client waits that many microseconds without a request.
    """
    variables = {each.name: each for each in script.variables}
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


_FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "random": ("uniform", ("low", "high")),
    "random_zipfian": ("zipfian", ("low", "high", "skew")),
    "sequence": ("sequence", ("low",)),
    "random_text": ("text", ("length",)),
    "each": ("each", ("low", "high")),
}
_NAME = re.compile(r"[A-Za-z_]\w*")
# String literals, quoted identifiers, comments and PostgreSQL's `::` casts must keep their colons.
SEAL = "/*ciphercost:seal*/"
"""Marks the following variable: the agent is to seal it."""
OPEN = "/*ciphercost:open*/"
"""Marks the following column, an item of a SELECT list: the agent is to open it."""
SEALED = ".sealed"
"""Suffix of the name of a variable that contains another's value, sealed."""
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*(?!ciphercost:seal).*?\*/|::|(?P<seal>/\*ciphercost:seal\*/)?:(?P<name>[A-Za-z_]\w*)|;|\$\d+",
    re.DOTALL,
)
_WORD = re.compile(r":([A-Za-z_]\w*)")


def bare(text: str) -> str:
    """Return SQL without its comments; quoted text stays. Pure."""
    return _TOKEN.sub(lambda match: " " if match.group(0).startswith(("--", "/*")) else match.group(0), text)


_READS = re.compile(r"\s*\(?\s*(select|values|table|show|with|get|head|clear\s+(get|head)|think)\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(insert|update|delete|merge|into)\b", re.IGNORECASE)


def _reads(sql: str, dialect: str) -> bool:
    # A function that the statement calls may write, which no word of it shows.
    try:
        found = [each for each in sql_text.tokens(sql, dialect, "statement") if each.kind not in ("comment", "string")]
    except UsageError:  # a command or a request, whose quotes are its own
        found = [Token("code", sql)]
    text = "".join(each.text for each in found)
    return _READS.match(text) is not None and not _WRITES.search(text)


def parse(
    text: str,
    parameters: Mapping[str, int | str],
    where: str = "script",
    given: Sequence[Variable] = (),
    dialect: str = "",
) -> Script:
    """Parse a script. Parameters (rows, scale, …) are written into the text as numbers. `given`: variables that it need
    not set. `dialect`: an engine's, whose SQL it is.

    Raises UsageError naming `where`, the line, and what to write instead.
    """
    variables, body = declared(text, parameters, where, given)
    drawn = {variable.name for variable in variables}
    wanted = [each for each in dict.fromkeys(re.findall(rf"{re.escape(SEAL)}:(\w+)", text)) if each in drawn]
    variables += [Variable(each + SEALED, "sealed", of=each) for each in wanted]
    fixed = dict(parameters) | {each.name: str(each.value) for each in variables if each.kind == "constant"}
    statements = [
        _statement(each, drawn, fixed, f"{where}, line {each.line}", dialect)
        for each in sql_text.statements("\n".join(body), dialect, where)
    ]
    if not statements:
        raise UsageError(f"{where}: contains no SQL statement")
    return Script(tuple(variables), tuple(statements), dialect)


def declared(
    text: str, parameters: Mapping[str, int | str], where: str, given: Sequence[Variable] = ()
) -> tuple[list[Variable], list[str]]:
    """Return the variables that a script's `\\set` lines declare, and the other lines at their line numbers.

    Raises UsageError.
    """
    variables: list[Variable] = list(given)
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.lstrip().startswith("\\"):
            body.append(line)
            continue
        body.append("")
        command, _, rest = line.strip()[1:].partition(" ")
        if command != "set":
            raise UsageError(f"{where}, line {number}: '\\{command}' is not supported; only '\\set NAME EXPRESSION' is")
        name, _, expression = rest.strip().partition(" ")
        if not _NAME.fullmatch(name) or not expression.strip():
            raise UsageError(
                f"{where}, line {number}: write '\\set NAME EXPRESSION', e.g. '\\set aid random(1, 100000)'"
            )
        variables.append(_variable(name, expression, parameters, f"{where}, line {number}"))
    return variables, body


def of_arm(script: Script, arm: str) -> Script:
    """Return the script of one arm alone. Pure."""
    own = tuple(msgspec.structs.replace(each, arm="") for each in script.statements if each.arm in ("", arm))
    return msgspec.structs.replace(script, statements=own)


def by_arm(plain: Script, encrypted: Script) -> Script:
    """Merge two scripts that draw the same variables. A statement that is equal in both belongs to both arms. Pure."""
    if plain == encrypted:
        return plain

    def of(script: Script, arm: str) -> tuple[Statement, ...]:
        return tuple(msgspec.structs.replace(each, arm=arm) for each in script.statements)

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
            values = [_value(each, parameters, where) for each in args]
            return min(values) if function == "min" else max(values)
    raise UsageError(f"{where}: only integers, + - * / %, min, max and parameters are allowed")


def _variable(name: str, expression: str, parameters: Mapping[str, int | str], where: str) -> Variable:
    call = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", expression, re.DOTALL)
    if call is None or call.group(1) in ("min", "max"):
        return Variable(name, "constant", value=str(evaluate(expression, parameters, where)))
    function = call.group(1)
    if function not in _FUNCTIONS:
        raise UsageError(f"{where}: unknown function '{function}': {nearest(function, _FUNCTIONS)}")
    kind, names = _FUNCTIONS[function]
    given = _arguments(call.group(2))
    if len(given) != len(names):
        raise UsageError(f"{where}: {function} takes ({', '.join(names)}), got {len(given)} values")
    values: dict[str, int | float] = {}
    for field, text in zip(names, given, strict=True):
        if field == "skew":
            try:
                values[field] = float(text)
            except ValueError:
                raise UsageError(f"{where}: skew '{text.strip()}' is not a number") from None
        else:
            values[field] = evaluate(text, parameters, where)
    if kind in ("uniform", "zipfian", "each") and values["low"] > values["high"]:
        raise UsageError(
            f"{where}: the lower bound of {function}, {values['low']}, is above its upper bound, {values['high']}"
        )
    if kind == "text" and not 1 <= values["length"] <= 1 << 20:
        raise UsageError(f"{where}: random_text takes a length from 1 to 1048576, got {values['length']}")
    if kind == "zipfian" and (values["skew"] <= 0 or values["skew"] == 1):
        raise UsageError(f"{where}: random_zipfian takes a skew above 0 other than 1, got {values['skew']}")
    return msgspec.convert({"name": name, "kind": kind, **values}, Variable)


def _arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


_CLAUSE = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|" + re.escape(OPEN) + r"[\w.]+|/\*.*?\*/|[A-Za-z_]\w*(?:\.\w+)*|[^\s]",
    re.DOTALL,
)
_CLAUSES = {
    "SELECT",
    "RETURNING",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "SET",
    "VALUES",
    "ON",
    "USING",
    "LIMIT",
    "DISTINCT",
    "UNION",
}


def opens(sql: str, where: str) -> bool:
    """Whether the agent is to open columns of the rows.

    Raises UsageError if a server without the key would have to use one.
    """
    if OPEN not in sql:
        return False
    words = [each.group(0) for each in _CLAUSE.finditer(sql)]
    words = [each for each in words if each.startswith(OPEN) or not each.startswith(("--", "/*"))]
    # One entry per open parenthesis: the clause before it, and whether it may be a whole item of a SELECT list.
    outer: list[tuple[str, bool]] = []
    clause, before, listed = "", "", True
    for number, word in enumerate(words):
        after = words[number + 1].upper() if number + 1 < len(words) else ""
        item = clause in ("SELECT", "RETURNING") and before.upper() in ("SELECT", "RETURNING", ",")
        if word == "(":
            outer.append((clause, listed))
            listed, clause = listed and item, ""
        elif word == ")" and outer:
            clause, listed = outer.pop()
        elif word.startswith(OPEN) and not (item and listed and re.fullmatch(r"[,;)]?|FROM|AS|[A-Z_]\w*", after)):
            column = word.removeprefix(OPEN)
            raise UsageError(
                f"{where}: opened({column}, …) must be an item of the SELECT list on its own: the application opens it, and the server has "
                "no key to compute with it. Return the rows to the application, or use a mechanism with functions of the server"
            )
        elif word.upper() in _CLAUSES:
            clause = word.upper()
        before = word
    return True


def _statement(
    found: sql_text.Statement, drawn: set[str], fixed: Mapping[str, int | str], where: str, dialect: str
) -> Statement:
    """A statement with `$1`, `$2` … for the variables that are drawn. `fixed`: values that never change, by name."""
    opened = opens(found.sql, where)
    order: list[str] = []
    numbers: dict[str, str] = {}

    def place(name: str) -> str:
        if name not in numbers:
            numbers[name] = another(name)
        return numbers[name]

    def another(name: str) -> str:
        # A parameter has one type: the same variable in a string is another one.
        order.append(name)
        return f"${len(order)}"

    written: list[str] = []
    before = word = this = Token("code", "")  # `word`: the last one that is more than white space or a comment
    for token in found.tokens:
        before, this = this, token
        if before.kind != "comment" and before.text.strip():
            word = before
        text, name = token.text, token.text.removeprefix(":")
        if token.kind == "word" and before.kind == "code" and before.text.endswith("\\"):
            raise UsageError(
                f"{where}: '\\{text}' is not supported: it is a command of a client, not SQL; end the statement with ';'"
            )
        if token.kind == "comment":
            written.append("" if text in (OPEN, SEAL) else text)
        elif token.kind in ("string", "name"):
            written.append(inner.replaced(token, word, drawn, fixed, another, where, dialect))
        elif token.kind == "place":
            raise UsageError(f"{where}: write ':name' and '\\set name …' instead of '{text}'")
        elif token.kind == "question" and dialect not in ("", "postgresql"):
            raise UsageError(f"{where}: write ':name' and '\\set name …' instead of '?'")
        elif token.kind != "variable":
            written.append(text)
        elif before.text == SEAL:
            if name not in drawn:
                raise UsageError(f"{where}: ':{name}' is not a variable and can't be sealed; declare it with \\set")
            written.append(place(name + SEALED))
        elif name in drawn:
            inner.check_apart(before, name, where)
            written.append(place(name))
        elif name in fixed:
            written.append(str(fixed[name]))
        elif found.body:
            written.append(text)  # a variable of that body
        else:
            raise UsageError(f"{where}: ':{name}' is not set; {nearest(name, [*drawn, *fixed])}")
    return Statement("".join(written).strip(), tuple(order), open=opened)
