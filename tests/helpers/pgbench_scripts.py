"""pgbench_scripts: scripts in pgbench's language, made up from a seed, that no draw decides: pgbench and ciphercost must send the same."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from ciphercost.load.drawn import with_constants
from ciphercost.load.pgbench import evaluate, parser
from ciphercost.load.pgbench.expression import Value
from ciphercost.load.pgbench.source import Source

BINARY = ["+", "-", "*", "/", "%", "&", "|", "#", "<<", ">>"]
COMPARISONS = ["=", "<>", "!=", "<", "<=", ">", ">="]
SEEDS = [0, 1, 42, -7, 2**62]


class Expressions:
    """Texts of expressions, most with a value."""

    def __init__(self, seed: int, variables: list[str] | None = None) -> None:
        self._draw = random.Random(seed)
        self.variables = variables or []

    def number(self, depth: int) -> str:
        """A number, an integer mostly."""
        draw = self._draw
        if depth <= 0 or draw.random() < 0.15:
            atoms = [str(draw.randint(0, 9)), str(draw.randint(0, 10**6)), f"{draw.random():.3f}", "1.5e2", ".25", "7."]
            return draw.choice([*atoms[:2] * 3, *atoms[2:], *(f":{name}" for name in self.variables * 2)])
        left, right = self.number(depth - 1), self.number(depth - 1)
        match draw.randrange(14):
            case 0:
                return f"-{left}" if draw.random() < 0.5 else f"+ {left}"
            case 1:
                return f"~{self._whole(left)}"
            case 2:
                return f"({left})"
            case 3:
                return f"case when {self.truth(depth - 1)} then {left} else {right} end"
            case 4:
                second = f"when {self.truth(depth - 1)} then {right}"
                return f"CASE WHEN {self.truth(depth - 1)} THEN {left} {second} ELSE {self.number(0)} END"
            case 5:
                return f"{draw.choice(['greatest', 'least', 'LEAST'])}({left}, {right}, {self.number(0)})"
            case 6:
                return f"{draw.choice(['abs', 'int', 'double'])}({left})"
            case 7:
                return f"mod({self._whole(left)}, 1 + abs({self._whole(right)} % 1000))"
            case 8:
                seed = draw.choice(SEEDS)
                return f"{draw.choice(['hash', 'hash_murmur2', 'hash_fnv1a'])}({self._whole(left)}, {seed}) % 1000"
            case 9:
                return f"permute({self._whole(left)}, {draw.randint(1, 5000)}, {draw.choice(SEEDS)})"
            case 10:
                return f"random({draw.choice(['5, 5', '-3, -3', '0, 0'])})"
            case 11:
                return f"int(sqrt(abs({left})) + pi() + ln(2.5) + exp(0.5) + power(2, 3.5))"
            case _:
                operator = draw.choice(BINARY)
                blank = draw.choice(["", " "])
                return f"{left}{blank}{operator}{blank}{right}" if operator != "-" else f"{left} - {right}"

    def _whole(self, text: str) -> str:
        return f"int({text})"

    def truth(self, depth: int) -> str:
        """A condition."""
        draw = self._draw
        if depth <= 0:
            return draw.choice(["true", "FALSE", f"{self.number(0)} > {self.number(0)}"])
        match draw.randrange(6):
            case 0:
                return f"not {self.truth(depth - 1)}"
            case 1:
                return f"({self.truth(depth - 1)} {draw.choice(['and', 'OR'])} {self.truth(depth - 1)})"
            case 2:
                return f"{self.truth(depth - 1)} {draw.choice(['and', 'or'])} {self.truth(depth - 1)}"
            case 3:
                test = draw.choice(
                    ["is null", "is not null", "isnull", "notnull", "IS TRUE", "is not false", "is false"]
                )
                return f"({self.number(depth - 1)}) {test}"
            case 4:
                return f"(null and {self.truth(0)}) is null"
            case _:
                return f"{self.number(depth - 1)} {draw.choice(COMPARISONS)} {self.number(depth - 1)}"

    def valued(self, known: dict[str, str], depth: int = 3) -> Iterator[str]:
        """Expressions, without end, that have a value as far as this process can tell. `known`: the variables' values."""
        while True:
            text = self.number(depth) if self._draw.random() < 0.7 else self.truth(depth)
            if fails(text, known) is None:
                yield text


def fails(text: str, known: dict[str, str]) -> str | None:
    """Why an expression has no value; None: it has one, or this process can't tell."""
    source = Source("made up", text)
    try:
        value = evaluate.evaluate(with_constants(parser.parse(source, 0)[0], known, source))
    except evaluate.Failure as failure:
        return str(failure)
    except evaluate.Undecided:
        return "it may divide by zero" if "/" in text else None
    return "no SQL has this number" if isinstance(value, float) and not math.isfinite(value) else None


LITERALS = [
    "E'a\\'b;c'", "$q$it's; fine$q$", "$$;'$$", '"x" FROM (SELECT 1 AS "x") t', "1 /* a ; /* b */ c ; ' */",
    "'12:30:00'::time", "'a::b'", "1::int8::text", "ARRAY[1,2,3]::int[]", "'\\'", "U&'\\0041'", "'--', 1",
]  # fmt: skip
"""What a statement may hold without a variable."""
UNSET = "'it''s; :not_set'"
"""What pgbench leaves alone where statements travel as text. Otherwise it makes a parameter of it, which no statement takes."""


class Scripts:
    """Scripts that end with the same statements whoever runs them."""

    def __init__(self, seed: int, *, simple: bool) -> None:
        """`simple`: statements travel as text, so there are no pipelines."""
        self._literals = [*LITERALS, UNSET] if simple else LITERALS
        self._draw = random.Random(seed)
        self._expressions = Expressions(seed)
        self._pipelines = not simple
        self._names = (f"v{number}" for number in itertools.count())

    def script(self) -> str:
        """The lines of one script."""
        self._known: dict[str, str] = {}
        """Variables with a value that this process knows."""
        self._unknown: list[str] = []
        """Whole numbers that it does not know."""
        return "".join(self._lines(3))

    def _lines(self, depth: int) -> Iterator[str]:
        draw = self._draw
        for _ in range(draw.randint(2, 4)):
            match draw.randrange(10):
                case 0 | 1 | 2:
                    yield self._set()
                case 3 if depth:
                    yield from self._branches(depth - 1)
                case 4:
                    yield self._stored()
                case 5 if self._pipelines and draw.random() < 0.5:
                    yield f"\\startpipeline\n{self._select()}\\syncpipeline\n{self._select()}{self._select()}\\endpipeline\n"
                case 6:
                    yield f"\\sleep {draw.choice(['10 us', '10us', '0 ms', '0'])}\n"
                case _:
                    yield self._select()

    def _set(self) -> str:
        name = next(self._names)
        if self._unknown and self._draw.random() < 0.3:
            text = f":{self._draw.choice(self._unknown)} % 1000 + 7"
            self._unknown.append(name)
            return f"\\set {name} {text}\n"
        self._expressions.variables = [name for name, text in self._known.items() if text[-1].isdigit()]
        text = next(self._expressions.valued(self._known, self._draw.randint(1, 3)))
        source = Source("made up", text)
        try:
            value = evaluate.evaluate(with_constants(parser.parse(source, 0)[0], self._known, source))
        except evaluate.Undecided:
            self._unknown.append(name)
            return f"\\set {name} int(case when {text} is null then 0 else 1 end) + hash(7, 5)\n"
        if value is None:
            return ""
        self._known[name] = written(value)
        if self._draw.random() < 0.2:
            text = text.replace(" ", " \\\n  ", 1) if "'" not in text else text
        return f"\\set {name} {text}\n"

    def _branches(self, depth: int) -> Iterator[str]:
        known, unknown = dict(self._known), list(self._unknown)
        for word in ["if", *["elif"] * self._draw.randint(0, 2), *["else"] * self._draw.randint(0, 1)]:
            condition = f" {self._condition()}" if word != "else" else ""
            yield f"\\{word}{condition}\n"
            yield from self._lines(depth)
            # What a branch sets may be unset after it.
            self._known, self._unknown = dict(known), list(unknown)
        yield "\\endif\n"

    def _condition(self) -> str:
        if self._unknown and self._draw.random() < 0.4:
            return f":{self._draw.choice(self._unknown)} % 10 > 4"
        self._expressions.variables = [name for name, text in self._known.items() if text[-1].isdigit()]
        return next(self._expressions.valued(self._known, self._draw.randint(1, 2)))

    def _stored(self) -> str:
        name, how = next(self._names), self._draw.choice(["gset", "aset"])
        number = self._draw.randint(-100, 100)
        self._unknown.append(f"{name}_n")
        end = self._draw.choice([" ", " ;\n", "\n"])
        return f"SELECT {number} AS n, {self._draw.choice(LITERALS[:2])} AS t{end}\\{how} {name}_\n"

    def _select(self) -> str:
        draw = self._draw
        names = [*self._known, *self._unknown]
        items = [f":{name}" for name in draw.sample(names, min(len(names), draw.randint(0, 3)))]
        items = [
            draw.choice(["{}", "({})::text", "coalesce({}, {})", "/* c */ {}"]).replace("{}", item) for item in items
        ]
        return f"SELECT {', '.join([*items, draw.choice(self._literals)])};\n"


def written(value: Value) -> str:
    """A value as pgbench writes it into a statement."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.15g}"
    return str(value)
