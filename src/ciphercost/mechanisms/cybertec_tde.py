"""cybertec-tde: Cybertec's PostgreSQL encrypts a whole cluster: data, write-ahead log, temporary files. Chosen when it is made.

`initdb --encryption-key-command`: a command that a shell runs whenever the server starts, and that prints the key in hexadecimal
digits. Here it is a script's path and nothing else: initdb of version 13 hands the command on to a shell without quotes.
"""

from __future__ import annotations

import os
import re
import secrets as randomness
from pathlib import Path

from ciphercost.errors import RunError, UsageError
from ciphercost.guard import server_user
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._postgresql import VendorTde, initdb_help, kept_secret
from ciphercost.mechanisms._rest import Look, Rest
from ciphercost.model import Arm

OPTION, BITS_OPTION = "encryption-key-command", "key-bits"
SAID = "SELECT setting FROM pg_settings WHERE name = 'data_encryption'"
"""Not SHOW: pg_settings lists what the server itself knows, and no row at all where it knows nothing of it."""


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
        """`data_encryption`, and what the cluster's own control file says."""
        rows = look.query(SAID)
        said = (rows[0][0] or "off") if rows else "not there"
        control = self._control(look)
        on = [text for text in (said, control) if text.startswith("on")]
        words = f"data_encryption is {said}" + (f", pg_controldata says {control}" if control else "")
        if look.arm == "plain":
            return not on, words
        bits = re.search(r"\d+", control)
        if bits and bits[0] != look.rest.factors["bits"]:
            return False, f"{words}, and {look.rest.factors['bits']} bits were asked for"
        return len(on) == (2 if control else 1), words

    @staticmethod
    def _control(look: Look) -> str:
        """`on, 128-bit`; empty where it says nothing of it."""
        program = Path(look.rest.installation.location) / "pg_controldata"
        try:
            text = look.rest.guard.run([program, "-D", look.volume.path], user=server_user())
        except RunError:
            return ""
        match = re.search(r"^Data encryption:\s*(.*?)\s*$", text, re.MULTILINE)
        return match[1] if match else ""

    def cipher(self, rest: Rest) -> str:
        return f"AES-{rest.factors['bits']}"


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
