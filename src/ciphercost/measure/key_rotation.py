"""key_rotation: the encrypted arm's data get a new key, again and again, on a fresh server, while one client reads. I/O, no statistics.

An embedded database has no running traffic: a new key needs the database for itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import msgspec

from ciphercost.host import deadlines
from ciphercost.load.agent import Agent
from ciphercost.measure.operations.traffic import QUIET_SECONDS, SLICE_SECONDS, meanwhile
from ciphercost.measure.session import Session
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.errors import AgentError, RunError, Unproven
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.slices import AgentSlice
from ciphercost.plan.key_rotations import rotations
from ciphercost.prove.destructive_test import keys_kept
from ciphercost.provision import server_pairs
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

TABLE = "document"
STATEMENTS, TRAFFIC, OLD = "rotation", "encrypted", "old-key"
"""Names of the agents' connections."""


def phase(session: Session, bench: PreparedCell, pair: ServerPair) -> Generator[None]:
    """The rotations of a session; nothing unless the cell's workload asks for them. Their server is none of the session's."""
    if not bench.planned.rotates_key:
        return
    measured = session.measured
    session.display.phase(measured.number, session.number, "key rotation")
    session.rest()
    with keys_kept(bench.shared.secrets), bench.shared.apart(), contextlib.ExitStack() as stack:
        name = f"{session.number}-rotate"
        fresh = server_pairs.start(bench, name, pair.server_cpus, pair.agent_cpus, tuple(pair.connect))
        rotating = stack.enter_context(Rotations(bench, fresh, measured.seed))
        for number in range(rotations(measured.spec.mode)):
            record = rotating.one(number)
            measured.record.append_beside(msgspec.structs.replace(record, cell=measured.number, session=session.number))
        rotating.end()
    yield


class Rotations:
    """Gives the data of one server new keys."""

    def __init__(self, bench: PreparedCell, fresh: ServerPair, seed: int) -> None:
        mechanism = bench.mechanism
        assert isinstance(mechanism, AtRest)
        self._bench, self._mechanism, self._seed, self._slices = bench, mechanism, seed, 0
        self._fresh = fresh
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Rotations:
        with contextlib.ExitStack() as stack:
            connection = self._fresh.connect["encrypted"].single
            self._statements = stack.enter_context(self._bench.helper(connection))
            self._statements.connect(STATEMENTS, connection)
            self._look = self._fresh.look("encrypted", self._statements, STATEMENTS, connection)
            self._traffic: Agent | None = None
            if not self._bench.engine.embedded:
                self._traffic = stack.enter_context(self._bench.agent(self._fresh))
                self._traffic.program(self._bench.program.seeded(self._seed))
                self._traffic.connect(TRAFFIC, connection)
            _encrypted(self._mechanism, self._look, "before its first new key")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def one(self, number: int) -> KeyRotationSlice:
        """One rotation, as of cell 0 and session 1. Raises RunError if it fails, Unproven if the key is the old one afterwards."""
        new = self._mechanism.new_key(self._look, TABLE, number)
        assert new is not None
        quiet = self._reads(QUIET_SECONDS).done / QUIET_SECONDS if self._traffic else 0.0
        before = self._shown(new.in_use, new.files)
        done = spent = 0.0
        if self._traffic:
            took, done, spent = meanwhile(
                lambda: self._rotate(new.statements, new.how), lambda: self._reads(SLICE_SECONDS), least=1
            )
        else:
            took = self._rotate(new.statements, new.how)
        if self._shown(new.in_use, new.files) == before:
            raise Unproven(f"server witness, encrypted arm: after {new.how} the key in use is still the old one")
        return KeyRotationSlice(
            cell=0,
            session=1,
            number=number,
            reach=new.reach,
            how=new.how,
            seconds=took,
            bytes=sum(path.stat().st_size for path in new.files),
            quiet=quiet,
            meanwhile=done / spent if spent else 0.0,
            meanwhile_s=spent,
        )

    def end(self) -> None:
        """Check that the data are encrypted after all, and that the key which they had at first opens them no more, if they lie in a file that
        opens by its key. Raises Unproven.
        """
        _encrypted(self._mechanism, self._look, "after its last new key")
        if not self._bench.engine.embedded:
            return
        self._statements.disconnect(STATEMENTS)
        try:
            self._statements.connect(OLD, self._look.connect)
            self._statements.query(OLD, f"SELECT count(*) FROM {TABLE}")
        except AgentError:
            return
        raise Unproven("client witness, encrypted arm: after a new key, the old one still opens the database")

    def _rotate(self, statements: Sequence[str], how: str) -> float:
        """Seconds that a rotation takes. Raises RunError."""
        began = time.monotonic()
        try:
            for statement in statements:
                self._statements.query(STATEMENTS, statement, timeout=deadlines.load())
        except AgentError as error:
            raise RunError(f"key rotation: {how}: {error.words}") from None
        return time.monotonic() - began

    def _reads(self, seconds: float) -> AgentSlice:
        """A slice of the running traffic. Raises RunError if a read fails: what is left would count as slower traffic."""
        assert self._traffic is not None
        self._slices += 1
        answer = self._traffic.slice(TRAFFIC, seconds, discard=0.0, seed=self._seed + self._slices)
        if answer.errors:
            raise RunError(f"key rotation: {answer.errors} reads of the running traffic failed: {answer.first_error}")
        return answer

    def _shown(self, statement: str, files: Sequence[Path]) -> object:
        """What changes with the key: the server's answer, or the files' contents."""
        return self._look.query(statement) if statement else list(_digests(files))


def _encrypted(mechanism: AtRest, look: ArmAtRest, when: str) -> None:
    """Raises Unproven unless the server reports that its data are encrypted."""
    passed, detail = mechanism.status(look)
    if not passed:
        raise Unproven(f"server witness, encrypted arm, {when}: {detail}")


def _digests(files: Sequence[Path]) -> Iterator[str]:
    for path in files:
        with path.open("rb") as file:
            yield hashlib.file_digest(file, "sha256").hexdigest()
