"""replies: arms are compared by what stays the same where an arm differs from itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load.agent_messages import Reply
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove.replies import SMALL, Verdict, compare

COLUMNS = ("id", "moves")


def answers(**arms: list[list[tuple[str | None, ...]]]) -> dict[Arm, list[list[Reply]]]:
    """One question's answers: for each arm a list of repetitions, each a list of rows."""
    return {arm: [[Reply(COLUMNS, [list(row) for row in rows]) for rows in arms[arm]]] for arm in ARMS}


def judged(**arms: list[list[tuple[str | None, ...]]]) -> Verdict:
    return compare(["statement 1"], answers(**arms))


def test_values_that_move_in_an_arm_may_differ_between_the_arms() -> None:
    verdict = judged(plain=[[("7", "a1")], [("7", "b2")]], encrypted=[[("7", "c3")], [("7", "d4")]])
    assert verdict == Verdict(varies=("moves (statement 1)",))
    assert "moves (statement 1)" in verdict.note


def test_values_that_stay_must_be_equal() -> None:
    verdict = judged(plain=[[("7", "a")], [("7", "b")]], encrypted=[[("8", "c")], [("8", "d")]])
    assert verdict.differs.startswith("statement 1, id: ")
    assert "different values" in verdict.differs
    assert not verdict.note
    assert judged(plain=[[("7", "a")]] * 2, encrypted=[[("7", "b")]] * 2).differs


def test_rows_columns_kinds_and_sizes_are_compared() -> None:
    two: list[tuple[str | None, ...]] = [("7", "a"), ("8", "b")]
    rows = judged(plain=[two, two], encrypted=[two[:1], two[:1]])
    assert "2 rows in the plain arm" in rows.differs
    assert "and 1 in the encrypted" in rows.differs
    numbers = judged(plain=[[("7", "1")], [("7", "2")]], encrypted=[[("7", "x")], [("7", "y")]])
    assert "plain arm returns numbers" in numbers.differs
    assert "encrypted arm text" in numbers.differs
    long = "x" * 10 * SMALL
    sizes = judged(plain=[[("7", "a")], [("7", "b")]], encrypted=[[("7", f"{long}c")], [("7", f"{long}d")]])
    assert "letters long" in sizes.differs
    other = answers(plain=[[("7", "a")]] * 2, encrypted=[[("7", "a")]] * 2)
    other["encrypted"] = [[Reply(("id", "other"), reply.rows) for reply in other["encrypted"][0]]]
    columns = compare(["statement 1"], other)
    assert "id, moves in the plain arm" in columns.differs
    assert "id, other in the encrypted arm" in columns.differs


def test_rows_that_come_and_go_are_named() -> None:
    verdict = judged(plain=[[("7", "a")], []], encrypted=[[("7", "a")], [("7", "a")]])
    assert verdict == Verdict(varies=("number of rows (statement 1)",))


VALUES = st.lists(
    st.lists(st.tuples(st.integers().map(str), st.one_of(st.none(), st.text(max_size=5))), max_size=4),
    min_size=1,
    max_size=3,
)


@given(VALUES)
def test_equal_answers_never_differ(repetitions: list[list[tuple[str | None, ...]]]) -> None:
    assert not judged(plain=repetitions, encrypted=repetitions).differs


@given(VALUES, VALUES)
def test_the_order_of_the_arms_does_not_matter(
    one: list[list[tuple[str | None, ...]]], other: list[list[tuple[str | None, ...]]]
) -> None:
    assert bool(judged(plain=one, encrypted=other).differs) == bool(judged(plain=other, encrypted=one).differs)
