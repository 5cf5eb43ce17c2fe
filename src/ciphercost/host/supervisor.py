"""supervisor: ties what a run starts and makes outside its own process to the run's life: processes, scratch, control
groups.

The controller may be killed at any moment. So it starts nothing itself: it asks one small process, the supervisor, to
do so. The supervisor notices the controller's end and undoes everything; see `supervisor_process.py`.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ciphercost.host import journal, run_ownership
from ciphercost.host.journal import Entry
from ciphercost.host.readable_files import readable_files
from ciphercost.host.run_ownership import (
    OWNER_FILE,
    OWNER_MARK,
    RUN_MARK,
    User,
    check_run_id,
    hand_over,
    identity,
    out_of_reach,
    scratch_base,
    server_user,
)
from ciphercost.host.supervisor_channel import GONE, LIMIT_SECONDS, UNDO_SECONDS, Channel
from ciphercost.model import owned
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.printable import printable

PASSED_ON = ("PATH", "TZ", "LD_LIBRARY_PATH", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ia32cap")
"""All of the user's environment that a started server sees, so that two runs differ in little else."""

LOST = (
    "this run's supervisor process was killed (by hand, or for lack of memory), and so were the servers that it had "
    "started. The run cleaned up instead."
)
CONTINUED = "this run's supervisor process was stopped (SIGSTOP); the run continued it, so that it could clean up."


def scratch(run_id: str, supervisor: Supervisor | None = None) -> Path:
    """Make this run's scratch directory, with `secrets/` in it, and register it with the supervisor for removal at the
    end.

    Servers that run as nobody can pass through it (0711) and own `secrets/` (0700). A supervisor's run has one; asked
    again, it returns that. Raises UsageError if it can't be made, or if somebody else could write to it.
    """
    if supervisor is not None and supervisor.scratch is not None:
        return supervisor.scratch
    base = scratch_base()
    mode = 0o700 if server_user() is None else 0o711
    path = base / check_run_id(run_id)
    try:
        within = _open_base(base, mode)
        try:
            _check_reach(base)
            if supervisor is not None:
                supervisor.register(path)  # before it exists, so that it is registered at every moment
            _fill(run_id, within, mode)
        finally:
            os.close(within)
        hand_over(path / "secrets")
        if supervisor is not None:
            supervisor.scratch = path
    except owned.Distrusted as error:
        raise UsageError(
            f"{error}. Runs keep data and keys there. Set CIPHERCOST_SCRATCH to a directory that only you can write to."
        ) from None
    except OSError as error:
        raise UsageError(
            f"can't make scratch space in {base}: {error}. Set CIPHERCOST_SCRATCH to another directory."
        ) from None
    return path


def _check_reach(base: Path) -> None:
    """Raise UsageError if the user that servers run as can't pass through to the base directory of all scratch."""
    if why := out_of_reach(base.parent):
        raise UsageError(f"{why}; or set CIPHERCOST_SCRATCH to a directory that others may pass through")


def _open_base(base: Path, mode: int) -> int:
    """Make the base directory of all scratch if it is missing. Returns a descriptor of it. Raises owned.Distrusted,
    OSError.
    """
    base.parent.mkdir(parents=True, exist_ok=True)
    owned.check_above(base)
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    within = owned.open_directory(base)
    now = stat.S_IMODE(os.fstat(within).st_mode)
    if now | mode != now:
        os.fchmod(within, now | mode)
    return within


def _fill(run_id: str, within: int, mode: int) -> None:
    """Make a run's directory in the open one, with its owner's name, an empty journal and `secrets/`. Raises
    owned.Distrusted, OSError.
    """
    os.mkdir(run_id, 0o700, dir_fd=within)
    with owned.opened(run_id, within) as directory_fd:
        for name, text in ((OWNER_FILE, identity() + "\n"), (journal.FILE, "")):
            note = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory_fd)
            with os.fdopen(note, "w") as file:
                file.write(text)
        os.mkdir("secrets", 0o700, dir_fd=directory_fd)
        os.fchmod(directory_fd, mode)


@contextlib.contextmanager
def temporary(supervisor: Supervisor, name: str) -> Iterator[Path]:
    """Make a temporary directory (0700) in the scratch of the supervisor's run. If this process is killed, the
    supervisor or `clean` removes it.
    """
    path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=scratch(supervisor.run_id, supervisor)))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# ── client ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Process:
    """A process that the supervisor started."""

    def __init__(self, supervisor: Supervisor, pid: int, name: str) -> None:
        self._supervisor = supervisor
        self._status: int | None = None
        self.pid = pid
        self.name = name

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        if self._status is None:
            self._status = self._supervisor.ask("poll", pid=self.pid)["status"]
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status and return it. Raises RunError after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise RunError(f"{self.name} (process {self.pid}) did not end within {timeout:g} seconds")
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(self.pid)
                try:
                    poll = select.poll()
                    poll.register(descriptor, select.POLLIN)
                    poll.poll(1000 if deadline is None else min(1000, max(0, (deadline - time.monotonic()) * 1000) + 1))
                finally:
                    os.close(descriptor)
        return status

    def output(self) -> str:
        """The end of its output, if it has no log file."""
        text: str = self._supervisor.ask("output", pid=self.pid)["text"]
        return text

    def stop(self, timeout: float = 5.0) -> int | None:
        """Stop it: its stop signal, after `timeout` seconds SIGQUIT, then SIGKILL to it and all its descendants.
        Returns its status.
        """
        status = self._supervisor.ask("stop", LIMIT_SECONDS + timeout, pid=self.pid, timeout=timeout)["status"]
        self._status = status if self._status is None else self._status
        return self._status


class Supervisor:
    """Client of one supervisor process. A context manager: leaving it undoes everything. Safe to use from several
    threads.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = check_run_id(run_id)
        self.problems: list[str] = []
        """What could not be undone, known after `close`."""
        self.lost = False
        """Whether the supervisor process ended too early, or did not answer; known after `close`."""
        self.stopped = False
        """Whether the supervisor process was stopped (SIGSTOP) at the end, known after `close`."""
        self.scratch: Path | None = None
        """The run's scratch directory, once `scratch` has made it."""
        self._meanwhile = contextlib.ExitStack()
        self._closed = False
        self._removed: list[Path] = []
        self._groups: tuple[Path, ...] = ()
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._mark = {RUN_MARK: run_id, OWNER_MARK: identity()}
        self._channel = Channel(run_id, self._mark)

    def __enter__(self) -> Supervisor:
        self._meanwhile.enter_context(readable_files())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undo everything. Whatever remains is reported: as RunError, or on stderr if another error is being raised."""
        self.close()
        self._meanwhile.close()
        if notice := LOST if self.lost else CONTINUED if self.stopped else "":
            print(printable(f"ciphercost: {notice}"), file=sys.stderr, flush=True)
        if not self.problems:
            return
        text = f"the run could not remove everything it made: {'; '.join(self.problems)}. Run: ciphercost clean"
        if error is None:
            raise RunError(text)
        print(printable(f"ciphercost: {text}"), file=sys.stderr, flush=True)

    @property
    def pid(self) -> int:
        """Process id of the supervisor process."""
        return self._channel.process.pid

    def check(self) -> None:
        """Raise RunError if the supervisor process has ended."""
        if self._channel.process.poll() is not None:
            raise RunError(GONE)

    def check_answers(self) -> None:
        """Raise RunError if the supervisor process has been stopped for longer than a login may take. Call it repeatedly."""
        self._channel.patience.check()

    def ask(self, do: str, limit: float = LIMIT_SECONDS, **fields: object) -> dict[str, Any]:
        """Send one request and return its answer. Raises RunError if the supervisor refuses, is gone, stays stopped, or does not
        answer within `limit` seconds.
        """
        with self._lock:
            answer = self._channel.ask({"do": do, **fields}, limit)
        if not answer:
            raise RunError(GONE)
        if "error" in answer:
            raise RunError(str(answer["error"]))
        return answer

    def spawn(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: User | None = None,
        cpus: Iterable[int] | None = None,
        cgroups: Iterable[Path] = (),
        log: Path | None = None,
        stdin: Path | None = None,
        stop_signal: int = signal.SIGTERM,
        umask: int = 0o077,
        writable: Iterable[Path] | None = None,
        connects: bool = False,
    ) -> Process:
        """Start a process that can't outlive the run. Raises RunError if it can't be started.

        `env` is added to the few variables that servers see of ours; `user` and `cgroups` take effect before the
        program starts. `stdin` is a file that is opened before that, so `user` needn't be able to read it; without it,
        standard input is empty. `writable`: confine the process: it may change only these directories and the run's
        scratch, and open TCP connections only if it `connects` (see `confinement`).
        """
        command = [str(part) for part in argv]
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment.setdefault("PATH", os.defpath)
        environment |= {"LC_ALL": "C", "HOME": "/nonexistent", **(env or {}), **self._mark}
        # It can't outlive this machine, and its mark shows whose it is: without room for an entry it may start all the same.
        with contextlib.suppress(UsageError, OSError):
            self._announce(*(Entry("control group", str(path)) for path in cgroups), Entry("process", command[0]))
        try:
            answer = self.ask(
                "spawn",
                argv=command,
                env=environment,
                cwd=str(cwd) if cwd else None,
                user=user,
                cpus=sorted(cpus) if cpus is not None else None,
                cgroups=[str(path) for path in (*cgroups, *self._groups)],
                log=str(log.absolute()) if log else None,
                stdin=str(stdin.absolute()) if stdin else None,
                stop_signal=int(stop_signal),
                umask=umask,
                writable=None if writable is None else self._writable(writable),
                connects=connects,
            )
        except RunError as error:
            why = out_of_reach(Path(command[0])) if user is not None and "/" in command[0] else ""
            raise RunError(f"can't start {command[0]}: {why or error}") from None
        return Process(self, answer["pid"], Path(command[0]).name)

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout: float = 300.0,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: User | None = None,
        stdin: Path | None = None,
        umask: int = 0o077,
    ) -> str:
        """Run a command to its end and return its output. Raises RunError, with its last lines, unless it ends with
        status 0.
        """
        process = self.spawn(argv, env=env, cwd=cwd, user=user, stdin=stdin, umask=umask)
        try:
            status = process.wait(timeout)
            output = process.output()
        finally:
            process.stop(timeout=1.0)
        if status != 0:
            lines = "\n".join(output.strip().splitlines()[-20:])
            raise RunError(f"{process.name} failed with status {status}:\n{lines}")
        return output

    def _writable(self, places: Iterable[Path]) -> list[str]:
        """The run's scratch, and those places that are outside of it.

        The kernel keeps each place that a rule names in use for as long as a process has that rule, and a moment longer: too
        long for the key of an encrypted directory to be removed. Scratch contains those directories.
        """
        scratch_ = self.scratch
        outside = [
            place.absolute() for place in places if scratch_ is None or not place.absolute().is_relative_to(scratch_)
        ]
        return [str(place) for place in (*outside, *filter(None, [scratch_]))]

    def _announce(self, *entries: Entry) -> None:
        """Write what is about to be made into the run's journal. Raises UsageError, OSError."""
        with self._making:
            path = scratch(self.run_id, self) / journal.FILE
        for entry in entries:
            journal.add(path, entry)

    def _must_announce(self, *entries: Entry) -> None:
        """The same, and nothing may be made without it. Raises UsageError, RunError."""
        try:
            self._announce(*entries)
        except OSError as error:
            full = run_ownership.disk_full()
            raise RunError(f"can't write to the run's journal: {error}{full and f'; {full}'}") from None

    def register(self, path: Path) -> None:
        """Remove this file or directory at the end, without an entry in the journal."""
        self._removed.append(path.absolute())
        self.ask("remove", path=str(path.absolute()))

    def remove(self, path: Path) -> None:
        """Remove this file or directory at the end. It needn't exist yet: register first, make afterwards.

        For `ciphercost clean` to remove it if it is outside of the run's scratch, its name must begin with
        `ciphercost-RUN-` or end with `-RUN`. Raises UsageError, RunError.
        """
        self._must_announce(Entry.directory(path.absolute()))
        self.register(path)

    def undo(self, argv: Sequence[str | Path], *entries: Entry) -> Callable[[], None]:
        """Run this command at the end (`umount …`), which undoes what is about to be made, as `entries` say.
        Call the returned function if it was undone earlier by other means. Raises UsageError, RunError.
        """
        command = [str(part) for part in argv]
        self._must_announce(*entries)
        self.ask("undo", argv=command)
        return lambda: self._forget("undo", command)

    @contextlib.contextmanager
    def within(self, group: Path, limits: Mapping[str, str]) -> Iterator[None]:
        """Start every process within this context in a control group, which is made with these limits and removed
        again. Raises RunError.

        `limits`: file name -> what to write into it.
        """
        self._must_announce(Entry("control group", str(group)))
        self.ask("group", path=str(group), limits=dict(limits))
        self._groups = (*self._groups, group)
        try:
            yield
        finally:
            self._groups = tuple(other for other in self._groups if other != group)
            self.ask("ungroup", path=str(group))

    def _forget(self, kind: str, what: object) -> None:
        self.ask("forget", kind=kind, what=what)

    def close(self) -> None:
        """Undo everything, last first. Never raises: what could not be undone is in `problems`."""
        if self._closed:
            return
        self._closed = True
        self.stopped = self._channel.continued()
        try:
            self.problems = self.ask("close", UNDO_SECONDS)["problems"]
        except RunError:
            self.lost = True
        finally:
            self._channel.end(kill=self.lost)
        if self.lost:
            from ciphercost.host import leftovers  # late: it imports this module

            try:
                self.problems = leftovers.after(self.run_id, self._removed)
            except (RunError, UsageError, OSError) as error:
                self.problems = [str(error)]
