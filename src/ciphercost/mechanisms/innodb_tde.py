"""MySQL's own encryption: a keyring component, then every tablespace and the redo, undo and binary logs.

A server reads from files beside its program and its plugins which keyring to load. So both arms run a private copy of
the program whose files refer to the data directory; there the encrypted arm names a keyring, and the plain arm none.
"""

from __future__ import annotations

import json
import secrets as randomness
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec

from ciphercost.engines._mysql.family import PAGE, plugins
from ciphercost.engines._mysql.pages import beginning, heads
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import own_file
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._innodb import COPY, innodb_conversion
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, Conversion, KeyState, NewKey
from ciphercost.model.cipher_work import RECORD_BYTES, CipherWork, Stream
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import Arm

COMPONENT = "component_keyring_file"
MANIFEST = "mysqld.my"
"""File beside the program, and in the data directory."""
CONFIGURATION = f"{COMPONENT}.cnf"
"""File beside the component, and in the data directory."""
NEVER_ENCRYPTED = ("innodb_temporary",)
"""Tablespaces that the server refuses to encrypt; the proof must detect what they leak."""
LOG_BLOCK = 512
"""Bytes of a block of the redo log. Its header, 12 bytes, stays unencrypted, as do 38 bytes of a page."""
PAGE_TYPE = slice(24, 26)
ENCRYPTED_TYPES = {15, 16, 17}
"""FIL_PAGE_ENCRYPTED, FIL_PAGE_COMPRESSED_AND_ENCRYPTED, FIL_PAGE_ENCRYPTED_RTREE."""
INDEX_TYPE = 17855
BINLOG_MAGIC = {"plain": bytes.fromhex("fe62696e"), "encrypted": bytes.fromhex("fd62696e")}
KEYS_IN_KEYRING = "SELECT COUNT(*) FROM performance_schema.keyring_keys"
"""A rotation adds a master key to the keyring and removes none."""
LOGS = ("innodb_redo_log_encrypt", "innodb_undo_log_encrypt", "binlog_encryption")


class InnodbTde(AtRest):
    name = "innodb-tde"
    title = "MySQL's InnoDB encryption"
    engines = ("mysql",)
    decided_settings = MappingProxyType(
        {
            "innodb_(redo|undo)_log_encrypt|binlog_encryption": "logs",
            "default_table_encryption|table_encryption_privilege_check|innodb_temp_tablespace_encrypt|keyring_.*|early_plugin_load": "",
        }
    )
    protects = (
        "a stolen disk or copied files; not against anyone who can log in; temporary tables and sorts stay unencrypted"
    )
    factors = (
        Factor(
            "logs",
            ("on", "off"),
            "encrypt the redo, undo and binary logs too; off leaves the data in them unencrypted",
            acts="write",
        ),
    )
    key_states: tuple[KeyState, ...] = ("missing", "wrong")

    def prepare(self, rest: AtRestContext) -> Installation:
        """Link to the installation, except for a copy of the program and two files that refer to the data directory."""
        bindir = Path(rest.installation.location)
        base, place = bindir.parent, plugins(bindir)
        if place is None or not (place / f"{COMPONENT}.so").exists():
            raise MissingServer(
                f"MySQL {rest.installation.version} in {bindir} has no {COMPONENT}.so, so it can't have a keyring. "
                "Use MySQL 8.0.24 or later, and install the whole server package."
            )
        root = rest.secrets.parent / f"mysql-{rest.installation.version}"
        program, components = root / bindir.name, root / place.relative_to(base)
        if not (program / MANIFEST).exists():  # another cell of this run may have made it
            rest.supervisor.remove(root)
            _mirror(base, root, [program.relative_to(root), components.relative_to(root)])
            (program / "mysqld").unlink()
            shutil.copy(bindir / "mysqld", program / "mysqld")
            _open(components / CONFIGURATION, {"read_local_config": True})
            _open(program / MANIFEST, {"read_local_manifest": True})
        return msgspec.structs.replace(rest.installation, location=str(program))

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:
        if arm == "plain":
            return {}
        logs = {name.replace("_", "-"): "ON" for name in LOGS} if rest.factors["logs"] == "on" else {}
        return {"default-table-encryption": "ON", "table-encryption-privilege-check": "ON", **logs}

    def write_cluster_files(self, arm: Arm, directory: Path, rest: AtRestContext) -> None:
        """Name the keyring where the server looks for it. Every cluster has its own, which copies of its data share."""
        if arm == "plain":
            return
        keyring = own_file(rest.secrets / f"keyring-{randomness.token_hex(8)}", "")
        own_file(directory / "data" / CONFIGURATION, json.dumps({"path": str(keyring), "read_only": False}))
        own_file(directory / "data" / MANIFEST, json.dumps({"components": f"file://{COMPONENT}"}))

    def key_files(self, rest: AtRestContext, directory: Path) -> Mapping[str, Path]:  # noqa: ARG002
        configuration = directory / "data" / CONFIGURATION
        if not configuration.exists():
            return {}
        keyring = Path(json.loads(configuration.read_text())["path"])
        return {keyring.name: keyring}

    def adopt_keys(self, rest: AtRestContext, directory: Path, names: Sequence[str]) -> None:
        (name,) = names
        own_file(directory / "data" / CONFIGURATION, json.dumps({"path": str(rest.secrets / name), "read_only": False}))

    def encrypt(self, look: ArmAtRest) -> None:
        """Encrypt what the server created before it had a key."""
        if look.arm == "plain":
            return
        look.query("ALTER TABLESPACE mysql ENCRYPTION = 'Y'")
        look.query("ALTER TABLE sys.sys_config ENCRYPTION = 'Y'")
        look.query(f"ALTER DATABASE {look.connect.database} ENCRYPTION = 'Y'")

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        rows = look.query("SELECT STATUS_KEY, STATUS_VALUE FROM performance_schema.keyring_component_status")
        keyring = {str(name): str(value) for name, value in rows}
        spaces = {
            str(name): (kind == "Undo", state == "Y")
            for name, kind, state in look.query(
                "SELECT NAME, SPACE_TYPE, ENCRYPTION FROM information_schema.INNODB_TABLESPACES"
            )
            if name not in NEVER_ENCRYPTED
        }
        switches = dict(zip(LOGS, look.query(f"SELECT {', '.join(f'@@{name}' for name in LOGS)}")[0], strict=True))
        binlogs = {str(row[0]): row[2] == "Yes" for row in look.query("SHOW BINARY LOGS")}
        encrypted = look.arm == "encrypted"
        logs = encrypted and look.rest.factors["logs"] == "on"
        wrong = [
            f"the tablespace {name} is {'' if state else 'not '}encrypted"
            for name, (undo, state) in spaces.items()
            if state != (logs if undo else encrypted)
        ]
        wrong += [f"{name} is {value}" for name, value in switches.items() if (value == "1") != logs]
        wrong += [
            f"the {name} is {'' if state else 'not '}encrypted" for name, state in binlogs.items() if state != logs
        ]
        active = keyring.get("Component_status") == "Active"
        if encrypted and not active:
            wrong.insert(0, f"the keyring component is {keyring.get('Component_status', 'not loaded')}")
        elif not encrypted and keyring:
            wrong.insert(0, f"a keyring component is loaded ({keyring.get('Component_status')})")
        if wrong:
            return False, "; ".join(wrong[:5])
        if not encrypted:
            return (
                True,
                f"no keyring; no tablespace (of {len(spaces)}) and no redo, undo or binary log is encrypted",
            )
        covered = "redo, undo and binary logs" if logs else "no logs"
        whole = [name for name, (undo, _) in spaces.items() if logs or not undo]
        return (
            True,
            f"keyring {keyring['Implementation_name']} is active; {len(whole)} tablespaces and {covered} encrypted",
        )

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the page types of our tables, and the first bytes of the binary logs."""
        size = int(str(look.query("SELECT @@innodb_page_size")[0][0]))
        data = look.volume.path / "data"
        types: Counter[int] = Counter()
        for path in sorted((data / (look.connect.database or "")).glob("*.ibd")):
            types.update(int.from_bytes(head[PAGE_TYPE], "big") for head in heads(path, size, 26) if any(head))
        encrypted = sum(types[page_type] for page_type in ENCRYPTED_TYPES)
        words = f"{encrypted} pages of type 15, {types[INDEX_TYPE]} of {INDEX_TYPE}"
        if look.arm == "plain":
            right = not encrypted and types[INDEX_TYPE] > 0
        else:
            right = encrypted > 0 and not types[INDEX_TYPE]
        if not right:
            return False, f"the {look.arm} arm's tables have {words}"
        want: Arm = "encrypted" if look.arm == "encrypted" and look.rest.factors["logs"] == "on" else "plain"
        magics = {path.name: beginning(path, 4) for path in sorted(data.glob("binlog.[0-9]*"))}
        for name, magic in magics.items():
            if magic != BINLOG_MAGIC[want]:
                return False, f"{name} begins with {magic.hex()}, not with {BINLOG_MAGIC[want].hex()}"
        return True, f"{words}, {len(magics)} binary logs that begin with {BINLOG_MAGIC[want].hex()}"

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:
        """AES-256-CBC for pages but their header, and for blocks of the redo log but theirs; AES-256-CTR for the binary log.

        Sizes are rounded to the blocks of AES; `Encryption::encrypt` and `encrypt_log_block` in MySQL's os0enc.cc encrypt a rest apart.
        Undo pages are counted with the others, though logs=off leaves them unencrypted. The binary log is encrypted in pieces of any
        length; large ones are the floor.
        """
        streams = {"pages": Stream(CipherWork("aes256-cbc", unit=PAGE - 48), PAGE)}
        if factors["logs"] == "on":
            streams["redo log"] = Stream(CipherWork("aes256-cbc", unit=LOG_BLOCK - 16), LOG_BLOCK)
            streams["binary log"] = Stream(CipherWork("aes256-ctr"), RECORD_BYTES, pieces=True)
        return streams

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        """Name the ciphers in MySQL's manual; they can't be changed."""
        logs = ", AES-256-CTR (binary log)" if look.rest.factors["logs"] == "on" else ""
        return {
            "cipher": f"AES-256-CBC (pages){logs}",
            "key_wrapping": "AES-256-ECB",
            "implementation": f"{look.server.library or 'OpenSSL'}, in the server",
        }

    def rotate(self, look: ArmAtRest) -> tuple[str, ...]:  # noqa: ARG002
        """Create a new master key for tablespaces. It wraps the same tablespace keys, so no page is rewritten.

        The binary logs' master key stays: rotating it would drop the old one from the keyring, which other copies of
        the data need.
        """
        return ("ALTER INSTANCE ROTATE INNODB MASTER KEY",)

    def new_key(self, look: ArmAtRest, table: str, number: int) -> NewKey:  # noqa: ARG002
        statements = self.rotate(look)
        return NewKey("keys", statements[0], statements, in_use=KEYS_IN_KEYRING)

    def conversion(self, look: ArmAtRest, table: str, directory: Path) -> Conversion:  # noqa: ARG002
        return innodb_conversion(
            look,
            table,
            make=(
                f"CREATE TABLE {COPY} LIKE {table}",
                *([f"ALTER TABLE {COPY} ENCRYPTION = 'N'"] * (look.arm == "encrypted")),
            ),
            encrypt=f"ALTER TABLE {COPY} ENCRYPTION = 'Y'",
            encrypted=f"SELECT ENCRYPTION FROM information_schema.INNODB_TABLESPACES WHERE NAME = CONCAT(DATABASE(), '/{COPY}')",
        )

    def left_in_clear(self, rest: AtRestContext) -> Mapping[str, str]:
        logs = ("data/binlog.*", "data/#innodb_redo/*", "data/undo_*") if rest.factors["logs"] != "on" else ()
        return dict.fromkeys(logs, "logs=off")

    def findings(self, rest: AtRestContext) -> list[Finding]:
        findings = []
        if rest.factors["logs"] != "on":
            text = "logs=off: changes to tables also go to the redo, undo and binary logs, which are not encrypted"
            closes = "logs=on: innodb_redo_log_encrypt, innodb_undo_log_encrypt, binlog_encryption"
            findings.append(Finding("logs-in-clear", "high", text, closes))
        return findings

    def advice(self, place: str) -> str:
        if "#innodb_temp" in place:
            return "MySQL encrypts no temporary tablespace: --innodb-temp-tablespaces-dir on an encrypted file system"
        if "ibtmp" in place:
            return "MySQL encrypts no temporary tablespace: --innodb-temp-data-file-path on an encrypted file system"
        if place.endswith(" (deleted)") or "tmp/" in place:
            return "MySQL encrypts no temporary file: --tmpdir on an encrypted file system, or a sort_buffer_size that sorts fit into"
        return ""

    @contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:  # noqa: ARG002
        keyring = Path(json.loads((directory / "data" / CONFIGURATION).read_text())["path"])
        kept = keyring.read_text()
        if not kept:
            raise RunError(f"the keyring {keyring} is empty: the server keeps its keys elsewhere")
        try:
            if state == "missing":
                keyring.unlink()
            else:
                own_file(keyring, _other(kept))
            yield
        finally:
            own_file(keyring, kept)


def _other(keyring: str) -> str:
    """Return the same keyring with other keys under the same names, of the same lengths."""
    content = json.loads(keyring)
    for element in content["elements"]:
        if element["data_type"] == "AES":
            element["data"] = randomness.token_hex(len(element["data"]) // 2).upper()
    return json.dumps(content)


def _mirror(base: Path, into: Path, real_directories: list[Path]) -> None:
    """Create a directory of links to the content of `base`; `real_directories` and their parents are real ones."""
    into.mkdir(mode=0o755)
    into.chmod(0o755)  # whatever the umask: another user runs the server
    for entry in base.iterdir():
        inner = [
            path.relative_to(entry.name) for path in real_directories if path.parts and path.parts[0] == entry.name
        ]
        if inner:
            _mirror(entry, into / entry.name, [path for path in inner if path.parts])
        else:
            (into / entry.name).symlink_to(entry)


def _open(path: Path, content: dict[str, bool]) -> None:
    """Write a new file that everybody can read."""
    if path.is_symlink():
        path.unlink()
    path.write_text(json.dumps(content))
    path.chmod(0o644)


MECHANISM = InnodbTde()
