"""MariaDB's own encryption with keys from a file: InnoDB, its log, Aria, temporary tables and files."""

from __future__ import annotations

import os
import secrets as randomness
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines._mysql.family import PAGE, plugins
from ciphercost.engines._mysql.pages import heads
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import hand_over, own_file
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._innodb import COPY, innodb_conversion
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, Conversion, KeyState, NewKey
from ciphercost.model.cipher_work import RECORD_BYTES, CipherWork, Stream
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import Arm

PLUGIN = "file_key_management"
KEY_FILE = "mariadb.keys"
KEYS = (1, 2)
"""Numbers of the keys in it. The first encrypts everything; a rotation goes to the other one and back."""
CIPHERS = {"ctr": "AES_CTR", "cbc": "AES_CBC"}
WORDS = {
    "ctr": "AES-256-CTR (pages, redo log), AES-256-GCM (temporary files, binary log)",
    "cbc": "AES-256-CBC",
}
"""Ciphers that the plugin uses for `file_key_management_encryption_algorithm`, from MariaDB's manual."""
SWITCHES = (
    "innodb_encrypt_log",
    "innodb_encrypt_temporary_tables",
    "encrypt_binlog",
    "aria_encrypt_tables",
    "encrypt_tmp_disk_tables",
    "encrypt_tmp_files",
)
THREADS = 2
"""Threads that convert unencrypted pages; once all are encrypted, they sleep."""
TEMPORARY = "innodb_temporary"
"""A tablespace with a switch of its own, which is not listed among the encrypted ones."""
SETTLE_SECONDS = 900.0
BETWEEN_SECONDS = 0.2
SPACES = """\
SELECT s.NAME, e.ENCRYPTION_SCHEME, e.MIN_KEY_VERSION, e.KEY_ROTATION_PAGE_NUMBER, e.ROTATING_OR_FLUSHING
FROM information_schema.INNODB_SYS_TABLESPACES s
LEFT JOIN information_schema.INNODB_TABLESPACES_ENCRYPTION e ON e.SPACE = s.SPACE"""


class MariadbTde(AtRest):
    name = "mariadb-tde"
    title = "MariaDB's data-at-rest encryption"
    engines = ("mariadb",)
    decided_settings = MappingProxyType(
        {
            "file_key_management_encryption_algorithm": "cipher",
            "innodb_encrypt_.*|innodb_encryption_threads|innodb_default_encryption_key_id|aria_encrypt_tables": "",
            "encrypt_(binlog|tmp_(disk_tables|files))|(file_|aws_|hashicorp_)?key_management.*|plugin_load.*": "",
        }
    )
    protects = "a stolen disk or copied files, temporary ones too; not against anyone who can log in; only InnoDB and Aria tables"
    factors = (
        Factor(
            "cipher",
            tuple(CIPHERS),
            "mode of AES-256",
            {value.lower().replace("_", "-"): key for key, value in CIPHERS.items()},
            acts="operation",
        ),
    )
    key_states: tuple[KeyState, ...] = ("missing", "wrong")

    def prepare(self, rest: AtRestContext) -> Installation:
        """Create the key. The installation stays where it is, but must have the plugin."""
        bindir = Path(rest.installation.location)
        place = plugins(bindir)
        if place is None or not (place / f"{PLUGIN}.so").exists():
            raise MissingServer(
                f"MariaDB {rest.installation.version} in {bindir} has no {PLUGIN}.so, so it can't load keys. "
                "Install the whole server package."
            )
        _make_keys(rest.secrets)
        return rest.installation

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:
        if arm == "plain":
            return {}
        return {
            "plugin-load-add": PLUGIN,
            "file-key-management-filename": str(rest.secrets / KEY_FILE),
            "file-key-management-encryption-algorithm": CIPHERS[rest.factors["cipher"]],
            "innodb-encrypt-tables": "FORCE",
            "innodb-encryption-threads": str(THREADS),
            **{name.replace("_", "-"): "ON" for name in SWITCHES},
        }

    def key_files(self, rest: AtRestContext, directory: Path) -> Mapping[str, Path]:  # noqa: ARG002
        return {KEY_FILE: rest.secrets / KEY_FILE}

    def settled(self, look: ArmAtRest) -> None:
        if look.arm == "plain":
            return
        deadline = time.monotonic() + SETTLE_SECONDS
        while left := unsettled(look.query(SPACES)):
            if time.monotonic() >= deadline:
                raise RunError(
                    f"MariaDB is still encrypting its tablespaces after {SETTLE_SECONDS:g} seconds: {'; '.join(left[:3])}. "
                    "Its log may give the reason; innodb_encryption_threads and innodb_encryption_rotation_iops set the speed."
                )
            time.sleep(BETWEEN_SECONDS)

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        plugin = look.query(
            "SELECT PLUGIN_NAME, PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'ENCRYPTION'"
        )
        spaces = look.query(SPACES)
        tables, *values = look.query(f"SELECT @@innodb_encrypt_tables, {', '.join(f'@@{name}' for name in SWITCHES)}")[
            0
        ]
        switches = dict(zip(SWITCHES, values, strict=True))
        if look.arm == "plain":
            wrong = [f"the plugin {name} is {state}" for name, state in plugin]
            wrong += [f"the tablespace {row[0]} is encrypted" for row in spaces if row[1] not in (None, "0")]
            wrong += [] if tables == "OFF" else [f"innodb_encrypt_tables is {tables}"]
            wrong += [f"{name} is on" for name, value in switches.items() if value != "0"]
            summary = f"no key plugin; no tablespace (of {len(spaces)}) and no log is encrypted"
            return not wrong, "; ".join(wrong[:5]) or summary
        wrong = [] if [PLUGIN, "ACTIVE"] in plugin else [f"the plugin {PLUGIN} is not active"]
        wrong += [] if tables == "FORCE" else [f"innodb_encrypt_tables is {tables}, not FORCE"]
        wrong += [f"{name} is off" for name, value in switches.items() if value != "1"]
        cipher = ""
        if not wrong:
            cipher = str(look.query("SELECT @@file_key_management_encryption_algorithm")[0][0])
            if cipher.upper() != CIPHERS[look.rest.factors["cipher"]]:
                wrong.append(f"file_key_management_encryption_algorithm is {cipher}")
        wrong += unsettled(spaces)
        count = sum(row[0] != TEMPORARY for row in spaces)
        return not wrong, "; ".join(
            wrong[:5]
        ) or f"{PLUGIN} is active ({cipher}); {count} tablespaces encrypted, none in part"

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the key version that each page of our tables begins with."""
        size = int(str(look.query("SELECT @@innodb_page_size")[0][0]))
        files = sorted((look.volume.path / "data" / (look.connect.database or "")).glob("*.ibd"))
        counts = [versioned(path, size) for path in files]
        encrypted, clear = sum(count for count, _ in counts), sum(count for _, count in counts)
        words = f"{encrypted} pages with a key version, {clear} without"
        passed = (clear > 0 and not encrypted) if look.arm == "plain" else (encrypted > 0 and not clear)
        return passed, words if passed else f"the {look.arm} arm's tables have {words}"

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:
        """Pages but their first 38 bytes and their last 8, and both logs, which are encrypted in pieces of any length; large ones are the floor."""
        cipher = f"aes256-{factors['cipher']}"
        binary_log = "aes256-gcm" if factors["cipher"] == "ctr" else cipher
        return {
            "pages": Stream(CipherWork(cipher, unit=PAGE - 48), PAGE),
            "redo log": Stream(CipherWork(cipher), RECORD_BYTES, pieces=True),
            "binary log": Stream(CipherWork(binary_log), RECORD_BYTES, pieces=True),
        }

    def new_key(self, look: ArmAtRest, table: str, number: int) -> NewKey:
        """Encrypt the table again with the other key of the file: the plugin has no newer versions of a key."""
        key = KEYS[(number + 1) % len(KEYS)]
        database = look.connect.database or ""
        return NewKey(
            "data",
            f"ALTER TABLE {table} ENCRYPTED = YES ENCRYPTION_KEY_ID = …",
            (f"ALTER TABLE {table} ENCRYPTED = YES ENCRYPTION_KEY_ID = {key}",),
            in_use=f"SELECT CURRENT_KEY_ID FROM information_schema.INNODB_TABLESPACES_ENCRYPTION WHERE NAME = '{database}/{table}'",
            files=(look.volume.path / "data" / database / f"{table}.ibd",),
        )

    def conversion(self, look: ArmAtRest, table: str, directory: Path) -> Conversion:  # noqa: ARG002
        """FORCE, which the session was proven with, allows no unencrypted table: the copy is made while it is ON."""
        make = [f"CREATE TABLE {COPY} LIKE {table}"]
        if look.arm == "encrypted":
            forced = "SET GLOBAL innodb_encrypt_tables = "
            make = [f"{forced}'ON'", *make, f"ALTER TABLE {COPY} ENCRYPTED = NO", f"{forced}'FORCE'"]
        return innodb_conversion(
            look,
            table,
            make=make,
            encrypt=f"ALTER TABLE {COPY} ENCRYPTED = YES, ALGORITHM = COPY",
            encrypted="SELECT IF(ENCRYPTION_SCHEME = 1 AND MIN_KEY_VERSION > 0, 'Y', 'N') FROM "
            f"information_schema.INNODB_TABLESPACES_ENCRYPTION WHERE NAME = CONCAT(DATABASE(), '/{COPY}')",
        )

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        return {
            "cipher": WORDS[look.rest.factors["cipher"]],
            "implementation": f"{look.server.library or 'OpenSSL'}, in the server",
        }

    def findings(self, rest: AtRestContext) -> list[Finding]:  # noqa: ARG002
        return [
            Finding(
                "engine-never-encrypted",
                "medium",
                "tables of MyISAM, CSV and Archive are never encrypted, and no setting refuses them; ciphercost's tables use InnoDB",
                "ALTER TABLE … ENGINE=InnoDB for each table that information_schema.TABLES lists with another engine; "
                "enforce_storage_engine=InnoDB for new ones",
            )
        ]

    def advice(self, place: str) -> str:
        if "ibtmp" in place:
            return "innodb_encrypt_temporary_tables=ON"
        if "#sql-temptable" in place:
            # Seen unencrypted on 10.11 and 11.8 with encrypt_tmp_disk_tables=ON, whatever made the server need the
            # table.
            return "encrypt_tmp_disk_tables=ON, which was on, does not close this leak: --tmpdir on an encrypted file system"
        if place.endswith((".MYD", ".MYI")):
            return "MyISAM is never encrypted: ALTER TABLE … ENGINE=InnoDB"
        if place.endswith(" (deleted)") or "tmp/" in place:
            return "encrypt_tmp_files=ON"
        return ""

    @contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:  # noqa: ARG002
        path = rest.secrets / KEY_FILE
        kept = path.read_text()
        try:
            if state == "missing":
                path.unlink()
            else:
                own_file(path, _new_keys())
            yield
        finally:
            own_file(path, kept)


def versioned(path: Path, size: int) -> tuple[int, int]:
    """Count a file's pages of `size` bytes: those that begin with a key version, and those that begin with none.

    Empty pages don't count, nor does the first page, nor every page after it that describes the extents of the next `size` pages: the
    server encrypts none of these (`fil_space_encrypt`).
    """
    encrypted = clear = 0
    for number, head in enumerate(heads(path, size, 38)):
        if number % size and any(head):
            has_version = any(head[:4])
            encrypted, clear = encrypted + has_version, clear + (not has_version)
    return encrypted, clear


def unsettled(spaces: list[list[str | None]]) -> list[str]:
    """Return which tablespaces in the rows of SPACES are not or not fully encrypted, in words. Pure."""
    left = []
    for name, scheme, oldest, rotating, busy in spaces:
        if name == TEMPORARY:
            continue
        if scheme != "1" or oldest in (None, "0") or rotating is not None or busy not in (None, "0"):
            state = "not encrypted" if scheme != "1" else "still being encrypted"
            left.append(f"the tablespace {name} is {state}")
    return left


def _make_keys(secrets: Path) -> None:
    """Create the file with the run's keys, each of 256 bits, unless another cell of the run has done so."""
    with suppress(FileExistsError):
        with os.fdopen(os.open(secrets / KEY_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_new_keys())
        hand_over(secrets / KEY_FILE)


def _new_keys() -> str:
    return "".join(f"{number};{randomness.token_hex(32)}\n" for number in KEYS)


MECHANISM = MariadbTde()
