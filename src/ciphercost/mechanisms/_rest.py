"""_rest: what every mechanism at rest is asked: where an arm's data lies, what its server is told, what witnesses see. No mechanism itself.

In the order of a cell's life:

    prepare     once: the binaries that both arms run, where they must lie in a certain way
    settings    of an arm's server, whenever it is made and started
    furnish     files that an arm's cluster needs before its first start
    encrypt     statements that switch encryption on, before anything is loaded
    settled     after loading: waits until nothing is converted any more
    volume      where an arm's copy of the data lies in a session
    status      the server witness: what the server itself says, in every session
    structure   the disk witness beside the canary: what encrypted files look like
    key_taken   the key gone, or another in its place: then the server must not start

A file-system mechanism has `loaded_once`, and then `volume` and `status` are all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ciphercost.host import deadlines
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Mechanism
from ciphercost.model.slices import Finding, Witness
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.engines import Engine, Server
    from ciphercost.host.installation import Installation
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent

KeyState = Literal["missing", "wrong"]


class Rest(msgspec.Struct, frozen=True):
    """What a mechanism at rest may know of its cell."""

    engine: Engine
    installation: Installation
    factors: Mapping[str, str]
    secrets: Path
    """For keys: 0700, owned by who servers run as, gone with the run."""
    supervisor: Supervisor


class Look(msgspec.Struct, frozen=True):
    """One arm that is up, for a witness to look at."""

    arm: Arm
    rest: Rest
    volume: Volume
    server: Server
    agent: Agent
    name: str
    """The agent's arm that is connected to this server, with one connection."""
    connect: Mapping[str, Any]
    """Fields that it was connected with."""

    def query(self, sql: str) -> list[list[str | None]]:
        """Rows of one statement on this arm, which may encrypt all that there is. Raises AgentError."""
        return self.agent.query(self.name, sql, timeout=deadlines.load())


class AtRest(Mechanism):
    """Encryption of what lies on the disk: each arm has a server and data of its own."""

    layer = "rest"
    witnesses: tuple[Witness, ...] = ("server", "disk")
    loaded_once: bool = False
    """Both arms begin with copies of the same data: encryption lies below the server. Else each is loaded from the same seed."""
    direct_io: bool = True
    """False: O_DIRECT would not mean the same in both arms (encrypted ext4 falls back to the page cache), so neither uses it."""
    key_states: tuple[KeyState, ...] = ()
    """What `key_taken` can do."""

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:  # noqa: ARG002
        """Both arms are reached alike, in clear."""
        return engine.in_clear()

    def prepare(self, rest: Rest) -> Installation:
        """The installation that both arms run, made below `rest.secrets.parent` where it must differ from the one found."""
        return rest.installation

    def settings(self, arm: Arm, rest: Rest) -> dict[str, str]:  # noqa: ARG002
        """Settings of this arm's server, by its own names, for `Engine.initialise` and `Engine.start`."""
        return {}

    def furnish(self, arm: Arm, directory: Path, rest: Rest) -> None:
        """Files that the arm's cluster needs between being made and its first start. `directory`: as `Engine.initialise` made it."""

    @property
    def encrypts(self) -> bool:
        """Whether `encrypt` does anything."""
        return type(self).encrypt is not AtRest.encrypt

    def encrypt(self, look: Look) -> None:
        """Switch encryption on in the arm's first server, which holds nothing yet, in either arm; it is started anew before data is loaded."""

    def settled(self, look: Look) -> None:
        """After loading: wait until nothing is converted any more. Raises RunError when that takes too long."""

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: Rest, size: int) -> Iterator[Volume]:  # noqa: ARG002
        """Room for `size` bytes of data and for what load adds to them. Everything made is gone afterwards, also with a killed run.

        `place`: a directory's path that nobody uses; its parent is there. Raises RunError, UsageError.
        """
        yield Volume(place, (place,))

    def flush(self, volume: Volume) -> None:
        """Bring all that was written to the volume into what `backing` names, before that is searched."""

    def refuses(self, look: Look) -> tuple[bool, str] | None:  # noqa: ARG002
        """Where no server has to be started with the key: whether the data opens without it, or with another. None: not so here."""
        return None

    def status(self, look: Look) -> tuple[bool, str]:
        """What the server says of this very arm: (as the arm's name promises, in words)."""
        raise NotImplementedError

    def structure(self, look: Look) -> tuple[bool, str]:  # noqa: ARG002
        """What the arm's files look like, beside the canary: page types, headers. Nothing known: (True, "")."""
        return True, ""

    def implementation(self, look: Look) -> dict[str, str]:  # noqa: ARG002
        """What did the encrypting, for the result's `encryption`: `cipher`, `implementation`, …; `warning` is printed."""
        return {}

    def rotate(self, look: Look) -> tuple[str, ...]:  # noqa: ARG002
        """Statements that give the data, or the keys that it is encrypted with, a new key; none: this server has no such thing."""
        return ()

    def findings(self, rest: Rest) -> list[Finding]:  # noqa: ARG002
        """What this mechanism never covers, beside what the proof itself sees."""
        return []

    def left_in_clear(self, rest: Rest) -> Mapping[str, str]:  # noqa: ARG002
        """Files that were asked to be left in clear: patterns of their names relative to the data, each with what asked for it (`wal=off`).

        What lies in them is one of `findings`, and no failure; the disk witness names it.
        """
        return {}

    def searched(self, volume: Volume) -> str:  # noqa: ARG002
        """What `backing` does not show of the volume, for people; empty: all that lies on the disk is there."""
        return ""

    def advice(self, place: str) -> str:
        """The setting that closes a leak of temporary data into this file, for people; empty: none is known."""
        if self.loaded_once and "etilqs_" in place:
            return "SQLITE_TMPDIR in a directory that is encrypted too, or PRAGMA temp_store=2"
        return ""

    def key_taken(self, state: KeyState, rest: Rest, directory: Path) -> AbstractContextManager[None]:
        """While this lasts the key is not there, or another is. `directory`: the encrypted arm's, whose server is down."""
        raise NotImplementedError
