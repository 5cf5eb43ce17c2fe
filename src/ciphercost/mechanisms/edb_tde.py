"""EDB's Postgres encrypts a whole cluster: data, write-ahead log, temporary files. Chosen when the cluster is created.

`initdb --data-encryption` creates the data key, wraps it with a command you give, and stores it in
`pg_encryption/key.bin`. The server unwraps it with another command at every start. A shell runs both in the data
directory, with that file for %p.
"""

from __future__ import annotations

import secrets as randomness
import shlex
import shutil
from pathlib import Path

from ciphercost.engines.postgresql import major
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._postgresql import VendorTde, initdb_help, kept_secret
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.spec import Arm

OPTION = "data-encryption"
KEY_FILE = "pg_encryption/key.bin"
NO_ORACLE = "no-redwood-compat"
"""EDB's Advanced Server speaks Oracle's dialect by default; the workloads speak PostgreSQL's."""
FIRST_WITH_256 = 16


class EdbTde(VendorTde):
    name = "edb-tde"
    title = "EDB TDE: encrypted cluster"
    vendor = "EDB Postgres Advanced Server or Extended Server, version 15 or later"
    variable = "CIPHERCOST_EDB_BINDIR"
    protects = "stolen disks and copied files of the whole cluster; not against anyone who can log in or read the server's memory"
    factors = (Factor("bits", ("128", "256"), "length of the AES key", acts="operation"),)

    def lacks(self, bindir: Path) -> str:
        return "" if f"--{OPTION}" in initdb_help(bindir) else f"its initdb has no --{OPTION}"

    def check_rest(self, rest: AtRestContext) -> None:
        if rest.factors["bits"] == "256" and major(rest.installation.version) < FIRST_WITH_256:
            raise UsageError(
                f"EDB's TDE has 256-bit keys from version {FIRST_WITH_256} on; this is {rest.installation.version}: leave bits out"
            )
        if shutil.which("openssl") is None:
            raise UsageError(
                "edb-tde wraps the data key with the program 'openssl', which is missing (Debian: apt-get install openssl)"
            )

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:
        chosen = {}
        if f"--{NO_ORACLE}" in initdb_help(Path(rest.installation.location)):
            chosen[f"initdb:{NO_ORACLE}"] = ""
        if arm == "plain":
            return chosen
        # 128 is every version's default, and version 15 accepts no number.
        chosen[f"initdb:{OPTION}"] = "" if rest.factors["bits"] == "128" else rest.factors["bits"]
        wrap, unwrap = wrapping(self.key_file(rest))
        return chosen | {"initdb:key-wrap-command": wrap, "initdb:key-unwrap-command": unwrap}

    def key_file(self, rest: AtRestContext) -> Path:
        return kept_secret(rest.secrets / "edb.pass", f"{randomness.token_hex(32)}\n".encode())

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Read the encryption version in the control file, and check that the wrapped key lies in its place."""
        try:
            rows = look.query("SELECT data_encryption_version FROM pg_control_init()")
        except AgentError as error:
            return look.arm == "plain", f"the server knows no data_encryption_version: {error}"
        reported = (rows[0][0] if rows else None) or "0"
        there = (look.volume.path / KEY_FILE).exists()
        words = f"data_encryption_version is {reported}; {KEY_FILE} {'exists' if there else 'does not exist'}"
        on = reported != "0"
        if look.arm == "plain":
            return not on and not there, words
        return on and there, f"{words}; the server does not report its key length"

    def cipher(self, rest: AtRestContext) -> str:
        bits = rest.factors["bits"]
        modes = f"AES-{bits}-XTS (data), AES-{bits}-CTR (write-ahead log), AES-{bits}-CBC (other temporary files)"
        return f"{modes}, as requested from initdb"


def wrapping(password: Path) -> tuple[str, str]:
    """Return shell commands that wrap and unwrap the data key with the password in this file. Pure.

    The server replaces %p, so a % in the file's path is doubled.
    """
    source = shlex.quote(f"file:{password}").replace("%", "%%")
    common = f"-aes-256-cbc -pbkdf2 -pass {source}"
    return f'openssl enc -e {common} -out "%p"', f'openssl enc -d {common} -in "%p"'


MECHANISM = EdbTde()
