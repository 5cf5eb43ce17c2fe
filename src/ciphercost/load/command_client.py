"""command_client: a command of the user's as the load client: one slice is one execution of an arm's command."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from ciphercost.host import deadlines
from ciphercost.host.command_runner import Ended, Request
from ciphercost.host.run_ownership import OWNER_MARK, RUN_MARK, identity
from ciphercost.load import command_output, command_words
from ciphercost.load.command_output import CODE, MOST_OUTPUT, Reader
from ciphercost.load.command_process import CommandProcess
from ciphercost.load.load_client import ClientMachine, SliceSampler
from ciphercost.model.command_load import SHORTEST, CommandLoad, ToolFigures
from ciphercost.model.errors import AgentError
from ciphercost.model.imported import Reading
from ciphercost.model.printable import printable
from ciphercost.model.slices import AgentSlice, Arrivals
from ciphercost.model.spec import ARMS, Arm

STARTUPS = 4.0
"""Times a tool's start-up that a slice lasts, where time allows: then at least four fifths of the time are measured."""
LONGEST_LINE = 300
"""Characters of a command's own words in an error."""
TERMINAL = re.compile(r"not a tty|/dev/tty|inappropriate ioctl|\bterminal\b", re.IGNORECASE)


class Place(msgspec.Struct, frozen=True):
    """Where an arm's command finds its server: `{host}`, `{port}`, `{ca}`."""

    host: str
    port: int
    ca: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """One execution: the slice, what else the tool reported, and what it printed."""

    answer: AgentSlice
    figures: ToolFigures
    out: str


class CommandClient:
    """Runs the commands. Use as a context manager: leaving it ends whatever they have started."""

    compiles = False
    start_skew: float | None = None
    machines: Sequence[ClientMachine] | None = None
    server_sampler: SliceSampler | None = None
    reported: ToolFigures | None = None
    """What the last slice's tool reported."""

    def __init__(
        self,
        load: CommandLoad,
        places: Mapping[Arm, Place],
        reader: Reader,
        *,
        clients: int,
        run_id: str,
        cpus: Collection[int] = (),
        log: Path | None = None,
    ) -> None:
        """`reader`: reads what a command prints. `cpus`: the CPUs that commands may use; empty: all. `run_id`: marks their processes.
        Commands inherit the whole environment: it is their way to get passwords.
        """
        self._load, self._reader, self._clients = load, reader, clients
        self.places = dict(places)
        texts = {arm: load.encrypted or load.plain if arm == "encrypted" else load.plain for arm in ARMS}
        self._words = {arm: command_words.words(f"--{arm}", text) for arm, text in texts.items()}
        self._names = {arm: command_words.placeholders(f"--{arm}", text) for arm, text in texts.items()}
        self._timed = all("seconds" in names for names in self._names.values())
        self._cpus = sorted(cpus)
        self._longest_startup = self._longest_process = 0.0
        self._process = CommandProcess({**os.environ, RUN_MARK: run_id, OWNER_MARK: identity()}, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, with whatever the commands have started."""
        self._process.close()

    def uses_port(self, arm: Arm) -> bool:
        """Whether an arm's command connects where it is told to."""
        return "port" in self._names[arm]

    def watch(self, look: Callable[[], None]) -> None:
        """Call this about once a second while a command runs. It raises RunError if its result can be of no use any more."""
        self._process.look = look

    # ── slices ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def fitting(self, seconds: float, room: float = 0.0) -> float:
        """The length of a slice, in whole seconds: at least those wanted, and longer where start-up takes much of it, up to `room`.

        Of a command without `{seconds}`: as long as it takes.
        """
        if not self._timed and self._longest_process:
            return float(math.ceil(max(SHORTEST, self._longest_process)))
        longer = min(STARTUPS * self._longest_startup, room)
        return float(math.ceil(max(SHORTEST, seconds, longer) - 1e-9))

    def own_cpu(self, answer: AgentSlice) -> tuple[int, int]:
        """CPU time of all processes of the last command, in nanoseconds: in all, and in user mode."""
        return answer.cpu_user_ns + answer.cpu_system_ns, answer.cpu_user_ns

    def slice(
        self,
        arm: str,
        seconds: float,
        *,
        discard: float = 0.2,  # noqa: ARG002 - the tool's own figures are of the whole execution
        seed: int = 0,
        rate: float = 0.0,  # noqa: ARG002 - a command has no phase at a fixed rate
        operations: int = 0,  # noqa: ARG002
        arrivals: Arrivals = "even",  # noqa: ARG002
        on_counting: Callable[[], None] | None = None,
        on_counted: Callable[[], None] | None = None,
    ) -> AgentSlice:
        """Run an arm's command once. Raises AgentError if it fails or reports nothing, RunError if it can't be run any more."""
        self.reported = None
        outcome = self.once("plain" if arm == "plain" else "encrypted", seconds, seed, on_counting, on_counted)
        self.reported = outcome.figures
        self._longest_startup = max(self._longest_startup, outcome.figures.startup_s)
        self._longest_process = max(self._longest_process, outcome.figures.process_s)
        return outcome.answer

    def once(
        self,
        arm: Arm,
        seconds: float = SHORTEST,
        seed: int = 1,
        began: Callable[[], None] | None = None,
        ended: Callable[[], None] | None = None,
        place: Place | None = None,
        limit: float = 0.0,
    ) -> Outcome:
        """Run an arm's command once. `place`: where it finds the server, if that is not the arm's own place. `limit`: seconds after which it
        is killed; 0: its own and what a slice may take longer. Raises as `slice` does.
        """
        place = place or self.places[arm]
        values: dict[str, str | int] = {
            "host": place.host,
            "port": place.port,
            "ca": place.ca,
            "seconds": math.ceil(seconds - 1e-9),
            "seed": seed % (2**31 - 1) or 1,
            "clients": self._clients,
        }
        words = command_words.filled(self._words[arm], values)
        timeout = limit or seconds + deadlines.overtime()
        if began:
            began()
        done = self._process.run(Request(argv=list(words), timeout=timeout, most=MOST_OUTPUT, cpus=self._cpus))
        if ended:
            ended()
        check(done, words[0], timeout, self._reader.shown)
        if self._load.operations:
            reading = command_output.counted(self._load.operations)
        else:
            reading = self._read(done)
        answer, figures = command_output.converted(
            reading,
            done["seconds"],
            (done["user_ns"], done["system_ns"]),
            len(self._cpus) or len(os.sched_getaffinity(0)),
            arm,
        )
        return Outcome(answer, figures, done["out"])

    def _read(self, done: Ended) -> Reading:
        """Return what it printed. Raises AgentError, with what it said on standard error, where the cause often is."""
        try:
            return self._reader.read(done["out"], done["err"])
        except AgentError as error:
            said = self._reader.shown(last_words(done["err"])) if done["out"].strip() else ""
            if not said:
                raise
            raise AgentError(f"{error}; its standard error ends with '{said}'", error.code) from None


def check(done: Ended, program: str, timeout: float, shown: Callable[[str], str]) -> None:
    """Raises AgentError, in one line, if a command did not do what makes its figures usable. `shown`: hides secrets. Pure."""
    last = shown(last_words(done["err"]) or last_words(done["out"]))
    said = f": {last}" if last else ""
    if done["error"]:
        raise AgentError(f"can't run {program}: {done['error']}", CODE)
    if done["late"]:
        raise AgentError(f"{program} did not end within {timeout:g} s and was killed{said}", deadlines.TIMEOUT)
    if done["too_much"]:
        raise AgentError(
            f"{program} printed more than {MOST_OUTPUT >> 20} MB in one execution and was killed; print the result only",
            CODE,
        )
    if done["status"]:
        how = (
            f"was killed by signal {-done['status']}"
            if done["status"] < 0
            else f"failed with exit status {done['status']}"
        )
        hint = " (it may need a terminal, and a measured command has none)" if TERMINAL.search(last) else ""
        raise AgentError(f"{program} {how}{said}{hint}", CODE)
    if left := done["left"]:
        names = ", ".join(left[:3]) + (" …" if len(left) > 3 else "")
        raise AgentError(
            f"{program} ended, but processes that it had started still ran ({names}) and were killed; it must wait for them",
            CODE,
        )


def last_words(text: str) -> str:
    """The last two lines that are not empty, as one, shortened, without what a terminal would obey. The last one alone is often only the
    consequence. Pure.
    """
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    return printable("; ".join(lines[-2:])).replace("\n", " ")[-LONGEST_LINE:]
