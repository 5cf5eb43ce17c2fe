"""leftover_schemas: finds, judges and drops schemas that killed runs left on your own server.

A schema stays untouched if it has no mark of ciphercost, or the mark of a run that is alive or can't be checked.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ciphercost import engines, mechanisms
from ciphercost.engines import Server, StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import authorities, journal, run_ownership, supervisor
from ciphercost.host.ports import is_loopback
from ciphercost.load import passwords
from ciphercost.load.agent import Agent
from ciphercost.load.connection_string import ConnectionString, Level
from ciphercost.load.plaintext_guard import words
from ciphercost.model.connection import Changes, Connection, TlsMode
from ciphercost.model.constrained_types import PREFIX
from ciphercost.model.errors import AgentError, CiphercostError, RunError, UsageError, nearest
from ciphercost.model.own_tls import NONE, OwnTls
from ciphercost.model.run_directory import new_id
from ciphercost.plan import connection_strings, targets
from ciphercost.provision import scratch_schema
from ciphercost.provision.prepared_cell import users_tls
from ciphercost.provision.scratch_schema import Fate, Mark, read_mark

TRIES = 10
WHY: dict[Fate, str] = {
    "dead": "it was not named",
    "living": "run {mark.run} is still running here",
    "unseen": (
        "run {mark.run} was on another machine or container ({mark.host}), or before a restart: ciphercost can't "
        "check from here whether it is still running. If it is over: {command} --schema {name}"
    ),
    "unmarked": "it has no mark of ciphercost, so ciphercost did not make it",
}


def sweep(url: str, engine_name: str = "", own_tls: OwnTls = NONE, wanted: Sequence[str] = ()) -> tuple[str, bool]:
    """Drop what dead runs left on your server, or the named schemas. Returns a report, and whether everything worked.

    Raises UsageError for a name that must not be dropped, RunError if the server can't be queried.
    """
    engine = TakesUrl.of(engines.get(engine_name or targets.target_of_url(url).partition(":")[0]))
    engine.check_url(url)
    in_transit = mechanisms.of(engine, "transit")
    for option, value in own_tls.options.items() if "tls" not in in_transit else ():
        raise UsageError(
            f"{option} {value}: {engine.title} has no TLS mechanism (mechanisms in transit: "
            f"{', '.join(in_transit) or 'none'}); remove {option}"
        )
    if own_tls.ca:
        authorities.pem(Path(own_tls.ca))
    connection_strings.identity(own_tls, engine.connection_string(url))
    if not wanted and not isinstance(engine, OwnSchema):
        return f"Nothing of ciphercost's is on that {engine.title}: ciphercost creates nothing there.", True
    owner = OwnSchema.of(engine)
    given = {"--engine": engine_name, **own_tls.options}
    command = shlex.join(
        ["ciphercost", "clean", "--url", url, *(word for pair in given.items() if pair[1] for word in pair)]
    )
    with (
        supervisor.Supervisor(new_id()) as run_supervisor,
        supervisor.temporary(run_supervisor, "logs") as logs,
        Agent(log=logs / "agent.log") as agent,
    ):
        server = engine.start(StartRequest(engine.find(url=url), logs, run_supervisor))
        connection = reached(engine, server, own_tls, logs)
        noted = scratch_schema.noted(engine.name, connection)
        if passwords.may_ask(connection) and passwords.ask_where_wanted(agent, connection, engine.refuses_anonymous):
            connection = reached(engine, server, own_tls, logs)
        try:
            there = owner.schemas(agent, connection)
            for name in (*wanted, *noted):
                if name not in there and (its := owner.schema(agent, connection, name)) is not None:
                    there[name] = its
        except AgentError as error:
            raise RunError(_refused(engine, connection, error)) from None
        marks = {name: read_mark(mark) for name, mark in there.items()}
        for name in wanted:
            check(name, marks, command)
        lines, worked = [], True
        for name, mark in marks.items():
            # This machine's own note says that the run is over, also when its mark is from before a restart.
            over = mark.fate == "dead" or (mark.fate == "unseen" and name in noted and noted[name].run == mark.run)
            if name not in wanted and (wanted or not over):
                lines.append(f"left {name}: {WHY[mark.fate].format(name=name, mark=mark, command=command)}")
                continue
            try:
                drop(owner, agent, connection, name)
                forget(noted, name)
                lines.append(f"removed schema {name} of run {mark.run}")
            except CiphercostError as error:
                lines.append(f"could not remove schema {name}: {error}")
                worked = False
        for name in noted.keys() - marks.keys():
            forget(noted, name)
    lines = lines or [f"Nothing of ciphercost's is on that {engine.title}."]
    if owner.unlisted and not wanted:
        lines.append(f"({owner.unlisted}. To remove another one, name it: --schema NAME)")
    return "\n".join(lines), worked


def reached(engine: TakesUrl, server: Server, own_tls: OwnTls, directory: Path) -> Connection:
    """The connection to your server: encrypted as the authority or the URL asks, else as the run's own note of this server says.

    Without any of them: encrypted, if the server offers that. `directory`: for a file of authorities. Raises RunError, and
    UsageError for a URL that asks for no encryption where a run's connection was encrypted.
    """
    connection = server.connection()
    asked: ConnectionString | None = getattr(server, "asked", None)
    note = scratch_schema.way_in(engine.name, connection)
    level = connection_strings.level_of(asked, own_tls.ca) if asked else ""
    by_note = msgspec.convert(dict(note.encryption), Changes) if note and note.encryption else Changes()
    if asked and level == "disable":
        if by_note:
            raise UsageError(f"{asked.said}: a run of this machine logged in to that server encrypted; remove it")
        return connection
    if own_tls.ca or own_tls.server_name or level:
        wanted: Changes = {"tls": STRENGTH[level]} if isinstance(engine, HasTls) else _by_wire()
    elif note:
        wanted = by_note
        own_tls = msgspec.structs.replace(own_tls if own_tls.cert else note.own_tls, ca=note.ca)
    else:
        wanted = _unsaid(engine, connection)
    if wanted.get("tls"):
        connection |= server.other_ports.get("tls", {}) | users_tls(server, own_tls, directory)
    return connection | wanted


STRENGTH: Mapping[Level, TlsMode] = {
    "": "verify-full",
    "prefer": "require",
    "allow": "require",
    "require": "require",
    "verify-ca": "verify-ca",
    "verify-full": "verify-full",
}
"""How a connection is encrypted of which a string asks this."""


def _by_wire() -> Changes:
    """What encrypts a connection of Firebird's."""
    return mechanisms.get("wire-crypt").connection(engines.get("firebird"), "encrypted", {}, Path())


def _unsaid(engine: TakesUrl, connection: Connection) -> Changes:
    """How to reach a server of which nothing says how runs reached it. Raises RunError."""
    if connection.socket:
        return {}
    address, port = connection.address
    on_loopback = is_loopback(address)
    try:
        offers = engine.offers_tls(address, port)
    except OSError as error:
        raise RunError(
            f"no answer from your {engine.title} at {address}:{port}: {error.strerror or error}. {engine.hint('connect')}"
        ) from None
    if offers:
        return {"tls": "require" if on_loopback else "verify-full"}  # nobody else answers on loopback
    if offers is None and not on_loopback:
        return _by_wire()
    if on_loopback:
        return {}
    raise RunError(
        f"your {engine.title} offers no TLS, and nothing here says that a run reached it unencrypted; if that is right, write "
        f"{engine.name}://…?{'sslmode=disable' if engine.name == 'postgresql' else 'ssl-mode=DISABLED'}"
    )


def _refused(engine: TakesUrl, connection: Connection, error: AgentError) -> str:
    encrypted = connection.by_tls
    how = (
        "with TLS" if encrypted else "encrypted" if connection.by_wire_crypt else "unencrypted, like a run's plain arm"
    )
    what = f". {words(str(error), error.code)}" if error.code == "tls" else ""
    if not encrypted and isinstance(engine, HasTls):
        how += "; use --ca to connect with TLS"
    return f"can't log in at your {engine.title} ({how}): {error.words}{what}"


def forget(noted: Mapping[str, journal.Note], name: str) -> None:
    """Remove the note of a schema that is gone."""
    if name in noted:
        with contextlib.suppress(OSError):
            journal.drop(run_ownership.scratch_base(), noted[name])


def drop(engine: OwnSchema, agent: Agent, connection: Connection, name: str) -> None:
    """Drop a schema. Retries for some seconds, because connections of a run that was just killed may still hold it."""
    for left in reversed(range(TRIES)):
        try:
            engine.drop_schema(agent, connection, name)
            return
        except AgentError:
            if not left:
                raise
        time.sleep(1)


def check(name: str, marks: Mapping[str, Mark], command: str) -> None:
    """Raise UsageError for a name that must not be dropped."""
    if name not in marks:
        known = nearest(name, marks) if marks else f"no schema there begins with {PREFIX}"
        raise UsageError(f"--schema {name}: no such schema on that server; {known}")
    if marks[name].fate in ("unmarked", "living"):
        raise UsageError(
            f"--schema {name}: {WHY[marks[name].fate].format(name=name, mark=marks[name], command=command)}"
        )
