"""Cybertec's PostgreSQL encrypts a whole cluster: data, write-ahead log, temporary files. Chosen when the cluster is
created.

`initdb --encryption-key-command` names a command that a shell runs at every start of the server and that prints the key
in hexadecimal digits. The command here is nothing but a script's path: initdb of version 13 passes it to a shell
without quotes.
"""

from __future__ import annotations

import os
import re
import secrets as randomness
from pathlib import Path

import msgspec

from ciphercost.host.run_ownership import server_user
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._postgresql import VendorTde, initdb_help, kept_secret
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.model.errors import RunError, UsageError
from ciphercost.model.spec import Arm

OPTION, BITS_OPTION = "encryption-key-command", "key-bits"
SAID = "SELECT setting FROM pg_settings WHERE name = 'data_encryption'"
"""Not SHOW: pg_settings lists only settings the server itself knows, and returns no row for one it doesn't know."""


PROGRAM = "pg_controldata"


class Control(msgspec.Struct, frozen=True):
    """What a cluster's control file states about its encryption."""

    reported: str = ""
    """`on` or `off`; empty: not stated."""
    bits: str = ""
    """Key length; empty: not stated."""

    @property
    def on(self) -> bool:
        return self.reported == "on"

    def __str__(self) -> str:
        return f"{self.reported}, {self.bits} bits" if self.bits else self.reported


class CybertecTde(VendorTde):
    name = "cybertec-tde"
    title = "Cybertec PostgreSQL TDE: encrypted cluster"
    vendor = "Cybertec's PostgreSQL with TDE (PGEE)"
    variable = "CIPHERCOST_CYBERTEC_BINDIR"
    protects = "stolen disks and copied files of the whole cluster; not against anyone who can log in or read the server's memory"
    factors = (Factor("bits", ("128", "192", "256"), "length of the AES key", acts="operation"),)

    def lacks(self, bindir: Path) -> str:
        return "" if f"--{OPTION}" in initdb_help(bindir) else f"its initdb has no --{OPTION}"

    def check_rest(self, rest: AtRestContext) -> None:
        if rest.factors["bits"] != "128" and not _chooses_bits(rest):
            raise UsageError(
                f"this Cybertec server ({rest.installation.version}) encrypts with 128 bits only: its initdb has no --{BITS_OPTION}. "
                "Leave bits out, or use a newer version."
            )
        if reason := unfit(rest.secrets):
            raise UsageError(
                f"the script that prints a Cybertec server's key can't lie in {rest.secrets}: {reason}. "
                "Set CIPHERCOST_SCRATCH to another directory."
            )

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:
        if arm == "plain":
            return {}
        chosen = {f"initdb:{OPTION}": str(self._command(rest))}
        return chosen | ({f"initdb:{BITS_OPTION}": rest.factors["bits"]} if _chooses_bits(rest) else {})

    def key_file(self, rest: AtRestContext) -> Path:
        bits = int(rest.factors["bits"])
        return kept_secret(rest.secrets / f"cybertec-{bits}.key", self._new(bits))

    def other_key(self, key: bytes) -> bytes:
        return self._new(4 * len(key.strip()))

    @staticmethod
    def _new(bits: int) -> bytes:
        return f"{randomness.token_hex(bits // 8)}\n".encode()

    def _command(self, rest: AtRestContext) -> Path:
        """Return a script that prints the key.

        The key has a file of its own, because postgresql.conf names the script.
        """
        script = f"#!/bin/sh\nexec cat '{self.key_file(rest)}'\n"
        return kept_secret(rest.secrets / f"cybertec-{rest.factors['bits']}.sh", script.encode(), 0o700)

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Read `data_encryption`, and the cluster's control file, which may also state the key length."""
        rows = look.query(SAID)
        reported = (rows[0][0] or "off") if rows else "missing"
        control = self._control(look)
        words = f"data_encryption is {reported}" + (f", pg_controldata prints {control}" if control.reported else "")
        if look.arm == "plain":
            return reported != "on" and not control.on, words
        if reported != "on" or (control.reported and not control.on):
            return False, words
        requested = look.rest.factors["bits"]
        if control.bits and control.bits != requested:
            return False, f"{words}, but {requested} bits were requested"
        if control.bits:
            return True, words
        if _chooses_bits(look.rest):
            program = Path(look.rest.installation.location) / PROGRAM
            return False, f"{words}: the key length is unknown, {program} does not print it"
        return True, f"{words}; this version always uses keys of {requested} bits"

    @staticmethod
    def _control(look: ArmAtRest) -> Control:
        program = Path(look.rest.installation.location) / PROGRAM
        try:
            return control_of(look.rest.supervisor.run([program, "-D", look.volume.path], user=server_user()))
        except RunError:
            return Control()

    def cipher(self, rest: AtRestContext) -> str:
        return f"AES-{rest.factors['bits']}"


def control_of(text: str) -> Control:
    """Parse the output of pg_controldata. Pure.

    Versions 12 and 13 print `Data encryption: on`, versions from 14 on also `Encryption key length: 128`. This reads
    `on, 128-bit` on the first line too, which is documented, though no version tried here prints it.
    """
    fields = dict(re.findall(r"^([^:\n]+):[^\S\n]*(.*?)[^\S\n]*$", text, re.MULTILINE))
    reported, _, inline = fields.get("Data encryption", "").partition(",")
    bits = re.search(r"\d+", fields.get("Encryption key length", "") or inline)
    return Control(reported.strip(), bits[0] if bits else "")


def unfit(directory: Path) -> str:
    """Return why a script in this directory can't be an unquoted shell command; empty: it can.

    Reads only mount options.
    """
    if not re.fullmatch(r"[\w./+,@:=-]+", str(directory)):
        return "its path contains characters with a meaning in a shell, and initdb passes it on without quotes"
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        return "programs can't run from that file system (noexec)"
    return ""


def _chooses_bits(rest: AtRestContext) -> bool:
    return f"--{BITS_OPTION}" in initdb_help(Path(rest.installation.location))


MECHANISM = CybertecTde()
