"""Classes of operations → the transactions of a workload, in pgbench's script language. Pure.

Each sample of a class becomes a transaction with the statements and the values of the log; the samples of a class share its weight. Only so
many are kept that a connection can prepare all their statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ciphercost.importers.statements.classes import Class, Written
from ciphercost.load import inner, script, sql_text
from ciphercost.load.flow import EVERYWHERE
from ciphercost.load.own_scripts import SCALE
from ciphercost.load.script_parts import Variable
from ciphercost.load.workloads import Transaction
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import QueryMode

MOST_CLASSES = 150
"""Classes of a workload."""
MOST_TRANSACTIONS = 400
"""Transactions of a workload, all samples of all classes."""
MOST_STATEMENTS = 1500
"""Statements of all of them: in mode `prepared`, each connection prepares each one."""
UNIT = 1000
"""Weight of an operation of the log, so that samples can share it."""
VALUE = "logged_"
"""How a variable begins that holds a value of the log."""
RARE = f"beyond the {MOST_CLASSES} most frequent kinds of operations"
UNWRITABLE = "statements that a script can't hold, such as those with a backslash outside of quotes"
_OURS = {*EVERYWHERE, SCALE}


class Scripts(NamedTuple):
    """The transactions of a workload."""

    transactions: list[Transaction]
    protocol: QueryMode
    """How most operations were sent."""
    left_out: list[tuple[str, int, Class]]
    """Why a class is not among them, and how many statements it has."""
    kept: list[tuple[str, Class]]
    """With their names."""

    @property
    def read_only(self) -> bool:
        return not any(each.writes for _, each in self.kept)


def of(classes: Sequence[Class], names: Sequence[str], dialect: str) -> Scripts:
    """`classes`: the most frequent first; `names`: theirs."""
    kept: list[tuple[str, Class, list[Transaction]]] = []
    left: list[tuple[str, int, Class]] = []
    for name, each in zip(names, classes, strict=True):
        if len(kept) >= MOST_CLASSES:
            left.append((RARE, each.statements, each))
            continue
        written = [one for sample in each.samples if (one := transaction(name, sample, dialect)) is not None]
        if written:
            kept.append((name, each, written))
        else:
            left.append((UNWRITABLE, each.statements, each))
    total = sum(each.count for _, each, _ in kept)
    transactions: list[Transaction] = []
    for _, each, samples in kept:
        share = each.count / total
        length = max(1, len(each.samples[0]))
        most = max(1, min(round(share * MOST_TRANSACTIONS), round(share * MOST_STATEMENTS / length), len(samples)))
        weight = max(1, round(each.count * UNIT / most))
        transactions += [
            Transaction(f"{one.name}, sample {number}", one.script, weight, constants=one.constants)
            for number, one in enumerate(samples[:most], 1)
        ]
    sent: dict[QueryMode, int] = {}
    for _, each, _ in kept:
        for how, count in each.sent.items():
            sent[how] = sent.get(how, 0) + count
    protocol: QueryMode = max(sent, key=lambda how: sent[how]) if sent else "simple"
    return Scripts(transactions, protocol, left, [(name, each) for name, each, _ in kept])


def transaction(name: str, sample: Sequence[Written], dialect: str) -> Transaction | None:
    """The transaction of one operation of the log; None: a script can't hold it."""
    constants: dict[str, str] = {}
    lines = []
    try:
        for statement in sample:
            text = _placed(statement, constants, dialect)
            # A comment to the end of the line would hide the semicolon.
            lines.append(text + ("\n;" if "--" in text or "#" in text else ";"))
        written = Transaction(name, "\n".join(lines) + "\n", constants=constants)
        given = [Variable(variable, "constant", value=value) for variable, value in constants.items()]
        parsed = script.parse(written.script, {}, name, given, dialect)
    except UsageError:
        return None
    return written if len(parsed.statements) == len(sample) and not parsed.flow else None


def _placed(statement: Written, constants: dict[str, str], dialect: str) -> str:
    """The statement with variables in place of `$1`, `$2` …, whose values are added to `constants`. Raises UsageError."""
    parts = []
    for token in sql_text.tokens(statement.sql, dialect, "log"):
        if token.kind == "place":
            number = int(token.text[1:])
            if not 1 <= number <= len(statement.parameters):
                raise UsageError(f"{token.text}: the log has no such value")
            value = statement.parameters[number - 1]
            if value is None:
                parts.append("NULL")
                continue
            constants[variable := f"{VALUE}{len(constants) + 1}"] = value
            parts.append(f":{variable}")
            continue
        if token.kind == "variable" or (token.kind in ("string", "name") and _OURS & {*inner.mentioned(token.text)}):
            raise UsageError(f"{token.text}: would be a variable of the script")
        parts.append(token.text)
    return "".join(parts)
