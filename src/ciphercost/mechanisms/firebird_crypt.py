"""firebird-crypt: a Firebird database encrypted by the plugin that comes with the server as a sample. Its cipher is XOR with one byte.

So it is plumbing and no cryptography: what it costs is what Firebird itself does to call a plugin for each page, which a plugin
with a real cipher has to be added to. Both arms run with the same plugins and the same key; only one database is told to use them.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets as randomness
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ciphercost.engines.firebird import FILE, PLUGIN_SETTING, plugin_of
from ciphercost.host.installation import Installation
from ciphercost.mechanisms._rest import AtRest, KeyState, Look, Rest
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import Arm

CRYPT, HOLDER = "fbSampleDbCrypt", "fbSampleKeyHolder"
KEY_FILE = "firebird-crypt.key"
STATES = {0: "not encrypted", 1: "encrypted", 2: "being decrypted", 3: "being encrypted"}
"""MON$CRYPT_STATE. Conversion goes on behind the statement that asks for it."""
PLAIN, ENCRYPTED, *CONVERTING = STATES
CONVERSION_SECONDS = 600.0

PAGE_SIZE, FLAGS, HEADER = struct.Struct("<16xH"), struct.Struct("<42xH"), 128
"""Of the first page, which is never encrypted: the size of all, and flags of the database. ODS 13 (Firebird 4 and 5)."""
HEADER_ENCRYPTED, PAGE_ENCRYPTED = 0x40, 0x80
"""In the flags of the database; in the second byte of each page."""
KINDS = (5, 7, 8)
"""Types of page (their first byte) that are encrypted: rows, indices, large objects."""
XOR = "XOR with one byte"


class Pages(msgspec.Struct, frozen=True):
    """What the pages of a database file say of themselves."""

    flagged: bool
    """The database as a whole."""
    plugin: bool
    """The first page names the plugin."""
    encrypted: int
    clear: int
    """Pages of rows, indices and large objects."""


class FirebirdCrypt(AtRest):
    name = "firebird-crypt"
    title = f"Firebird: database encryption by the sample plugin ({XOR}: plumbing, no cryptography)"
    engines = ("firebird",)
    protects = f"nothing: the sample plugin's cipher is {XOR}; what is measured is Firebird's way of calling a plugin"
    key_states = ("missing", "wrong")

    def prepare(self, rest: Rest) -> Installation:
        bindir = Path(rest.installation.location)
        if missing := [name for name in (CRYPT, HOLDER) if plugin_of(bindir, name) is None]:
            raise MissingServer(
                f"Firebird {rest.installation.version} in {bindir} comes without its sample plugin {missing[0]}. Debian's package "
                "has it: `ciphercost install firebird`, and leave --bindir out."
            )
        return rest.installation

    def settings(self, arm: Arm, rest: Rest) -> dict[str, str]:  # noqa: ARG002
        """The same for both arms. The database's plugin takes its key from the key holder, which has it from its settings."""
        wanted = {f"{PLUGIN_SETTING}{CRYPT}": "Auto = no"}
        if key := _key(rest.secrets / KEY_FILE):
            wanted |= {"KeyHolderPlugin": HOLDER, f"{PLUGIN_SETTING}{HOLDER}": f"Auto = yes\nKey = {key}"}
        return wanted

    def encrypt(self, look: Look) -> None:
        """It goes on behind the statement: `settled` waits for its end."""
        if look.arm == "encrypted":
            look.query(f'ALTER DATABASE ENCRYPT WITH "{CRYPT}"')

    def settled(self, look: Look) -> None:
        deadline = time.monotonic() + CONVERSION_SECONDS
        while (found := state(look))[0] in CONVERTING:
            if time.monotonic() > deadline:
                raise RunError(
                    f"Firebird has not converted its database within {CONVERSION_SECONDS:g} seconds: it is "
                    f"{STATES[found[0]]}, at page {found[1]}"
                )
            time.sleep(0.2)

    def status(self, look: Look) -> tuple[bool, str]:
        found, page = state(look)
        detail = f"MON$CRYPT_STATE is {found}: {STATES.get(found, 'not known')}"
        if found in CONVERTING:
            return False, f"{detail}, at page {page}"
        return found == (ENCRYPTED if look.arm == "encrypted" else PLAIN), detail

    def structure(self, look: Look) -> tuple[bool, str]:
        path = look.volume.path / FILE
        try:
            pages = pages_of(path)
        except (OSError, ValueError, struct.error) as error:
            return False, f"{path.name} can't be read: {error}"
        passed, detail = judge(pages, look.arm)
        if look.arm == "encrypted" and passed:
            detail += f"; {XOR} gives the first row back {_undone(look, path)} times, so nothing is protected"
        return passed, detail

    def implementation(self, look: Look) -> dict[str, str]:  # noqa: ARG002
        return {
            "cipher": XOR,
            "implementation": f"Firebird's sample plugin {CRYPT}",
            "warning": f"the sample plugin's cipher is {XOR}: this is the cost of Firebird's plumbing, and not of cryptography",
        }

    def findings(self, rest: Rest) -> list[Finding]:  # noqa: ARG002
        text = f"the database is hidden by {XOR}, of which there are 255: whoever has the file can read it"
        return [Finding("no-cryptography", "high", text, "a plugin with a real cipher")]

    def advice(self, place: str) -> str:
        if "fb_table_" in place:
            return "TempTableDirectory in firebird.conf, on a file system that is encrypted"
        if not any(kind in place for kind in ("fb_sort_", "fb_merge_", "fb_undo_", "fb_blob_")):
            return ""
        return "TempDirectories in firebird.conf, on a file system that is encrypted; a larger TempCacheLimit keeps sorts in memory"

    @contextlib.contextmanager
    def key_taken(self, state: KeyState, rest: Rest, directory: Path) -> Iterator[None]:  # noqa: ARG002
        """The server starts, since its databases are opened later; the encrypted one it then refuses to open."""
        path = rest.secrets / KEY_FILE
        right = _key(path)
        wrong = int(right) - 1 if right != "128" else 255
        try:
            path.write_text(str(wrong) if state == "wrong" else "")
            yield
        finally:
            path.write_text(right)


def state(look: Look) -> tuple[int, int]:
    """MON$CRYPT_STATE, and the page that a conversion has come to."""
    rows = look.query("SELECT MON$CRYPT_STATE, MON$CRYPT_PAGE FROM MON$DATABASE")
    return int(rows[0][0] or 0), int(rows[0][1] or 0)


def pages_of(path: Path) -> Pages:
    """Looks at each page's type and flag. ValueError: that is no Firebird database."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        size = PAGE_SIZE.unpack_from(content)[0]
        if content[0] != 1 or size < 4096:
            raise ValueError("its first page is no header page")
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
    """Whether a database's pages are what the arm's name says. Pure."""
    detail = (
        f"{pages.encrypted} of {pages.encrypted + pages.clear} pages of rows and indices are marked as encrypted, the "
        f"database {'is' if pages.flagged else 'is not'}{f' (by {CRYPT})' if pages.flagged and pages.plugin else ''}"
    )
    if arm == "plain":
        return not pages.flagged and not pages.encrypted and pages.clear > 0, detail
    return pages.flagged and pages.plugin and pages.encrypted > 0 and not pages.clear, detail


def _undone(look: Look, path: Path) -> int:
    """How often the canary is found in the file once it is undone what the plugin does."""
    from ciphercost.model.terms import CANARY_TABLE

    word = str(look.query(f"SELECT FIRST 1 word FROM {CANARY_TABLE}")[0][0]).encode()
    key = int(_key(look.rest.secrets / KEY_FILE))
    hidden = bytes(byte ^ key for byte in word)
    count = at = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        while (at := content.find(hidden, at) + 1) > 0:
            count += 1
    return count


def _key(path: Path) -> str:
    """A byte, as decimal digits, made at the first call; empty while it is taken away. With it no text stays text."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(str(randomness.choice(range(128, 256))))
    except FileExistsError:
        pass
    return path.read_text()


MECHANISM = FirebirdCrypt()
