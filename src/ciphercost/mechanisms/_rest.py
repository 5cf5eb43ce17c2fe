"""What every mechanism at rest provides: where an arm's data lies, its server's settings, what witnesses check.

In the order of a cell's life:

    prepare     once: the binaries that both arms run, placed as the mechanism needs them
    settings    the settings of an arm's server, whenever it is created or started
    write_cluster_files  files that an arm's cluster needs before its first start
    encrypt     statements that switch encryption on, before any data is loaded
    settled     after loading: waits until no data is being converted any more
    volume      where an arm's copy of the data lies in a session
    status      the server witness: what the server reports, in every session
    streams     which cipher encrypts which files, for its floor
    structure   the disk witness besides the canary: what encrypted files look like
    key_taken   the key is missing or replaced; the server must then not start

A file-system mechanism sets `loaded_once` and needs only `volume` and `status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from ciphercost.host import deadlines
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms import Mechanism
from ciphercost.model.cipher_work import CipherWork, Stream
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.key_rotation import Reach
from ciphercost.model.slices import Finding, Witness
from ciphercost.model.spec import Arm

if TYPE_CHECKING:
    from ciphercost.engines import Engine, Server
    from ciphercost.host.installation import Installation
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.load_client import LoadClient

KeyState = Literal["missing", "wrong"]


class AtRestContext(msgspec.Struct, frozen=True):
    """What a mechanism at rest knows about its cell."""

    engine: Engine
    installation: Installation
    factors: Mapping[str, str]
    secrets: Path
    """For keys: mode 0700, owned by the user who runs the servers, deleted with the run."""
    supervisor: Supervisor


class ArmAtRest(msgspec.Struct, frozen=True):
    """One running arm, for a witness to look at."""

    arm: Arm
    rest: AtRestContext
    volume: Volume
    server: Server
    agent: LoadClient
    name: str
    """Name of the agent's arm that is connected to this server, with one connection."""
    connect: Connection
    """How it is connected."""

    def query(self, sql: str) -> list[list[str | None]]:
        """Return the rows of one statement on this arm; it may take as long as encrypting all data.

        Raises AgentError.
        """
        return self.agent.query(self.name, sql, timeout=deadlines.load())


class Conversion(msgspec.Struct, frozen=True):
    """How existing data that are not encrypted become so, as statements on an arm's own connection. In the plain arm: how they are rewritten."""

    make: tuple[str, ...]
    """Make the data, unencrypted in both arms."""
    convert: tuple[str, ...]
    """Encrypt them, in the plain arm rewrite them in the same way."""
    drop: tuple[str, ...]
    """Remove what `make` and `convert` made, also if they failed halfway."""
    converted: Path
    """The file that then holds them."""
    encrypted: str = ""
    """Statement whose only value is Y once they are encrypted; empty: the file itself shows it."""


class NewKey(msgspec.Struct, frozen=True):
    """How the data of a running server get a new key, once."""

    reach: Reach
    how: str
    """For people: the statement, without the key."""
    statements: tuple[str, ...]
    in_use: str = ""
    """Statement whose answer changes with the key; empty: the data's files change, and the old key opens them no more."""
    files: tuple[Path, ...] = ()
    """Those of the data that are encrypted again."""


class AtRest(Mechanism):
    """Encryption of data on disk: each arm has a server and data of its own."""

    layer = "rest"
    witnesses: tuple[Witness, ...] = ("server", "disk")
    loaded_once: bool = False
    """True: both arms begin with copies of the same data (encryption lies below the server).

    False: with the same seed.
    """
    direct_io: bool = True
    """False: neither arm uses O_DIRECT, whose meaning would differ (encrypted ext4 falls back to the page cache)."""
    key_states: tuple[KeyState, ...] = ()
    """States that `key_taken` can produce."""

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        """Connect both arms in the same way, unencrypted."""
        return engine.plaintext_fields()

    def prepare(self, rest: AtRestContext) -> Installation:
        """Return the installation that both arms run. One that must differ is created beside `rest.secrets`."""
        return rest.installation

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:  # noqa: ARG002
        """Return the settings of this arm's server, by its own names, for `Engine.initialise` and `Engine.start`."""
        return {}

    def write_cluster_files(self, arm: Arm, directory: Path, rest: AtRestContext) -> None:
        """Write files that the arm's cluster needs between its creation and its first start.

        `directory`: as `Engine.initialise` created it.
        """

    @property
    def encrypts(self) -> bool:
        """Whether `encrypt` does anything."""
        return type(self).encrypt is not AtRest.encrypt

    def encrypt(self, look: ArmAtRest) -> None:
        """Switch encryption on in the arm's first server.

        Called for both arms, before data is loaded; the server restarts after.
        """

    def key_files(self, rest: AtRestContext, directory: Path) -> Mapping[str, Path] | None:  # noqa: ARG002
        """Return the files that open the encrypted arm's cluster in `directory`, by name in `rest.secrets`, so that a copy of the cluster
        can be kept with them. None: such a copy can't be kept.
        """
        return None

    def adopt_keys(self, rest: AtRestContext, directory: Path, names: Sequence[str]) -> None:
        """Make a kept copy in `directory` use its keys, which are now in `rest.secrets` by these names."""

    def settled(self, look: ArmAtRest) -> None:
        """After loading: wait until no data is being converted any more. Raises RunError if that takes too long."""

    @contextmanager
    def volume(self, arm: Arm, place: Path, rest: AtRestContext, size: int) -> Iterator[Volume]:  # noqa: ARG002
        """Provide room for `size` bytes of data and for what load adds. Everything created is removed at the end, even
        of a killed run.

        `place`: path of a directory that nobody uses; its parent exists. Raises RunError, UsageError.
        """
        yield Volume(place, (place,))

    def flush(self, volume: Volume) -> None:
        """Write everything in the volume to the files in `backing`, before the disk witness searches them."""

    def refuses(self, look: ArmAtRest) -> tuple[bool, str] | None:  # noqa: ARG002
        """Without a server to start with a wrong key: (whether the data stays closed without its key and with another,
        words).

        None: a server must be started to know.
        """
        return None

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Return the server's own report on this arm: (whether it is as the arm's name promises, words)."""
        raise NotImplementedError

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:  # noqa: ARG002
        """Judge what the arm's files look like besides the canary (page types, headers); (True, "") if unknown."""
        return True, ""

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:  # noqa: ARG002
        """Return how each kind of file is encrypted with these factors (with defaults), by the name that the server's counters give it
        (`CountsIo.io_counters`); kinds that are not encrypted are left out. Empty: it is not known, or the agents lack the cipher.
        """
        return {}

    def floors(self, factors: Mapping[str, str]) -> Sequence[CipherWork]:
        return tuple(dict.fromkeys(stream.work for stream in self.streams(factors).values()))

    def implementation(self, look: ArmAtRest) -> dict[str, str]:  # noqa: ARG002
        """Describe what encrypts, for the result's `encryption`: `cipher`, `implementation`, …; prints `warning`."""
        return {}

    def rotate(self, look: ArmAtRest) -> tuple[str, ...]:  # noqa: ARG002
        """Return statements that give the data, or the keys that encrypt it, a new key; none: the server can't."""
        return ()

    @property
    def gives_new_keys(self) -> bool:
        return type(self).new_key is not AtRest.new_key

    def new_key(self, look: ArmAtRest, table: str, number: int) -> NewKey | None:  # noqa: ARG002
        """Return how the data of the encrypted arm get a new key, for the rotation of this number; None: the server can't.

        `table`: the one that is encrypted again, where the server rotates keys by table. Raises RunError.
        """
        return None

    def conversion(self, look: ArmAtRest, table: str, directory: Path) -> Conversion | None:  # noqa: ARG002
        """Return how a copy of this table, or of the whole database, is encrypted while the server runs; None: the server can't.

        `directory`: an empty one outside of the data, for files.
        """
        return None

    def findings(self, rest: AtRestContext) -> list[Finding]:  # noqa: ARG002
        """Return what this mechanism never covers, in addition to what the proof itself detects."""
        return []

    def left_in_clear(self, rest: AtRestContext) -> Mapping[str, str]:  # noqa: ARG002
        """Return the files that a factor leaves unencrypted: file-name patterns relative to the data, with the factor
        (`wal=off`).

        Their content is one of `findings` and no failure; the disk witness names it.
        """
        return {}

    def searched(self, volume: Volume) -> str:  # noqa: ARG002
        """Return what of the volume is not in `backing`, for people; empty: everything on the disk is."""
        return ""

    def advice(self, place: str) -> str:
        """Return the setting that stops temporary data from leaking into this file, for people; empty: unknown."""
        if self.loaded_once and "etilqs_" in place:
            return "SQLITE_TMPDIR in a directory that is encrypted too, or PRAGMA temp_store=2"
        return ""

    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> AbstractContextManager[None]:
        """Context in which the key is missing or replaced. `directory`: the encrypted arm's; its server is stopped."""
        raise NotImplementedError
