"""Percona's pg_tde encrypts tables, by a table access method, and the write-ahead log, by a setting that is off by
default.

It needs two clusters instead of two tables in one, because a cluster has one write-ahead log. Written for version 2.2;
ciphercost asks the server which functions it has, since earlier versions name them differently.
"""

from __future__ import annotations

import re
import secrets as randomness
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from ciphercost.engines.postgresql import PAGE
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._postgresql import VendorTde, is_temporary_table, module
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext, NewKey
from ciphercost.model.cipher_work import CipherWork, Stream
from ciphercost.model.errors import AgentError, RunError, Unproven
from ciphercost.model.slices import Finding
from ciphercost.model.spec import Arm

LIBRARY = "pg_tde"
PROVIDER = "ciphercost"
NAME_BYTES = 256
"""In a key file: a key's name, padded to this length; the key follows."""
KEY_BYTES = 16
"""Length of the shortest key."""

DIRECTORY = "pg_tde"
"""In the data directory: the keys of tables, one file per database, and of the log.

Keys are wrapped, their purpose is readable.
"""
KEY_FILES, LOG_KEYS = "[0-9]*_keys", "wal_keys"
HEADER_BYTES = 320
"""Length of a key file's header: its layout number, then which principal key wraps the others."""
TABLE_LAYOUT, LOG_LAYOUT = 0x04454454, 0x024B4557
"""Layout numbers of version 2.2, the first version with more than one cipher."""
TABLE_ENTRY, LOG_ENTRY = struct.Struct("=I4x4xI80x"), struct.Struct("=II96x")
"""Entry of a table key: (cipher, whether a table uses it), then the wrapped key. Entry of a log key: (cipher, whether
data written with it is encrypted), then the wrapped key."""
TABLE_USED, LOG_ENCRYPTED = 1, 2
CIPHERS = {0: "aes_128", 1: "aes_256"}
ONLY_CIPHER = "aes_128"
"""Cipher of versions that have no setting for it."""

FUNCTIONS = (
    "SELECT proname, string_agg(pg_get_function_identity_arguments(oid), ';') FROM pg_proc "
    "WHERE proname LIKE 'pg\\_tde\\_%' GROUP BY proname"
)
SETTINGS = "SELECT name, setting FROM pg_settings WHERE name LIKE 'pg\\_tde.%'"
"""Not SHOW: a server without the library repeats its command line; pg_settings lists nothing then."""
RELATIONS = """\
WITH own AS (
  SELECT c.oid, c.reltoastrelid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
), tables AS (
  SELECT oid FROM own UNION SELECT reltoastrelid FROM own WHERE reltoastrelid <> 0
), relations AS (
  SELECT oid FROM tables UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM tables)
)
SELECT count(*), count(*) FILTER (WHERE NOT encrypted), min(name) FILTER (WHERE NOT encrypted)
FROM (SELECT oid::regclass::text AS name, coalesce(pg_tde_is_encrypted({argument}), false) AS encrypted FROM relations) AS answers"""
"""Counts of all tables outside the catalogs, TOAST tables and indexes: (all, unencrypted, one of the latter)."""

ADD_PROVIDER = ("pg_tde_add_global_key_provider_file",)
CREATE_KEY = ("pg_tde_create_key_using_global_key_provider",)
DEFAULT_KEY = ("pg_tde_set_default_key_using_global_key_provider", "pg_tde_set_default_principal_key")
SERVER_KEY = ("pg_tde_set_server_key_using_global_key_provider", "pg_tde_set_server_principal_key")
"""Names in 2.2, then earlier ones. Before 1.0 the functions that set a key also created it."""
DATABASE_PROVIDER = ("pg_tde_add_database_key_provider_file", "pg_tde_add_key_provider_file")
DATABASE_KEY = ("pg_tde_set_key_using_database_key_provider", "pg_tde_set_principal_key")
"""For versions that have no default key for all databases."""
KEY_INFO = ("pg_tde_default_key_info", "pg_tde_key_info", "pg_tde_principal_key_info")
VERIFY_DATA = ("pg_tde_verify_default_key", "pg_tde_verify_key", "pg_tde_verify_principal_key")
VERIFY_LOG = ("pg_tde_verify_server_key", "pg_tde_verify_global_principal_key")


class Keys(msgspec.Struct, frozen=True):
    """How many keys of a data directory belong to each cipher."""

    tables: Counter[str] = Counter()
    log: Counter[str] = Counter()
    last: bool = False
    """Whether the log is encrypted now, according to the last of its keys."""
    other: tuple[str, ...] = ()
    """Files of another layout, whose keys are unknown."""


class PgTde(VendorTde):
    name = "pg-tde"
    title = "pg_tde: encrypted tables and write-ahead log"
    vendor = "Percona Server for PostgreSQL with pg_tde"
    variable = "CIPHERCOST_PERCONA_BINDIR"
    protects = "stolen disks and copied files; not temporary files of queries, nor the catalogs with their statistics"
    decided_settings = MappingProxyType(
        {
            r"pg_tde\.cipher": "cipher",
            r"pg_tde\.wal_encrypt": "wal",
            r"pg_tde\..*|default_table_access_method": "",
        }
    )
    factors = (
        Factor(
            "wal",
            ("on", "off"),
            "whether the write-ahead log is encrypted; off leaves every row in it unencrypted",
            acts="write",
        ),
        Factor(
            "cipher",
            ("aes_128", "aes_256"),
            "cipher of tables and log",
            {"128": "aes_128", "256": "aes_256"},
            acts="operation",
        ),
        Factor(
            "preload",
            ("both", "encrypted"),
            "arms that load the library; both: encryption is the only difference",
            acts="operation",
        ),
    )

    def lacks(self, bindir: Path) -> str:
        return (
            ""
            if module(bindir, LIBRARY)
            else f"its {LIBRARY}.so is missing (from version 18 on it is in a separate package)"
        )

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:
        """The library sits between server and files even without encryption; by default both arms bear that cost."""
        if arm == "plain":
            # Explicit even if empty: Percona's packages load their telemetry in postgresql.conf.
            return {"shared_preload_libraries": LIBRARY if rest.factors["preload"] == "both" else ""}
        return {
            "shared_preload_libraries": LIBRARY,
            "pg_tde.cipher": rest.factors["cipher"],
            "pg_tde.enforce_encryption": "on",
            "default_table_access_method": "tde_heap",
        }

    def encrypt(self, look: ArmAtRest) -> None:
        """Set the keys first: with wal_encrypt on and no key the server doesn't start."""
        if look.arm == "plain":
            return
        look.query("CREATE EXTENSION pg_tde")
        version = _version(look)
        known = dict(map(_pair, look.query(SETTINGS)))
        wanted = look.rest.factors["cipher"]
        if "pg_tde.cipher" not in known and wanted != ONLY_CIPHER:
            raise RunError(f"pg_tde {version} can't encrypt with {wanted}: it has no pg_tde.cipher. Leave cipher out.")
        functions = dict(map(_pair, look.query(FUNCTIONS)))
        wal = look.rest.factors["wal"] == "on"
        for statement in statements(functions, self.key_file(look.rest), wal=wal, version=version):
            look.query(statement)
        if wal:
            look.query("ALTER SYSTEM SET pg_tde.wal_encrypt = on")

    def settled(self, look: ArmAtRest) -> None:
        """Raises Unproven if the cipher is not the requested one: tables keep the cipher they were created with."""
        if look.arm == "encrypted" and (wrong := other_cipher(dict(map(_pair, look.query(SETTINGS))), look.rest)):
            raise Unproven(f"server witness, encrypted arm, while its tables were created: {wrong}")

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:
        """Pages of tables and indexes, in CBC mode according to its manual. PostgreSQL does not count them apart from others."""
        return {"pages": Stream(CipherWork(f"{factors['cipher'].replace('_', '')}-cbc", unit=PAGE), PAGE)}

    def key_file(self, rest: AtRestContext) -> Path:
        """The server creates the file (mode 0600) and adds each key; all clusters of a run share it."""
        return rest.secrets / "pg_tde.keys"

    def other_key(self, key: bytes) -> bytes:
        return altered(key)

    def rotate(self, look: ArmAtRest) -> tuple[str, ...]:
        """Return statements that replace the principal key; the data stays as it is. Raises RunError."""
        functions = dict(map(_pair, look.query(FUNCTIONS)))
        wal = look.rest.factors["wal"] == "on"
        return keys(functions, wal=wal, version=_version(look))

    def new_key(self, look: ArmAtRest, table: str, number: int) -> NewKey:  # noqa: ARG002
        shown = _first(KEY_INFO, functions := dict(map(_pair, look.query(FUNCTIONS))))
        if not shown:
            raise RunError(f"pg_tde {_version(look)} has no function that names the key in use; it is too old")
        setter = _first(DEFAULT_KEY, functions) or _first(DATABASE_KEY, functions)
        return NewKey("keys", f"{setter}(…)", self.rotate(look), in_use=f"SELECT key_name FROM {shown}()")

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the settings in force, every table, and whether the server reaches its keys.

        Needed in every session: a server reads its cipher from its settings at every start, and creates new keys for
        that cipher.
        """
        reported = dict(map(_pair, look.query(SETTINGS)))
        log = reported.get("pg_tde.wal_encrypt", "missing")
        functions = dict(map(_pair, look.query(FUNCTIONS)))
        if look.arm == "plain":
            words = f"pg_tde.wal_encrypt is {log}; the extension is {'installed' if functions else 'not installed'}"
            return log != "on" and not functions, words
        if "pg_tde_is_encrypted" not in functions:
            return False, "the extension pg_tde is not installed"
        argument = "oid::regclass" if "regclass" in functions["pg_tde_is_encrypted"] else "oid::regclass::text"
        ((count, clear, one),) = look.query(RELATIONS.format(argument=argument))
        if clear != "0":
            return False, f"{clear} of {count} tables and indexes are not encrypted, among them {one}"
        if wrong := other_cipher(reported, look.rest):
            return False, wrong
        wanted = look.rest.factors["wal"]
        for candidates in (VERIFY_DATA, *([VERIFY_LOG] if wanted == "on" else [])):
            if function := _first(candidates, functions):
                try:
                    look.query(f"SELECT {function}()")
                except AgentError as error:
                    return False, f"{function} fails: {error}"
        cipher = reported.get("pg_tde.cipher", "")
        by = f"pg_tde.cipher is {cipher}" if cipher else f"this version has only {ONLY_CIPHER}"
        words = f"{count} tables and indexes are encrypted, {by}, pg_tde.wal_encrypt is {log}"
        if wanted == "on":
            return log == "on", words
        return log != "on", f"{words}, as requested: the write-ahead log is not encrypted"

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the pages, and the cipher of the keys of tables and log, which is fixed when a key is created."""
        passed, words = super().structure(look)
        if not passed or look.arm == "plain":
            return passed, words
        wal = look.rest.factors["wal"] == "on"
        passed, more = judge_keys(keys_in(look.volume.path / DIRECTORY), look.rest.factors["cipher"], wal=wal)
        return passed, "; ".join(filter(None, (words, more)))

    def cipher(self, rest: AtRestContext) -> str:
        bits = rest.factors["cipher"].removeprefix("aes_")
        log = f", AES-{bits}-CTR (write-ahead log)" if rest.factors["wal"] == "on" else ""
        return f"AES-{bits}-CBC (tables){log}"

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        plain = "loaded" if look.rest.factors["preload"] == "both" else "not loaded"
        return super().implementation(look) | {"pg_tde": _version(look), "pg_tde_in_plain_arm": plain}

    def left_in_clear(self, rest: AtRestContext) -> Mapping[str, str]:
        return {"pg_wal/*": "wal=off"} if rest.factors["wal"] != "on" else {}

    def findings(self, rest: AtRestContext) -> list[Finding]:
        text = (
            "catalogs are not encrypted: names of tables and columns, and in pg_statistic the most common values and the "
            "histogram of every analyzed column, are readable on the disk"
        )
        closes = "ALTER TABLE … ALTER COLUMN … SET STATISTICS 0 for such columns, before they are first analyzed"
        findings = [Finding("catalogs-in-clear", "medium", text, closes)]
        if rest.factors["wal"] != "on":
            text = "wal=off: every row written to an encrypted table is also in the write-ahead log, unencrypted"
            findings.insert(0, Finding("log-in-clear", "high", text, "wal=on: pg_tde.wal_encrypt = on"))
        return findings

    def advice(self, place: str) -> str:
        if "pg_wal" in place:
            return "pg_tde.wal_encrypt = on"
        if is_temporary_table(place):
            return (
                "create temporary tables with tde_heap: default_table_access_method = tde_heap, and pg_tde.enforce_encryption = on, "
                "which refuses others"
            )
        return "a larger work_mem keeps sorts in memory; else temp_tablespaces on an encrypted file system"


def other_cipher(settings: Mapping[str, str], rest: AtRestContext) -> str:
    """Return how the server's cipher differs from the request; empty: it doesn't. Pure."""
    cipher, requested = settings.get("pg_tde.cipher", ONLY_CIPHER), rest.factors["cipher"]
    return "" if cipher == requested else f"pg_tde.cipher is {cipher}, but {requested} was requested"


def statements(functions: Mapping[str, str], file: Path, *, wal: bool, version: str) -> tuple[str, ...]:
    """Return SQL that creates keys in this file and activates them, for a server with these functions.

    Pure. Raises RunError.
    """
    place = str(file).replace("'", "''")
    provider = (
        _first(ADD_PROVIDER, functions) if _first(DEFAULT_KEY, functions) else _first(DATABASE_PROVIDER, functions)
    )
    if not provider:
        raise RunError(
            f"pg_tde {version} has no function that adds a key file; it has: {', '.join(sorted(functions)) or 'none'}"
        )
    return (f"SELECT {provider}('{PROVIDER}', '{place}'::text)", *keys(functions, wal=wal, version=version))


def keys(functions: Mapping[str, str], *, wal: bool, version: str) -> tuple[str, ...]:
    """Return SQL that creates new keys and activates them.

    Pure except for their names, which are new. Raises RunError.
    """
    make = _first(CREATE_KEY, functions)
    default, server = _first(DEFAULT_KEY, functions), _first(SERVER_KEY, functions)
    setters = {"data": default or _first(DATABASE_KEY, functions)} | ({"log": server} if wal else {})
    key_statements: list[str] = []
    for what, setter in setters.items():
        if not setter:
            raise RunError(f"pg_tde {version} has no function that sets the key of the {what}: it is too old")
        name = f"{PROVIDER}-{what}-{randomness.token_hex(8)}"
        if make and default:
            key_statements.append(f"SELECT {make}('{name}', '{PROVIDER}')")
        key_statements.append(f"SELECT {setter}('{name}', '{PROVIDER}')")
    return tuple(key_statements)


def altered(key_file: bytes) -> bytes:
    """Return the same key file with different keys. Pure."""
    content = bytearray(key_file)
    for match in re.finditer(rb"%b-(?:data|log)-[0-9a-f]{16}\0" % PROVIDER.encode(), key_file):
        begin = match.start() + NAME_BYTES
        content[begin : begin + KEY_BYTES] = bytes(0xFF ^ byte for byte in content[begin : begin + KEY_BYTES])
    return bytes(content)


# ── files of keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


def keys_in(directory: Path) -> Keys:
    """Read what the key files state unencrypted about each key. Raises OSError if a file can't be read."""
    tables: Counter[str] = Counter()
    log: Counter[str] = Counter()
    last, other = False, []
    for path in sorted(directory.glob(KEY_FILES)):
        if (entries := _entries(path, TABLE_LAYOUT, TABLE_ENTRY)) is None:
            other.append(path.name)
            continue
        tables.update(_cipher_name(cipher) for cipher, kind in entries if kind == TABLE_USED)
    if (path := directory / LOG_KEYS).exists():
        if (entries := _entries(path, LOG_LAYOUT, LOG_ENTRY)) is None:
            other.append(path.name)
        else:
            for cipher, kind in entries:
                last = kind == LOG_ENCRYPTED
                log.update([_cipher_name(cipher)] if last else [])
    return Keys(tables, log, last, tuple(other))


def _entries(path: Path, layout: int, entry: struct.Struct) -> Iterator[tuple[int, int]] | None:
    """Return (cipher, kind) of each key; None if the file has another layout.

    Skips an entry that is not fully written.
    """
    content = path.read_bytes()
    if not content:
        return iter(())
    if len(content) < HEADER_BYTES or int.from_bytes(content[:4], "little") != layout:
        return None
    places = range(HEADER_BYTES, len(content) - entry.size + 1, entry.size)
    return iter([entry.unpack_from(content, at) for at in places])


def _cipher_name(number: int) -> str:
    return CIPHERS.get(number, f"cipher {number}")


def judge_keys(keys: Keys, requested: str, *, wal: bool) -> tuple[bool, str]:
    """Judge whether the keys beside the data are for the requested cipher. Returns (verdict, words). Pure."""
    for what, counts in (("tables and indexes", keys.tables), ("the write-ahead log", keys.log)):
        if wrong := {name: count for name, count in counts.items() if name != requested}:
            listed = ", ".join(f"{count} for {name}" for name, count in sorted(wrong.items()))
            return False, f"of {counts.total()} keys of {what} {listed}, but {requested} was requested"
    if keys.other:
        # Before version 2.2 there was one cipher. A later version's layout is unknown: only the server's own report
        # remains.
        return (
            True,
            f"{', '.join(keys.other)} in {DIRECTORY}: not the layout of version 2.2, so the cipher of its keys is unknown",
        )
    if not keys.tables:
        return False, f"{DIRECTORY} contains no key of a table"
    if keys.last != wal:
        return False, f"according to its keys the write-ahead log is {'encrypted' if keys.last else 'not encrypted'}"
    log = f" and {keys.log.total()} of the write-ahead log" if keys.log else ""
    return True, f"{keys.tables.total()} keys of tables and indexes{log} are for {requested}"


def _first(candidates: tuple[str, ...], functions: Mapping[str, str]) -> str:
    return next((name for name in candidates if name in functions), "")


def _pair(row: list[str | None]) -> tuple[str, str]:
    return row[0] or "", row[1] or ""


def _version(look: ArmAtRest) -> str:
    ((version,),) = look.query("SELECT pg_tde_version()")
    return (version or "").removeprefix("pg_tde ")


MECHANISM = PgTde()
