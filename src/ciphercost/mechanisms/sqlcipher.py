"""SQLCipher: every page of a SQLite file encrypted with AES-256-CBC and authenticated.

Only `secrets` holds the key on disk.
"""

from __future__ import annotations

import contextlib
import mmap
import secrets as randomness
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ciphercost.engines import Engine
from ciphercost.mechanisms import Factor
from ciphercost.mechanisms._client_key import another, kept_key, none_opens, openssl_of
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, Conversion, NewKey
from ciphercost.model.cipher_work import CipherWork, Stream
from ciphercost.model.connection import Changes
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import Arm

RESERVE = 80
"""Bytes at the end of each page that SQLCipher reserves for IV (16) and HMAC-SHA512 (64); the plain arm leaves as many
unused. Other HMACs, and none, are padded to the same length."""
HMAC = {"sha512": "HMAC_SHA512", "sha256": "HMAC_SHA256", "sha1": "HMAC_SHA1"}
ITERATIONS, FEWEST, MOST = "256000", 1, 100_000_000
"""Rounds of PBKDF2-HMAC-SHA512; the default of SQLCipher 4."""
COMMON = "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA temp_store=2;PRAGMA secure_delete=ON"
"""temp_store=2: sorts stay in memory, because SQLCipher does not encrypt temporary files.
secure_delete: with a key SQLCipher overwrites deleted data with zeros, so the plain arm does so too."""
KEY_FILE = "sqlcipher.key"
OPENINGS = 3
CHECKED_BYTES = 256 << 20
"""The largest file whose every HMAC is checked; that takes a second."""

MAGIC = b"SQLite format 3\0"
WAL_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
WAL_HEADER, FRAME_HEADER = 32, 24
LOCK_BYTE = 1 << 30
"""The page of a database file that has this offset holds locks and nothing else: SQLite never writes it, in no file."""


class Tails(msgspec.Struct, frozen=True):
    """The reserved ends of a file's pages, where SQLCipher puts IV and HMAC and SQLite leaves zeros."""

    filled: int
    empty: int


class SqlCipher(AtRest):
    name = "sqlcipher"
    title = "SQLCipher: encrypted database file"
    engines = ("sqlite",)
    witnesses = ("server", "disk", "client")
    protects = "a stolen or copied database file; not against a process that reads the application's memory"
    factors = (
        Factor(
            "page_size",
            ("4096", "1024", "2048", "8192", "16384", "32768", "65536"),
            "bytes per page, in both arms",
            acts="operation",
        ),
        Factor("hmac", (*HMAC, "off"), "authentication of each page", acts="operation"),
        Factor(
            "kdf", ("raw", "passphrase"), "what the key is made from each time a database is opened", acts="connection"
        ),
        Factor("kdf_iter", (), f"rounds of PBKDF2 for a passphrase ({ITERATIONS})", acts="connection"),
    )

    def check(self, factors: Mapping[str, str]) -> dict[str, str]:
        filled = super().check(factors)
        rounds = filled["kdf_iter"]
        if filled["kdf"] == "raw" and rounds:
            raise UsageError(f"{self.name}: kdf_iter={rounds} applies only to a passphrase; add kdf=passphrase")
        if filled["kdf"] == "passphrase":
            filled["kdf_iter"] = rounds = rounds or ITERATIONS
            if not (rounds.isascii() and rounds.isdigit() and FEWEST <= int(rounds) <= MOST):
                raise UsageError(f"{self.name}: kdf_iter={rounds} is not a number from {FEWEST} to {MOST}")
        return filled

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        """The key is random (256 bits), the same for the whole run, and lies in `secrets`.

        Its digits serve as the passphrase.
        """
        factors = self.check(factors)
        if arm == "plain":
            return {"reserve": RESERVE, "pragmas": f"PRAGMA page_size={factors['page_size']};{COMMON}"}
        hmac = "PRAGMA cipher_use_hmac=OFF"
        if factors["hmac"] != "off":
            hmac = f"PRAGMA cipher_use_hmac=ON;PRAGMA cipher_hmac_algorithm={HMAC[factors['hmac']]}"
        pragmas = f"PRAGMA cipher_page_size={factors['page_size']};{hmac};"
        key: Changes = {"key": _key(secrets / KEY_FILE)}
        if factors["kdf"] == "passphrase":
            key["passphrase"] = True
            pragmas += f"PRAGMA kdf_iter={factors['kdf_iter']};"
        return {**key, "pragmas": f"{pragmas}{COMMON}"}

    def key_files(self, rest: AtRestContext, directory: Path) -> Mapping[str, Path]:  # noqa: ARG002
        return {KEY_FILE: rest.secrets / KEY_FILE}

    def streams(self, factors: Mapping[str, str]) -> Mapping[str, Stream]:
        """AES-256-CBC of each page but its reserved end; the HMAC covers the same bytes and the IV."""
        page = int(factors["page_size"])
        mac = "" if factors["hmac"] == "off" else f"hmac-{factors['hmac']}"
        return {"pages": Stream(CipherWork("aes256-cbc", mac, page - RESERVE), page)}

    # ── witnesses ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        """Ask the library: the plain file opens without a key; the encrypted one doesn't, and its pages match."""
        if look.arm == "plain" and look.connect.key:
            return False, "the plain arm has a key"
        opened, words = _opens(look, None)
        detail = f"without a key: {words}"
        if look.arm == "plain":
            return opened, detail
        if opened:
            return False, detail
        reported = cipher_settings(_ask(look, "PRAGMA cipher_settings"))
        if wrong := factor_mismatch(reported, self.check(look.rest.factors)):
            return False, f"{detail}; {wrong}"
        authentic, words = _authentic(look)
        settings = f"cipher_page_size is {reported['cipher_page_size']}, HMAC {_hmac(reported)}"
        return authentic, "; ".join(part for part in (detail, settings, words) if part)

    def refuses(self, look: ArmAtRest) -> tuple[bool, str]:
        """Open the file without its key, and with another. There is no server to start."""
        given = reveal(look.connect.key)
        tried = {"without a key": _opens(look, None), "with another key": _opens(look, Secret(another(given)))}
        return none_opens(tried)

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        """Check the first bytes of the database file, and the reserved end of each page in the file and its WAL."""
        path = _file(look)
        page = int(look.rest.factors.get("page_size", "4096"))
        try:
            with path.open("rb") as file:
                magic = file.read(len(MAGIC)) == MAGIC
            pages, frames = tails(path, page), tails_in_wal(path.with_name(f"{path.name}-wal"), page)
        except (OSError, ValueError) as error:
            return False, f"{path.name} can't be read: {error}"
        return judge(magic, pages, frames, look.arm)

    def implementation(self, look: ArmAtRest) -> dict[str, str]:
        if look.arm == "plain":
            return {}
        provider = {name: _ask(look, f"PRAGMA {name}") for name in ("cipher_provider", "cipher_provider_version")}
        settings = cipher_settings(_ask(look, "PRAGMA cipher_settings"))
        factors = self.check(look.rest.factors)
        derived = f"PBKDF2 ({settings.get('cipher_kdf_algorithm', '')}, {settings.get('kdf_iter', '')} rounds)"
        able = openssl_of(look)
        details = {
            "implementation": f"{provider['cipher_provider_version'] or provider['cipher_provider']}, {able.words()}",
            "sqlcipher": _ask(look, "PRAGMA cipher_version"),
            "page_size": settings.get("cipher_page_size", ""),
            "hmac": _hmac(settings),
            "key_from": "raw" if factors["kdf"] == "raw" else derived,
            "opening": f"{_opening(look) * 1e3:.1f} ms",
        }
        if warning := able.warning():
            details["warning"] = warning
        return details

    def rotate(self, look: ArmAtRest) -> tuple[str, ...]:
        """Encrypt every page again in one transaction. Nobody keeps the new key: the file is not opened again."""
        new = randomness.token_hex(32)
        return (f"PRAGMA rekey = '{new}'" if look.connect.passphrase else f"PRAGMA rekey = \"x'{new}'\"",)

    def new_key(self, look: ArmAtRest, table: str, number: int) -> NewKey:  # noqa: ARG002
        """Until a checkpoint, the file itself still has the pages under the old key."""
        statements = (*self.rotate(look), "PRAGMA wal_checkpoint(TRUNCATE)")
        return NewKey("data", "PRAGMA rekey and a checkpoint", statements, files=(Path(look.connect.path or ""),))

    def conversion(self, look: ArmAtRest, table: str, directory: Path) -> Conversion:  # noqa: ARG002
        """Export a plain copy of the database into a new file, as SQLCipher's manual advises; in the plain arm into a plain one.

        Pages of the new file have SQLCipher's default size. It is encrypted with the key that the connection has already derived.
        """
        existing, new = directory / "existing.sqlite", directory / "encrypted.sqlite"
        clear = " KEY ''"
        attach = f"ATTACH DATABASE '{existing}' AS existing{clear}"
        key = "" if look.arm == "encrypted" else clear
        return Conversion(
            make=(attach, "SELECT sqlcipher_export('existing')"),
            convert=(
                f"ATTACH DATABASE '{new}' AS fresh{key}",
                "SELECT sqlcipher_export('fresh', 'existing')",
                "DETACH DATABASE fresh",
            ),
            drop=("DETACH DATABASE existing",),
            converted=new,
        )

    def advice(self, place: str) -> str:
        return "PRAGMA temp_store=2, which is in force in both arms here" if "etilqs_" in place else ""


def cipher_settings(text: str) -> dict[str, str]:
    """Parse lines of `PRAGMA name = value;` into values by name. Pure."""
    lines = (line.strip().removeprefix("PRAGMA ").rstrip(";") for line in text.splitlines())
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def _hmac(settings: Mapping[str, str]) -> str:
    return settings.get("cipher_hmac_algorithm", "") if settings.get("cipher_use_hmac") == "1" else "off"


def factor_mismatch(settings: Mapping[str, str], factors: Mapping[str, str]) -> str:
    """Return what in a connection's `cipher_settings` differs from these factors (with defaults); empty: nothing.

    Pure.
    """
    if not settings:
        return "the library reports no cipher_settings"
    hmac = HMAC.get(factors["hmac"], "off")
    requested = {
        "cipher_page_size": (settings.get("cipher_page_size", ""), factors["page_size"]),
        "HMAC": (_hmac(settings), hmac),
    }
    if factors["kdf"] == "passphrase":
        requested["kdf_iter"] = settings.get("kdf_iter", ""), factors["kdf_iter"]
    return "; ".join(
        f"{name} is {reported}, but {wanted} was requested"
        for name, (reported, wanted) in requested.items()
        if reported != wanted
    )


def judge(magic: bool, pages: Tails, frames: Tails, arm: Arm) -> tuple[bool, str]:
    """Judge whether a database file and its WAL are as the arm's name promises. Returns (verdict, words). Pure.

    `magic`: whether the file begins as every SQLite file does.
    """
    detail = f"the file {'begins like' if magic else 'does not begin like'} a SQLite file"
    for where, page_ends in (("pages", pages), ("pages in the WAL", frames)):
        if all_ := page_ends.filled + page_ends.empty:
            detail += f"; {page_ends.filled} of {all_} {where} end in IV and HMAC"
    if not pages.filled + pages.empty:
        return False, f"{detail}; it has no pages"
    if arm == "plain":
        return magic and not pages.filled + frames.filled, detail
    return not magic and not pages.empty + frames.empty, detail


def tails(path: Path, page: int) -> Tails:
    """Count the ends of every page of a database file that SQLite writes."""
    return _tails(path, page, 0, page, without=LOCK_BYTE // page)


def tails_in_wal(path: Path, page: int) -> Tails:
    """Count the ends of every page in a WAL, whose headers are unencrypted in both arms.

    Raises ValueError if it is not a WAL.
    """
    if not path.exists() or not path.stat().st_size:
        return Tails(0, 0)
    with path.open("rb") as file:
        if file.read(4) not in WAL_MAGIC:
            raise ValueError("its WAL is not a WAL file")
    return _tails(path, page, WAL_HEADER + FRAME_HEADER, FRAME_HEADER + page)


def _tails(path: Path, page: int, first: int, step: int, without: int = -1) -> Tails:
    """`without`: the number of a page that does not count."""
    count = {True: 0, False: 0}
    if path.stat().st_size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for number, at in enumerate(range(first, len(content) - page + 1, step)):
                if number == without:
                    continue
                # The IV is there whatever authenticates the page.
                count[any(content[at + page - RESERVE : at + page])] += 1
    return Tails(filled=count[True], empty=count[False])


def _file(look: ArmAtRest) -> Path:
    return Path(look.connect.path or "")


def _opens(look: ArmAtRest, key: Secret | None) -> tuple[bool, str]:
    """Whether the arm's file opens with this key, or with none; and what the library reports."""
    without: Changes = {"key": None, "passphrase": False, "pragmas": None}
    connection = look.connect.alone | (without if key is None else {"key": key})
    name = f"keys-{look.arm}"
    try:
        look.agent.connect(name, connection)
        look.agent.query(name, "SELECT count(*) FROM sqlite_master")
        look.agent.disconnect(name)
    except AgentError as error:
        return False, str(error).rpartition("/")[2]
    return True, "it opens"


def _opening(look: ArmAtRest) -> float:
    """Return the median time, in seconds, to open the file with its key and to read its first page."""
    took = []
    for _ in range(OPENINGS):
        began = time.monotonic()
        look.agent.connect("opening", look.connect.alone)
        took.append(time.monotonic() - began)
        look.agent.disconnect("opening")
    return statistics.median(took)


def _authentic(look: ArmAtRest) -> tuple[bool, str]:
    """Whether the HMAC of each page matches the key; (True, "") if there is no HMAC, or if checking would take long."""
    if look.rest.factors.get("hmac") == "off":
        return True, ""
    if _file(look).stat().st_size > CHECKED_BYTES:
        return True, ""
    wrong = _ask(look, "PRAGMA cipher_integrity_check")
    return not wrong, wrong.partition("\n")[0] or "every page's HMAC matches the key"


def _ask(look: ArmAtRest, sql: str) -> str:
    with contextlib.suppress(AgentError):
        return "\n".join(str(row[0]) for row in look.query(sql))
    return ""


def _key(path: Path) -> Secret:
    """Return 64 hexadecimal digits, created at the first call."""
    return Secret(kept_key(path, randomness.token_hex(32)))


MECHANISM = SqlCipher()
