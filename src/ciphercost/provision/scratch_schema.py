"""scratch_schema: a schema of our own on a server that is the user's: made for a run, marked with it, dropped at its end.

Whose a schema is, its mark alone says.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.host import marks
from ciphercost.load.agent import Agent
from ciphercost.model.errors import AgentError, CiphercostError, RunError
from ciphercost.model.terms import PREFIX

STILL_MAKING_SECONDS = 5.0
"""A schema whose making was broken off may appear so long afterwards."""
Fate = Literal["living", "dead", "unseen", "unmarked"]


class Mark(msgspec.Struct, frozen=True):
    """Which run made a schema, on which machine, and which process that run is. Not above 100 letters as text."""

    run: str
    host: str = ""
    process: str = ""
    """`pid:start:kernel`; empty: not known."""

    def __str__(self) -> str:
        return f"{self.run} on {self.host} by {self.process}"

    @property
    def fate(self) -> Fate:
        """What has become of the run, as far as can be seen from here: only what runs under this very kernel can."""
        if not self.run:
            return "unmarked"
        pid, _, rest = self.process.partition(":")
        start, _, kernel = rest.partition(":")
        if not pid.isdecimal() or kernel != _process(os.getpid()).rpartition(":")[2]:
            return "unseen"
        return "living" if marks.start_time(int(pid)) == start else "dead"


def _process(pid: int) -> str:
    """`marks.identity`, with this boot of this machine and the pid namespace in twelve letters."""
    pid_, start, kernel = marks.identity(pid).split(":", 2)
    return f"{pid_}:{start}:{hashlib.sha256(kernel.encode()).hexdigest()[:12]}"


def mark_of(run_id: str) -> Mark:
    """The mark of a run that this process is."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "_", platform.node())[:32]
    return Mark(run_id, host or "unknown", _process(os.getpid()))


def read_mark(text: str) -> Mark:
    """A mark as the server gives it back; also that of an earlier version, which is the run alone. Pure."""
    match = re.fullmatch(r"(\S+) on (\S+) by (\S+)", text)
    return Mark(*match.groups()) if match else Mark(text)


def name_for(run_id: str, number: int = 0) -> str:
    """`ciphercost_20261121_101502_0a1b`, or with `_1` … where cells that share their sessions load different tables. Pure."""
    return PREFIX + run_id.replace("-", "_") + (f"_{number}" if number else "")


def say_left(sentence: str) -> None:
    print(f"ciphercost: {sentence}", file=sys.stderr)


@contextmanager
def own(
    engine: OwnSchema,
    fields: Mapping[str, object],
    name: str,
    run_id: str,
    log: Path,
    left: Callable[[str], None] = say_left,
) -> Iterator[None]:
    """A schema of our own on the user's server, dropped at the end however that comes. Raises RunError where it can't be made.

    `fields`: of the agent's `connect`, as the user's server is reached. `left`: is told, in a sentence, that dropping it failed.
    """
    mark = mark_of(run_id)
    with Agent(log=log) as agent:
        there = engine.schema(agent, fields, name)
    if there is not None:
        raise RunError(f"the server has a schema {name} already, and this run did not make it: it is left as it is")
    ours = {run_id}
    with ended_in_order():
        try:
            with Agent(log=log) as agent:
                try:
                    engine.make_schema(agent, fields, name, str(mark))
                except AgentError as error:
                    raise _refused(engine, fields, name, error) from None
                except BaseException:
                    ours.add("")  # broken off, it may be between a schema and its mark
                    raise
            yield
        finally:
            # By a connection of its own: another may be what went wrong.
            try:
                with Agent(log=log) as agent:
                    still = engine.schema(agent, fields, name)
                    deadline = time.monotonic() + STILL_MAKING_SECONDS
                    while still is None and "" in ours and time.monotonic() < deadline:
                        # The server may still be at what a connection asked for that is gone.
                        time.sleep(0.2)
                        still = engine.schema(agent, fields, name)
                    if still is not None and read_mark(still).run in ours:
                        engine.drop_schema(agent, fields, name, unmarked="" in ours)
            except (CiphercostError, OSError) as error:
                left(f"the schema {name} could not be dropped ({error}); `ciphercost clean --url` removes it")


def _refused(engine: OwnSchema, fields: Mapping[str, object], name: str, error: AgentError) -> RunError:
    return RunError(
        f"the schema {name} could not be made on the server: {error} [{error.code}]. Everything is made in a schema of "
        f"its own and dropped at the end. If the right to make one is missing: {engine.right_to_make(fields)}"
    )


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While something of ours is on a server that isn't: being told to end is taken like Ctrl-C, so that it is undone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
