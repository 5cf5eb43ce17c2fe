"""columns: column encryption on one server with a schema per arm: keys, canaries, and access for the witnesses.

Each arm has its own canary, because both arms' data lies in the same server's files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.load import redact
from ciphercost.load.agent import Agent
from ciphercost.load.codec import PLAIN, Codec, Encrypting
from ciphercost.load.load_client import LoadClient
from ciphercost.mechanisms import _blind
from ciphercost.mechanisms._column import BLOCK, Columns, secret
from ciphercost.model.secret import Secret
from ciphercost.model.spec import Arm

TABLE = "ciphercost_canary"
LENGTH = 100
"""Length in characters of the canary table's column."""
REPEATED = "sixteen letters." * 4
"""A value of four equal blocks."""
SHOWN = 3
FLIPS = 8
"""Number of positions at which a stored value is changed, to check whether the change is detected."""


class Secrets(msgspec.Struct, frozen=True):
    """How one cell's values are encrypted."""

    mechanism: Columns
    engine: Engine
    factors: Mapping[str, str]
    key: Secret
    """In hexadecimal digits."""
    iv: bytes

    @property
    def _key(self) -> bytes:
        return bytes.fromhex(self.key.reveal())

    @property
    def codec(self) -> Encrypting:
        """The encrypted arm's codec."""
        return self.mechanism.codec(self.engine, self.factors, self._key, self.iv)

    @property
    def wrong(self) -> Encrypting:
        """The same codec with another key."""
        # Hash the key, so that a server message that shows the wrong key reveals nothing about the right one.
        other = hashlib.sha256(self._key).digest()[: len(self._key)]
        return self.mechanism.codec(self.engine, self.factors, other, self.iv)

    def of(self, arm: Arm) -> Codec:
        """How an arm stores values: the one encrypts, the other is plain."""
        return self.codec if arm == "encrypted" else PLAIN


def secrets_of(mechanism: Columns, engine: Engine, factors: Mapping[str, str], directory: Path) -> Secrets:
    """Make a key and an IV for the run in its directory of secrets."""
    own = secret(directory, "key", mechanism.key_bytes)
    for part in _blind.hidden(own):
        redact.hide(part)
    key = Secret(own.hex())
    return Secrets(mechanism, engine, factors, key, secret(directory, "iv", BLOCK))


def schema_name(arm: Arm) -> str:
    """The name of an arm's schema on a server that ciphercost starts."""
    return f"ciphercost_{arm}"


def word(canary: str, arm: Arm) -> str:
    """The canary of one arm."""
    return f"{canary}{arm[0]}"


def rows(canary: str, arm: Arm) -> dict[int, str]:
    """The canary table's rows: the canary twice, a value of equal blocks, and a different text."""
    canary_word = word(canary, arm)
    return {
        1: canary_word,
        2: canary_word,
        3: REPEATED,
        4: f"another text, {'of the same length as the canary is, '[: len(canary_word)]}",
    }


def fill(agent: Agent, name: str, secrets: Secrets, canary: str, arm: Arm, side: Arm | None = None) -> None:
    """Create and fill an arm's canary table through the agent's arm `name`, in the schema that it is connected to. `side`: what the
    mechanism does for the arm; None: what its name says.
    """
    codec = secrets.of(side or arm)
    agent.query(name, f"CREATE TABLE {TABLE} (id integer NOT NULL, word {codec.column(LENGTH)})")
    for number, text in rows(canary, arm).items():
        stored = codec.seal(f"'{text}'", LENGTH)
        agent.query(name, f"INSERT INTO {TABLE} (id, word) VALUES ({number}, {stored})")


class ArmView(msgspec.Struct, frozen=True):
    """One arm, as a witness may examine it."""

    arm: Arm
    secrets: Secrets
    canary: str
    agent: LoadClient
    name: str
    """The agent's arm that is connected to this arm's schema."""
    places: tuple[Path, ...] = ()
    """Where the server's files are. Empty: they can't be read."""
    side: Arm | None = None
    """What the mechanism does for the arm, if that is not the arm's own name."""

    @property
    def encrypts(self) -> bool:
        """Whether the arm's values are encrypted."""
        return (self.side or self.arm) == "encrypted"

    def text(self, codec: Codec) -> str | None:
        """The canary row's text, decrypted by the server or, if the server has no key, here. Raises AgentError."""
        if isinstance(codec, Encrypting) and codec.client_side:
            return bytes.fromhex(str(self.opened(codec))).decode()
        return self.ask(codec.open("word", LENGTH))

    def opened(self, codec: Encrypting, stored: bytes = b"") -> str | None:
        """The decrypted bytes of the canary row, or of `stored`, in hexadecimal digits. Raises AgentError."""
        raw = self.ask(codec.raw(codec.literal(stored) if stored else "word"))
        return None if raw is None else codec.opened(bytes.fromhex(raw)).hex()

    def ask(self, expression: str, number: int = 1) -> str | None:
        """The value of one expression for a row of the canary table. Raises AgentError."""
        answer = self.agent.query(self.name, f"SELECT {expression} FROM {TABLE} WHERE id = {number}")
        return answer[0][0] if answer else None
