"""Steps of a transaction as they are declared, and as they run: branches are jumps."""

from __future__ import annotations

from typing import NamedTuple

from ciphercost_agent_python.expression import Expression
from ciphercost_agent_python.failure import no_program

WITH_EXPRESSION = ("set", "if", "elif", "sleep")
PIPELINE = ("startpipeline", "syncpipeline", "endpipeline")
WITHOUT = ("else", "endif", *PIPELINE)


class Step(NamedTuple):
    do: str
    """As in the message, or `run`: a statement."""
    number: int = -1
    """Of the variable that `set` sets, or of the statement."""
    expression: Expression | None = None


class Act(NamedTuple):
    do: str
    """`run`, `set`, `unless`, `jump`, `sleep` or `pipeline`."""
    number: int = -1
    """Of the statement that `run` runs, of the variable that `set` sets, of the act that a jump goes to."""
    expression: Expression | None = None


class _Branches:
    """An `if` without its end: the act that decides about its current branch, -1 after `else`, and the jumps to its end."""

    def __init__(self, decides: int) -> None:
        self.decides = decides
        self.jumps: list[int] = []


def compiled(steps: list[Step]) -> list[Act]:
    """Raises Failure for steps that do not fit together."""
    acts: list[Act] = []
    branches: list[_Branches] = []
    piped = False

    def go_here(act: int) -> None:
        acts[act] = acts[act]._replace(number=len(acts))

    for step in steps:
        if step.do in ("run", "set", "sleep"):
            acts.append(Act(*step))
        elif step.do in PIPELINE:
            if piped == (step.do == "startpipeline"):
                raise no_program("the steps of pipelines don't follow one another")
            piped = step.do != "endpipeline"
            acts.append(Act("pipeline"))
        elif step.do == "if":
            branches.append(_Branches(len(acts)))
            acts.append(Act("unless", -1, step.expression))
        elif not branches:
            raise no_program("`elif`, `else` or `endif` without an `if` before it")
        elif step.do == "endif":
            ended = branches.pop()
            for act in (*([ended.decides] if ended.decides >= 0 else []), *ended.jumps):
                go_here(act)
        else:
            current = branches[-1]
            if current.decides < 0:
                raise no_program("a branch after `else`")
            current.jumps.append(len(acts))
            acts.append(Act("jump"))
            go_here(current.decides)
            current.decides = -1
            if step.do == "elif":
                current.decides = len(acts)
                acts.append(Act("unless", -1, step.expression))
    if branches or piped:
        raise no_program("an `if` or a pipeline has no end")
    return acts
