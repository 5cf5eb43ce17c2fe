"""Pairs of arms of PostgreSQL at rest: which server, and what encrypts its data, with 256-bit keys unless a study asks for others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ciphercost import engines, mechanisms
from ciphercost.engines.postgresql import major
from ciphercost.host.installation import Installation
from ciphercost.mechanisms._postgresql import initdb_help
from ciphercost.mechanisms.cybertec_tde import BITS_OPTION
from ciphercost.mechanisms.edb_tde import FIRST_WITH_256
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.slices import Proof
from ciphercost.model.study import StudyFigure

FILE_SYSTEMS = ("fscrypt", "gocryptfs")
"""Encrypt below stock PostgreSQL if no server with TDE is given."""
VENDORS = ("pg-tde", "cybertec-tde", "edb-tde")
"""TDE built into a server."""
BITS, SHORT_BITS = 256, 128
"""Longest key length of TDE, and the longest of some servers."""
FACTORS_256: Mapping[str, Mapping[str, str]] = {
    "pg-tde": {"cipher": "aes_256"},
    "cybertec-tde": {"bits": "256"},
    "edb-tde": {"bits": "256"},
    "fscrypt": {"mode": "aes-256-xts"},
    "gocryptfs": {"cipher": "aes-gcm"},
}
"""AES with 256 bits, by the names of each mechanism."""
_BITS = re.compile(r"AES[-_](?:[A-Z]+-)?(128|192|256)|\b(128|192|256) bits", re.IGNORECASE)
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")


class Pair(NamedTuple):
    """One server and what encrypts its data: two arms."""

    server: str
    """The user's name for it; empty: it has none."""
    bindir: str
    mechanism: str
    factors: Mapping[str, str]

    @property
    def name(self) -> str:
        return name_of(self.server, self.mechanism)


def name_of(server: str, mechanism: str) -> str:
    """Name of a pair in the record and in every table. Pure."""
    return f"{server} {mechanism}".strip()


def named(text: str) -> tuple[str, str]:
    """(NAME, DIR) of `NAME=DIR`, or ("", DIR). Pure."""
    match = _NAMED.fullmatch(text)
    return (match[1], match[2]) if match else ("", text)


def bindirs(given: str | Sequence[str]) -> tuple[str, ...]:
    """Values of `--bindir`. Raises UsageError if two servers can't be told apart."""
    servers = (given,) if isinstance(given, str) else tuple(given)
    servers = tuple(filter(None, servers))
    names = [named(text)[0] for text in servers]
    if len(servers) > 1 and "" in names:
        raise UsageError(f"--bindir {servers[names.index('')]}: with several servers each needs a name; write NAME=DIR")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--bindir: two servers are named {name}; give each its own name")
    return servers


def chosen(text: str) -> tuple[str, ...]:
    """Mechanisms of `--mechanism A,B`. Raises UsageError with the nearest name."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in FILE_SYSTEMS:
            raise UsageError(f"--mechanism {name}: {nearest(name, FILE_SYSTEMS)}")
    return names


def pairs(given: Sequence[str], file_systems: Sequence[str]) -> list[Pair]:
    """One pair for each server and what encrypts it. `file_systems`: chosen mechanisms for a server without TDE; empty: none chosen.

    Raises UsageError if a server has no TDE and no mechanism was chosen, or if a chosen mechanism has no server to encrypt,
    MissingServer if there is no server.
    """
    if not given:
        return [Pair("", "", name, factors_of(name, "")) for name in file_systems or FILE_SYSTEMS]
    result = []
    for text in given:
        name, bindir = named(text)
        tde = mechanism_of(bindir, bool(file_systems))
        result += [
            Pair(name, bindir, mechanism, factors_of(mechanism, bindir))
            for mechanism in ((tde,) if tde else file_systems)
        ]
    if file_systems and all(pair.mechanism in VENDORS for pair in result):
        raise UsageError(
            f"--mechanism {','.join(file_systems)}: every server given with --bindir has TDE of its own, which the study measures, so nothing "
            "would use it; leave --mechanism out, or add a server without TDE"
        )
    return result


def stand_ins(names: Iterable[str]) -> list[str]:
    """The mechanisms that aren't part of a server, each once. Pure."""
    return [name for name in dict.fromkeys(names) if name not in VENDORS]


def stand_ins_of(figures: Iterable[StudyFigure]) -> list[str]:
    """Those of figures whose operation ends with its mechanism. Pure."""
    return stand_ins(figure.operation.split()[-1] for figure in figures)


def standing_in(names: Sequence[str], published: str = "it") -> str:
    """`gocryptfs stands in for it`. Pure."""
    return f"{' and '.join(names)} {'stands' if len(names) == 1 else 'stand'} in for {published}"


def mechanism_of(bindir: str, others: bool) -> str:
    """The TDE of the binaries in `bindir`; empty: none, and `others` says that something else encrypts there.

    Raises UsageError if it has none and nothing else encrypts, MissingServer if there is no server.
    """
    installation = engines.get("postgresql").find(bindir=bindir)
    reasons = []
    for name in VENDORS:
        lack: str = mechanisms.get(name).lacks(Path(installation.location))  # type: ignore[attr-defined]
        if not lack:
            return name
        reasons.append(f"{name}: {lack}")
    if others:
        return ""
    raise UsageError(
        f"--bindir {bindir}: this PostgreSQL {installation.version} has no known TDE ({'; '.join(reasons)}). "
        "Add --mechanism fscrypt to encrypt with the file system below it, or leave --bindir out."
    )


def factors_of(mechanism: str, bindir: str) -> dict[str, str]:
    """AES-256 by the mechanism's names; for a server with shorter keys only, its longest."""
    wanted = dict(FACTORS_256.get(mechanism, {}))
    place = bindir or mechanisms.get(mechanism).bindir()
    if (
        wanted
        and place
        and mechanism in VENDORS
        and not has_256(mechanism, engines.get("postgresql").find(bindir=place))
    ):
        return {name: value.replace(str(BITS), str(SHORT_BITS)) for name, value in wanted.items()}
    return wanted


def bits_in(proofs: Iterable[Proof]) -> int | None:
    """Length of the AES key that the encrypted arm's witnesses report; None if none of them reports it. Pure."""
    for proof in proofs:
        if proof.arm == "encrypted" and proof.passed and (match := _BITS.search(proof.detail)):
            return int(match[1] or match[2])
    return None


def asked_bits(mechanism: str, factors: Mapping[str, str]) -> dict[str, float]:
    """The key length requested for a pair, as a run's load stores it; empty if nothing encrypts. Pure."""
    wanted = FACTORS_256.get(mechanism)
    return {"key_bits": BITS if wanted.items() <= factors.items() else SHORT_BITS} if wanted else {}


def has_256(mechanism: str, installation: Installation) -> bool:
    """Whether this server's TDE has 256-bit keys, as far as its programs show."""
    if mechanism == "cybertec-tde":
        return f"--{BITS_OPTION}" in initdb_help(Path(installation.location))
    return mechanism != "edb-tde" or major(installation.version) >= FIRST_WITH_256
