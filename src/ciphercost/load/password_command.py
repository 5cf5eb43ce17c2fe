"""password_command: a command that prints the password, for tokens that expire. It runs again when its word has become old or was refused.

The command is the user's own, from the command line: no record holds it, so nobody else's record can make one run. It may hold a secret
itself. Its word stays in this process's memory.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable
from typing import NoReturn, TypeVar

from ciphercost.host import deadlines
from ciphercost.host.client_identity import PASSPHRASE
from ciphercost.host.readable_files import own_umask
from ciphercost.model.connection import Pool
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.secret import Secret
from ciphercost.model.slices import AgentSlice

T = TypeVar("T")
OPTION, EVERY = "--password-command", "--password-every"
LONGEST = 1 << 16
"""Bytes of a password."""
REFUSED = ("28", "1045", "WRONGPASS", "NOAUTH", "335544472")
"""How an error's code begins if a server refuses the login."""


class PasswordCommand:
    """`every`: seconds for which a word is used; 0: until a server refuses it."""

    def __init__(self, command: str, every: float = 0.0) -> None:
        self._command, self._every = command, every
        self._word = ""
        self._since = 0.0
        self.runs = 0
        """How often it ran."""

    @property
    def is_old(self) -> bool:
        """Whether the next connection needs a new word."""
        return not self._word or bool(self._every and time.monotonic() - self._since >= self._every)

    def word(self) -> str:
        """The password. Raises RunError if the command prints none."""
        if self.is_old:
            self._word = self._run()
            self._since = time.monotonic()
        return self._word

    def forget(self) -> None:
        """Run the command again for the next connection."""
        self._word = ""

    def _run(self) -> str:
        self.runs += 1
        out, status = self._printed(deadlines.login())
        if status:
            how = f"exit status {status}" if status > 0 else f"signal {-status}"
            _fail(f"failed with {how}; try it in a shell")
        try:
            printed = out.decode()
        except UnicodeDecodeError:
            _fail("printed bytes that are no text (UTF-8); it must print the password alone")
        lines = printed.splitlines()
        if not printed.strip():
            _fail("printed nothing; it must print the password")
        if len(lines) > 1:
            _fail(f"printed {len(lines)} lines; it must print the password alone, on one line")
        if not lines[0].isprintable():
            _fail("printed what no password is; it must print the password alone, on one line")
        return lines[0]

    def _printed(self, seconds: float) -> tuple[bytes, int]:
        """(what the command prints, its exit status). Its own messages go to the user. Its words may hold pipes, as those of a shell."""
        kept = {name: value for name, value in os.environ.items() if name != PASSPHRASE}
        out, until = b"", time.monotonic() + seconds
        try:
            running = subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                umask=own_umask(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=kept,
                preexec_fn=_no_core_dump,
                start_new_session=True,  # so that all that it starts can be ended
            )
        except OSError as error:
            _fail(f"can't be run: {error.strerror or error}")
        with running:
            assert running.stdout
            try:
                while select.select([running.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                    part = os.read(running.stdout.fileno(), LONGEST)
                    out += part
                    if not part:
                        return out, running.wait(max(0.1, until - time.monotonic()))
                    if len(out) > LONGEST:
                        _fail(f"printed more than {LONGEST:,} bytes; it must print the password alone")
                _fail(f"did not end within {seconds:g} s; {deadlines.VARIABLE} changes that")
            except subprocess.TimeoutExpired:
                _end(running)
                _fail(f"did not end within {seconds:g} s; {deadlines.VARIABLE} changes that")
            except BaseException:
                _end(running)
                raise


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a command with all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)


def _no_core_dump() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the password


def _fail(what: str) -> NoReturn:
    raise RunError(f"{OPTION}: the command {what}")


class Token(Secret):
    """The password that a command prints: the newest one, whenever a message is written."""

    __slots__ = ("command",)

    def __init__(self, command: PasswordCommand) -> None:
        super().__init__("")
        self.command = command

    def reveal(self) -> str:
        return self.command.word()

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and other.command is self.command

    def __hash__(self) -> int:
        return id(self.command)


_given: list[PasswordCommand] = []


def use(command: str, every: float = 0.0) -> None:
    """Take the password of every server that the user runs from this command. Runs nothing yet."""
    _given[:] = [PasswordCommand(command, every)]


def found() -> Secret | None:
    """The password of the command that the user has given; None: none is given."""
    return Token(_given[0]) if _given else None


def logged_in(connection: Pool, log_in: Callable[[], T]) -> T:
    """What `log_in` returns. If the server refuses a login with an old word, it is tried once more with a new one. Raises AgentError."""
    runs = runs_of(connection)
    try:
        return log_in()
    except AgentError as error:
        if not _again(connection, error, runs):
            raise
    return log_in()


def _again(connection: Pool, error: AgentError, runs: int) -> bool:
    """Whether a refused login may succeed with a new word. `runs`: how often the command had run before that login."""
    if not isinstance(connection.password, Token) or not error.code.startswith(REFUSED):
        return False
    command = connection.password.command
    if command.runs > runs:
        return False  # the server has refused a new one
    command.forget()
    return True


def runs_of(connection: Pool) -> int:
    """How often the command of this connection's password has run; 0: it has none."""
    return connection.password.command.runs if isinstance(connection.password, Token) else 0


class Renewals:
    """The arms of an agent that open connections for operations, with a password that a command prints."""

    def __init__(self) -> None:
        self._arms: dict[str, tuple[Pool, int]] = {}

    def connected(self, arm: str, connection: Pool) -> None:
        """Note that an arm is connected."""
        self._arms.pop(arm, None)
        if connection.per_request and isinstance(connection.password, Token):
            self._arms[arm] = connection, runs_of(connection)

    def due(self, arm: str) -> Pool | None:
        """The connection to open again before a slice, because its password has become old; None: none."""
        connection, runs = self._arms.get(arm, (None, 0))
        if connection is None or not isinstance(connection.password, Token):
            return None
        command = connection.password.command
        return connection if command.is_old or command.runs > runs else None

    def ended(self, arm: str, answer: AgentSlice) -> AgentSlice:
        """The answer itself. If operations of the slice failed, the command runs again: the server may have refused their logins."""
        connection, _ = self._arms.get(arm, (None, 0))
        if answer.errors and connection is not None and isinstance(connection.password, Token):
            connection.password.command.forget()
        return answer
