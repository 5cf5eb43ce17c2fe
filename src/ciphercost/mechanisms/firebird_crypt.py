"""Firebird database encryption by the server's sample plugin, whose cipher is XOR with one byte.

So it is plumbing without cryptography: it measures what Firebird spends to call a plugin for each page. A real cipher's
cost comes on top. Both arms run with the same plugins and the same key, but only one database uses them.
"""

from __future__ import annotations

import contextlib
import mmap
import secrets as randomness
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import msgspec

from ciphercost.engines.firebird import FILE, PLUGIN_SETTING, plugin_of
from ciphercost.host.installation import Installation
from ciphercost.mechanisms._client_key import kept_key
from ciphercost.mechanisms._rest import ArmAtRest, AtRest, AtRestContext, KeyState
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import Arm

CRYPT, HOLDER = "fbSampleDbCrypt", "fbSampleKeyHolder"
KEY_FILE = "firebird-crypt.key"
STATES = {0: "not encrypted", 1: "encrypted", 2: "being decrypted", 3: "being encrypted"}
"""MON$CRYPT_STATE. Conversion continues in the background after the statement that starts it."""
PLAIN, ENCRYPTED, *CONVERTING = STATES
CONVERSION_SECONDS = 600.0

PAGE_SIZE, FLAGS, HEADER = struct.Struct("<16xH"), struct.Struct("<42xH"), 128
"""In the first page, which is never encrypted: the page size and the database flags. ODS 13 (Firebird 4 and 5)."""
HEADER_ENCRYPTED, PAGE_ENCRYPTED = 0x40, 0x80
"""In the database flags, and in the second byte of each page."""
KINDS = (5, 7, 8)
"""Types of encrypted pages (first byte): rows, indexes, blobs."""
XOR = "XOR with one byte"


class Pages(msgspec.Struct, frozen=True):
    """What the pages of a database file state about their encryption."""

    flagged: bool
    """The flag of the database as a whole."""
    plugin: bool
    """Whether the first page names the plugin."""
    encrypted: int
    clear: int
    """Pages of rows, indexes and blobs."""


class FirebirdCrypt(AtRest):
    name = "firebird-crypt"
    title = f"Firebird: database encryption by the sample plugin ({XOR}: plumbing, no cryptography)"
    engines = ("firebird",)
    decided_settings = MappingProxyType({"(keyholder|crypt)plugin": ""})
    protects = f"nothing: the sample plugin's cipher is {XOR}; it measures how Firebird calls a plugin"
    key_states = ("missing", "wrong")

    def prepare(self, rest: AtRestContext) -> Installation:
        bindir = Path(rest.installation.location)
        if missing := [name for name in (CRYPT, HOLDER) if plugin_of(bindir, name) is None]:
            raise MissingServer(
                f"Firebird {rest.installation.version} in {bindir} lacks its sample plugin {missing[0]}. Debian's package "
                "has it: run `ciphercost install firebird` and leave --bindir out."
            )
        return rest.installation

    def settings(self, arm: Arm, rest: AtRestContext) -> dict[str, str]:  # noqa: ARG002
        """The same for both arms.

        The database plugin takes its key from the key holder, which reads it from its settings.
        """
        wanted = {f"{PLUGIN_SETTING}{CRYPT}": "Auto = no"}
        if key := _key(rest.secrets / KEY_FILE):
            wanted |= {"KeyHolderPlugin": HOLDER, f"{PLUGIN_SETTING}{HOLDER}": f"Auto = yes\nKey = {key}"}
        return wanted

    def encrypt(self, look: ArmAtRest) -> None:
        """Start the conversion, which continues in the background: `settled` waits for its end."""
        if look.arm == "encrypted":
            look.query(f'ALTER DATABASE ENCRYPT WITH "{CRYPT}"')

    def settled(self, look: ArmAtRest) -> None:
        deadline = time.monotonic() + CONVERSION_SECONDS
        while (progress := state(look))[0] in CONVERTING:
            if time.monotonic() > deadline:
                raise RunError(
                    f"Firebird did not convert its database within {CONVERSION_SECONDS:g} seconds: it is "
                    f"{STATES[progress[0]]}, at page {progress[1]}"
                )
            time.sleep(0.2)

    def status(self, look: ArmAtRest) -> tuple[bool, str]:
        crypt_state, page = state(look)
        detail = f"MON$CRYPT_STATE is {crypt_state}: {STATES.get(crypt_state, 'unknown')}"
        if crypt_state in CONVERTING:
            return False, f"{detail}, at page {page}"
        return crypt_state == (ENCRYPTED if look.arm == "encrypted" else PLAIN), detail

    def structure(self, look: ArmAtRest) -> tuple[bool, str]:
        path = look.volume.path / FILE
        try:
            pages = pages_of(path)
        except (OSError, ValueError, struct.error) as error:
            return False, f"{path.name} can't be read: {error}"
        passed, detail = judge(pages, look.arm)
        if look.arm == "encrypted" and passed:
            detail += f"; {XOR} makes the first row readable {_undone(look, path)} times, so nothing is protected"
        return passed, detail

    def implementation(self, look: ArmAtRest) -> dict[str, str]:  # noqa: ARG002
        return {
            "cipher": XOR,
            "implementation": f"Firebird's sample plugin {CRYPT}",
            "warning": f"the sample plugin's cipher is {XOR}: this is the cost of Firebird's plumbing, not of cryptography",
        }

    def findings(self, rest: AtRestContext) -> list[Finding]:  # noqa: ARG002
        text = f"{XOR} hides the database, and there are only 255 keys: anyone who has the file can read it"
        return [Finding("no-cryptography", "high", text, "a plugin with a real cipher")]

    def advice(self, place: str) -> str:
        if "fb_table_" in place:
            return "TempTableDirectory in firebird.conf, on an encrypted file system"
        if not any(kind in place for kind in ("fb_sort_", "fb_merge_", "fb_undo_", "fb_blob_")):
            return ""
        return "TempDirectories in firebird.conf, on an encrypted file system; a larger TempCacheLimit keeps sorts in memory"

    @contextlib.contextmanager
    def key_taken(self, state: KeyState, rest: AtRestContext, directory: Path) -> Iterator[None]:  # noqa: ARG002
        """The server starts, since it opens its databases later; then it refuses to open the encrypted one."""
        path = rest.secrets / KEY_FILE
        right = _key(path)
        wrong = int(right) - 1 if right != "128" else 255
        try:
            path.write_text(str(wrong) if state == "wrong" else "")
            yield
        finally:
            path.write_text(right)


def state(look: ArmAtRest) -> tuple[int, int]:
    """Return MON$CRYPT_STATE, and the page that a conversion has reached."""
    rows = look.query("SELECT MON$CRYPT_STATE, MON$CRYPT_PAGE FROM MON$DATABASE")
    return int(rows[0][0] or 0), int(rows[0][1] or 0)


def pages_of(path: Path) -> Pages:
    """Read each page's type and flag. Raises ValueError if the file is not a Firebird database."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        size = PAGE_SIZE.unpack_from(content)[0]
        if content[0] != 1 or size < 4096:
            raise ValueError("its first page is not a header page")
        count = {True: 0, False: 0}
        for at in range(0, len(content) - 1, size):
            if content[at] in KINDS:
                count[bool(content[at + 1] & PAGE_ENCRYPTED)] += 1
        return Pages(
            flagged=bool(FLAGS.unpack_from(content)[0] & HEADER_ENCRYPTED),
            plugin=CRYPT.encode() in content[:size],
            encrypted=count[True],
            clear=count[False],
        )


def judge(pages: Pages, arm: Arm) -> tuple[bool, str]:
    """Judge whether a database's pages are as the arm's name promises. Pure."""
    detail = (
        f"{pages.encrypted} of {pages.encrypted + pages.clear} pages of rows and indexes are marked as encrypted, the "
        f"database {'is' if pages.flagged else 'is not'}{f' (by {CRYPT})' if pages.flagged and pages.plugin else ''}"
    )
    if arm == "plain":
        return not pages.flagged and not pages.encrypted and pages.clear > 0, detail
    return pages.flagged and pages.plugin and pages.encrypted > 0 and not pages.clear, detail


def _undone(look: ArmAtRest, path: Path) -> int:
    """Count the canary in the file after undoing what the plugin does."""
    from ciphercost.model.constrained_types import CANARY_TABLE

    word = str(look.query(f"SELECT FIRST 1 word FROM {CANARY_TABLE}")[0][0]).encode()
    key = int(_key(look.rest.secrets / KEY_FILE))
    hidden = bytes(byte ^ key for byte in word)
    count = at = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        while (at := content.find(hidden, at) + 1) > 0:
            count += 1
    return count


def _key(path: Path) -> str:
    """Return the key, one byte in decimal digits, created at the first call; empty while it is taken away.

    It is at least 128, so no ASCII text stays ASCII.
    """
    return kept_key(path, str(randomness.choice(range(128, 256))))


MECHANISM = FirebirdCrypt()
