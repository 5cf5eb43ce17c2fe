"""replies: compares two arms' answers to the same questions where an arm's own answers differ from each other. Pure.

A value that is the same each time in both arms must be the same in both. One that differs from call to call in an arm
(a time, a session's number, a token in a page) is compared by what it is: text or number, and how long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ciphercost.load.agent_messages import Reply
from ciphercost.model.spec import ARMS, Arm

Replies = Sequence[Reply]
"""An arm's answers to one question, in the order of asking."""
SPREADS = 2.0
"""How many times an arm's own spread the arms' sizes may differ by."""
SMALL = 16
"""Letters by which sizes may always differ: few repetitions show a small spread by chance."""


class Verdict(msgspec.Struct, frozen=True):
    """What a comparison of both arms' answers found."""

    differs: str = ""
    """Why the arms do not return the same. Empty: they do, as far as it can be compared."""
    varies: tuple[str, ...] = ()
    """What differs from call to call within an arm, as a user would find it: `now (statement 1)`."""
    remark: str = ""
    """Another sentence for the user about how the arms were compared."""

    @property
    def note(self) -> str:
        """One sentence for the user, if values differ from call to call; else empty."""
        if self.differs or not self.varies:
            return "" if self.differs else self.remark
        return (
            f"values differ from call to call ({', '.join(self.varies)}): the same arm answers the same operations "
            "differently. So the arms were compared by the number of rows, the columns, the sizes, and the values that stay "
            "the same"
        )


def compare(asked: Sequence[str], replies: Mapping[Arm, Sequence[Replies]]) -> Verdict:
    """Compare both arms' answers. `asked`: by question, what its answer is called; `replies`: by question, each answer of the
    arm.

    Questions of the same name are judged together: they are one statement with different values.
    """
    varies: dict[str, None] = {}
    for name in dict.fromkeys(asked):
        numbers = [number for number, asked_name in enumerate(asked) if asked_name == name]
        questions = [{arm: replies[arm][number] for arm in ARMS} for number in numbers]
        if differs := _shape(name, questions):
            return Verdict(differs=differs)
        counts = [[len(answer.rows) for answer in question[arm]] for question in questions for arm in ARMS]
        if any(len(set(row_counts)) > 1 for row_counts in counts):
            # Rows that come and go can't be compared one by one.
            varies[f"number of rows ({name})"] = None
            continue
        for column, title in enumerate(_titles(questions)):
            values = [
                {arm: [_column(answer, column) for answer in question[arm]] for arm in ARMS} for question in questions
            ]
            if differs := _column_differs(values):
                return Verdict(differs=f"{name}, {title}: {differs}")
            if any(_moves(question[arm]) for question in values for arm in ARMS):
                varies[f"{title} ({name})"] = None
    return Verdict(varies=tuple(varies))


def _shape(name: str, questions: Sequence[Mapping[Arm, Replies]]) -> str:
    """How the arms' answers differ in their columns or in a constant number of rows."""
    for question in questions:
        plain, encrypted = (
            {answer.columns for answer in question[arm] if answer.rows or answer.columns} for arm in ARMS
        )
        if plain and encrypted and not plain & encrypted:
            return (
                f"{name}: the columns are {_words(plain)} in the plain arm and {_words(encrypted)} in the encrypted arm"
            )
        few, many = ({len(answer.rows) for answer in question[arm]} for arm in ARMS)
        if len(few) == len(many) == 1 and few != many:
            return f"{name}: {few.pop()} rows in the plain arm and {many.pop()} in the encrypted arm"
    return ""


def _words(columns: set[tuple[str, ...]]) -> str:
    return ", ".join(next(iter(columns)))


def _titles(questions: Sequence[Mapping[Arm, Replies]]) -> list[str]:
    """The columns' names; those without one are numbered."""
    every = [answer for question in questions for arm in ARMS for answer in question[arm]]
    width = max((len(row) for answer in every for row in answer.rows), default=0)
    names = next((answer.columns for answer in every if len(answer.columns) == width), ())
    return [
        names[number] if number < len(names) and names[number] else f"column {number + 1}" for number in range(width)
    ]


def _column(reply: Reply, number: int) -> tuple[str, ...]:
    """A column's values in no particular order."""
    return tuple(
        sorted(
            "\\N" if (value := row[number] if number < len(row) else None) is None else f"={value}"
            for row in reply.rows
        )
    )


Values = Sequence[tuple[str, ...]]
"""A column's values, by repetition."""


def _moves(values: Values) -> bool:
    return len(set(values)) > 1


def _column_differs(questions: Sequence[Mapping[Arm, Values]]) -> str:
    """How a column differs between the arms. Values that stay must be equal, others alike."""
    if not any(_moves(question[arm]) for question in questions for arm in ARMS):
        if any(question["plain"][0] != question["encrypted"][0] for question in questions):
            return "the arms return different values, each arm the same ones every time"
        return ""
    kinds: dict[Arm, set[str]] = {
        arm: {_kind(value) for question in questions for values in question[arm] for value in values} - {"NULL"}
        for arm in ARMS
    }
    if kinds["plain"] and kinds["encrypted"] and not kinds["plain"] & kinds["encrypted"]:
        words = {arm: " and ".join(sorted(kinds[arm])) for arm in ARMS}
        return f"the plain arm returns {words['plain']}, the encrypted arm {words['encrypted']}"
    sizes = [
        {arm: [sum(len(value) - 1 for value in values) for values in question[arm]] for arm in ARMS}
        for question in questions
    ]
    spread = max(max(sizes_by_arm[arm]) - min(sizes_by_arm[arm]) for sizes_by_arm in sizes for arm in ARMS)
    most = max(SPREADS * spread, SMALL * max(len(question["plain"][0]) for question in questions))
    for sizes_by_arm in sizes:
        plain, encrypted = (sum(sizes_by_arm[arm]) / len(sizes_by_arm[arm]) for arm in ARMS)
        if abs(plain - encrypted) > most:
            return (
                f"its answers are {plain:,.0f} letters long in the plain arm and {encrypted:,.0f} in the encrypted arm, but within "
                f"an arm they differ by {spread:,} at most"
            )
    return ""


def _kind(value: str) -> str:
    if value == "\\N":
        return "NULL"
    return "numbers" if re.fullmatch(r"=[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", value) else "text"
