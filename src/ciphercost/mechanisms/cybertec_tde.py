"""cybertec-tde: Cybertec's PostgreSQL encrypts a whole cluster: data, write-ahead log, temporary files. Chosen when it is made.

`initdb --encryption-key-command`: a command that a shell runs whenever the server starts, and that prints the key in hexadecimal
digits. Here it is a script's path and nothing else: initdb of version 13 hands the command on to a shell without quotes.
"""

from __future__ import annotations

import os
import re
import secrets as randomness
from pathlib import Path

import msgspec

from ciphercost.host.marks import server_user
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._postgresql import VendorTde, initdb_help, kept_secret
from ciphercost.mechanisms._rest import Look, Rest
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.spec import Arm

OPTION, BITS_OPTION = "encryption-key-command", "key-bits"
SAID = "SELECT setting FROM pg_settings WHERE name = 'data_encryption'"
"""Not SHOW: pg_settings lists what the server itself knows, and no row at all where it knows nothing of it."""


PROGRAM = "pg_controldata"


class Control(msgspec.Struct, frozen=True):
    """What a cluster's control file says of its encryption."""

    said: str = ""
    """`on` or `off`; empty: nothing is said of it."""
    bits: str = ""
    """Of the key; empty: not said."""

    @property
    def on(self) -> bool:
        return self.said == "on"

    def __str__(self) -> str:
        return f"{self.said}, {self.bits} bits" if self.bits else self.said


class CybertecTde(VendorTde):
    name = "cybertec-tde"
    title = "Cybertec PostgreSQL TDE: encrypted cluster"
    vendor = "Cybertec's PostgreSQL with TDE (PGEE)"
    variable = "CIPHERCOST_CYBERTEC_BINDIR"
    protects = "stolen disks and copied files of the whole cluster; not who can log in, nor the server's memory"
    factors = (Factor("bits", ("128", "192", "256"), "length of the AES key"),)

    def lacks(self, bindir: Path) -> str:
        return "" if f"--{OPTION}" in initdb_help(bindir) else f"its initdb has no --{OPTION}"

    def check_rest(self, rest: Rest) -> None:
        if rest.factors["bits"] != "128" and not _chooses_bits(rest):
            raise UsageError(
                f"this Cybertec server ({rest.installation.version}) encrypts with 128 bits alone: its initdb has no --{BITS_OPTION}. "
                "Leave bits out, or use a newer one."
            )
        if reason := unfit(rest.secrets):
            raise UsageError(
                f"the script that prints a Cybertec server's key can't lie in {rest.secrets}: {reason}. "
                "Set CIPHERCOST_SCRATCH to another directory."
            )

    def settings(self, arm: Arm, rest: Rest) -> dict[str, str]:
        if arm == "plain":
            return {}
        chosen = {f"initdb:{OPTION}": str(self._command(rest))}
        return chosen | ({f"initdb:{BITS_OPTION}": rest.factors["bits"]} if _chooses_bits(rest) else {})

    def key_file(self, rest: Rest) -> Path:
        bits = int(rest.factors["bits"])
        return kept_secret(rest.secrets / f"cybertec-{bits}.key", self._new(bits))

    def other_key(self, key: bytes) -> bytes:
        return self._new(4 * len(key.strip()))

    @staticmethod
    def _new(bits: int) -> bytes:
        return f"{randomness.token_hex(bits // 8)}\n".encode()

    def _command(self, rest: Rest) -> Path:
        """A script that prints the key. The key itself is in a file of its own: the script's path is in postgresql.conf."""
        script = f"#!/bin/sh\nexec cat '{self.key_file(rest)}'\n"
        return kept_secret(rest.secrets / f"cybertec-{rest.factors['bits']}.sh", script.encode(), 0o700)

    def status(self, look: Look) -> tuple[bool, str]:
        """`data_encryption`, and what the cluster's own control file says, of the key's length too."""
        rows = look.query(SAID)
        said = (rows[0][0] or "off") if rows else "not there"
        control = self._control(look)
        words = f"data_encryption is {said}" + (f", pg_controldata says {control}" if control.said else "")
        if look.arm == "plain":
            return said != "on" and not control.on, words
        if said != "on" or (control.said and not control.on):
            return False, words
        asked = look.rest.factors["bits"]
        if control.bits and control.bits != asked:
            return False, f"{words}, and {asked} bits were asked for"
        if control.bits:
            return True, words
        if _chooses_bits(look.rest):
            program = Path(look.rest.installation.location) / PROGRAM
            return False, f"{words}: how long the key is was not seen, {program} does not say it"
        return True, f"{words}; this version has keys of {asked} bits alone"

    @staticmethod
    def _control(look: Look) -> Control:
        program = Path(look.rest.installation.location) / PROGRAM
        try:
            return control_of(look.rest.supervisor.run([program, "-D", look.volume.path], user=server_user()))
        except RunError:
            return Control()

    def cipher(self, rest: Rest) -> str:
        return f"AES-{rest.factors['bits']}"


def control_of(text: str) -> Control:
    """Reads what pg_controldata prints. Pure.

    Versions 12 and 13: `Data encryption: on`. From 14 on also `Encryption key length: 128`. `on, 128-bit` on the first line, which is
    documented and which no version seen here prints, is read as well.
    """
    fields = dict(re.findall(r"^([^:\n]+):[^\S\n]*(.*?)[^\S\n]*$", text, re.MULTILINE))
    said, _, inline = fields.get("Data encryption", "").partition(",")
    bits = re.search(r"\d+", fields.get("Encryption key length", "") or inline)
    return Control(said.strip(), bits[0] if bits else "")


def unfit(directory: Path) -> str:
    """Why a script whose bare path is a shell's command can't lie there; empty: it can. Pure but for the file system's options."""
    if not re.fullmatch(r"[\w./+,@:=-]+", str(directory)):
        return "its path has letters that mean something to a shell, and initdb hands it over without quotes"
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        return "nothing may be run from that file system (noexec)"
    return ""


def _chooses_bits(rest: Rest) -> bool:
    return f"--{BITS_OPTION}" in initdb_help(Path(rest.installation.location))


MECHANISM = CybertecTde()
