"""scratch_schema: a schema on your own server that a run makes, marks as its own, and drops at its end.

Only the mark decides whose a schema is.
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
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.host import dead_runs, journal, run_ownership
from ciphercost.load.agent import Agent
from ciphercost.model.connection import Connection
from ciphercost.model.constrained_types import PREFIX
from ciphercost.model.errors import AgentError, CiphercostError, RunError
from ciphercost.model.own_tls import NONE, OwnTls
from ciphercost.model.printable import printable

STILL_MAKING_SECONDS = 5.0
"""Seconds after an interrupted CREATE in which a schema may still appear."""
Fate = Literal["living", "dead", "unseen", "unmarked"]


ENCRYPTION = ("tls", "tls_min", "tls_max", "tls_ciphers", "tls_groups", "wire_crypt", "wire_crypt_plugins")
"""Fields of the agent's `connect` that say how a connection is encrypted, beside its authorities."""
QUERIES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "require": {"postgresql": "sslmode=require", **dict.fromkeys(("mysql", "mariadb"), "ssl-mode=REQUIRED")},
        "verify-ca": {"postgresql": "sslmode=verify-ca", **dict.fromkeys(("mysql", "mariadb"), "ssl-mode=VERIFY_CA")},
        "verify-full": {
            "postgresql": "sslmode=verify-full&sslrootcert=system",
            **dict.fromkeys(("mysql", "mariadb"), "ssl-mode=VERIFY_IDENTITY"),
        },
    }
)
"""By the agent's `tls` and by engine: what a URL asks for the same."""


class Mark(msgspec.Struct, frozen=True):
    """Which run made a schema, on which machine, and which process that run is. At most 100 characters as text."""

    run: str
    host: str = ""
    process: str = ""
    """`pid:start:kernel`. Empty: unknown."""

    def __str__(self) -> str:
        return f"{self.run} on {self.host} by {self.process}"

    @property
    def fate(self) -> Fate:
        """What became of the run, as far as it can be seen from here. Only runs under this very kernel can be checked."""
        if not self.run:
            return "unmarked"
        pid, _, rest = self.process.partition(":")
        start, _, kernel = rest.partition(":")
        if not pid.isdecimal() or kernel != _process(os.getpid()).rpartition(":")[2]:
            return "unseen"
        return "living" if run_ownership.start_time(int(pid)) == start else "dead"


def _process(pid: int) -> str:
    """`marks.identity`, with this boot of this machine and the pid namespace in twelve characters."""
    pid_, start, kernel = run_ownership.identity(pid).split(":", 2)
    return f"{pid_}:{start}:{hashlib.sha256(kernel.encode()).hexdigest()[:12]}"


def mark_of(run_id: str) -> Mark:
    """The mark of a run whose process is this one."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "_", platform.node())[:32]
    return Mark(run_id, host or "unknown", _process(os.getpid()))


def read_mark(text: str) -> Mark:
    """Parse a mark as the server returns it. Marks of earlier versions hold only the run. Pure."""
    match = re.fullmatch(r"(\S+) on (\S+) by (\S+)", text)
    return Mark(*match.groups()) if match else Mark(text)


def name_for(run_id: str, number: int = 0) -> str:
    """`ciphercost_20261121_101502_0a1b`, or with a suffix `_1` … if cells that share sessions load different tables.
    Pure.
    """
    return PREFIX + run_id.replace("-", "_") + (f"_{number}" if number else "")


def note_of(engine: str, connection: Connection, name: str, run_id: str, own_tls: OwnTls = NONE) -> journal.Note:
    """The note of a schema that this process is about to create. `connection`: without the schema; `own_tls`: what the user
    named beside the URL, which `connection` may have in another form.
    """
    used = tuple(
        (field, str(value)) for field in ENCRYPTION if (value := getattr(connection, field)) not in (None, "", "off")
    )
    level = dict(used).get("tls", "")
    ca, cert, key = (str(Path(path).absolute()) if path else "" for path in (own_tls.ca, own_tls.cert, own_tls.key))
    query = QUERIES[level].get(engine, "") if level and not (level == "verify-full" and ca) else ""
    return journal.Note(
        name,
        run_id,
        run_ownership.identity(),
        engine,
        *connection.address,
        user=connection.user or "",
        database=connection.database or "",
        name="" if own_tls.server_name else connection.tls_server_name or "",
        encryption=used,
        ca=ca,
        query=query,
        cert=cert,
        key=key,
        server_name=own_tls.server_name,
        socket=connection.socket or "",
    )


def way_in(engine: str, connection: Connection) -> journal.Note | None:
    """The newest note of a schema on this server that says how a run of this machine reached it."""
    with dead_runs.opened_base() as base:
        every = list(journal.notes(base)) if base is not None else []
    here = [note for note in every if note.is_on(engine, *connection.address) and note.encryption is not None]
    # The safest one: what a run encrypted is never reached unencrypted because another run did not.
    return max(here, key=lambda note: (bool(note.encryption), note.run), default=None)


def noted(engine: str, connection: Connection) -> dict[str, journal.Note]:
    """Schemas that runs of this machine that are over were about to create on this server, and have not dropped."""
    return {note.schema: note for note in dead_runs.dead_notes() if note.is_on(engine, *connection.address)}


def say_left(sentence: str) -> None:
    print(printable(f"ciphercost: {sentence}"), file=sys.stderr)


@contextmanager
def temporary(
    engine: OwnSchema,
    connection: Connection,
    name: str,
    run_id: str,
    log: Path,
    left: Callable[[str], None] = say_left,
    *,
    own_tls: OwnTls = NONE,
) -> Iterator[None]:
    """Create a scratch schema on your server and drop it at the end, however the run ends. Raises RunError if it can't
    be made.

    `connection`: to your server. `left`: called with a sentence if dropping fails. `own_tls`: as `note_of`
    has it.
    """
    mark = mark_of(run_id)
    note = note_of(engine.name, connection, name, run_id, own_tls)
    with Agent(log=log) as agent:
        there = engine.schema(agent, connection, name)
    if there is not None:
        raise RunError(
            f"the server already has a schema {name}, and this run did not make it; ciphercost leaves it alone"
        )
    ours = {run_id}
    try:
        journal.keep(run_ownership.scratch_base(), note)
    except (OSError, CiphercostError) as error:
        raise RunError(
            f"can't note in {run_ownership.scratch_base()} that the schema {name} will be on your server: {error}. Without that, "
            "`ciphercost clean` could not find it after a power cut, so it was not created."
        ) from None
    with ended_in_order():
        try:
            with Agent(log=log) as agent:
                try:
                    engine.make_schema(agent, connection, name, str(mark))
                except AgentError as error:
                    raise _refused(engine, connection, name, error) from None
                except BaseException:
                    ours.add("")  # if interrupted, a schema may exist without its mark
                    raise
            yield
        finally:
            # Use a new connection: the other one may be what failed.
            try:
                with Agent(log=log) as agent:
                    still = engine.schema(agent, connection, name)
                    deadline = time.monotonic() + STILL_MAKING_SECONDS
                    while still is None and "" in ours and time.monotonic() < deadline:
                        # The server may still be working on a request of a closed connection.
                        time.sleep(0.2)
                        still = engine.schema(agent, connection, name)
                    if still is not None and read_mark(still).run in ours:
                        engine.drop_schema(agent, connection, name, unmarked="" in ours)
                with suppress(OSError):
                    journal.drop(run_ownership.scratch_base(), note)
            except (CiphercostError, OSError) as error:
                left(f"could not drop the schema {name} ({error}); `{note.command}` removes it")


def _refused(engine: OwnSchema, connection: Connection, name: str, error: AgentError) -> RunError:
    return RunError(
        f"can't create the schema {name} on the server: {error.words}. ciphercost makes everything in a "
        "schema of its own and drops it at the end. If the right to create one is missing: "
        f"{engine.right_to_make(connection)}"
    )


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While a run has made something on your server: treat a request to end (SIGTERM, SIGHUP) like Ctrl-C, so that it
    is undone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
