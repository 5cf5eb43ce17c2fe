"""Removes keys that this process generated from texts. A server's error message may quote a statement that contains a
key.

A server may quote any part of the statement, so parts of a key are removed too.
"""

from __future__ import annotations

import re

PART = 12
"""Shortest run of hexadecimal digits that counts as part of a key: too long to match by chance."""
SHOWN = "[key]"
_DIGITS = re.compile(rf"[0-9A-Fa-f]{{{PART},}}")
_parts: set[str] = set()


def hide(key: bytes) -> None:
    """Remove this key from every text that `shown` returns from now on."""
    digits = key.hex()
    _parts.update(digits[at : at + PART] for at in range(len(digits) - PART + 1))


def shown(text: str) -> str:
    """Return the text without keys, which are hexadecimal digits wherever they occur."""
    return _DIGITS.sub(_instead, text) if _parts else text


def shown_line(line: bytes) -> bytes:
    """Do the same for a line in UTF-8. Costs nothing while no key is hidden."""
    return shown(line.decode(errors="replace")).encode() if _parts else line


def _instead(digits: re.Match[str]) -> str:
    word = digits.group(0).lower()
    return SHOWN if any(word[at : at + PART] in _parts for at in range(len(word) - PART + 1)) else digits.group(0)


_VALUE = re.compile(
    r"(?<=\bnear )'.*'(?= at line)|'(?:[^']|'')*'|\"[^\"]*\"|(?<=\)=)\(.*?\)|(?<=contains )\(.*\)", re.DOTALL
)
"""What a server quotes of a statement or of a row in an error: `Duplicate entry 'x'`, `Key (name)=(x)`, `near 'x' at line 1`."""


def without_values(text: str) -> str:
    """An error of a server without what it quotes, which may be a value of the user's. Pure."""
    return _VALUE.sub("…", text)


_SECRET_SETTING = re.compile(
    r"(?:.*[_.])?(?:password|passwd|passphrase|passwort|pwd|secret|secret_id|token|credentials?)|require_?pass|(?:master|primary)auth"
    r"|(?:file_)?key_management_filekey|(?:.*[_.])?(?:secret|private|api|access|encryption|master)_key|dbcryptconfig|primary_conninfo"
)
"""Names of settings whose value is a secret or holds one, in lower case with `_` for `-`."""
_SECRET_VALUE = re.compile(r"(?i)-----BEGIN|\bpassword\s*=|\w://[^/\s:@]*:[^/\s@]+@")
"""A value that is or holds a secret, whatever the setting's name."""


def holds_secret(name: str, value: str) -> bool:
    """Whether a server setting holds a secret, by its exact name or by what the value looks like. Pure.

    A part of a name decides nothing: `password_encryption`, `key_buffer_size` and `log_tokens` are no secrets. `name`: in
    lower case, with `_` for `-`.
    """
    return bool(_SECRET_SETTING.fullmatch(name) or _SECRET_VALUE.search(value))


SECRET = re.compile(r"(?i)pass(?:word|wd|phrase)|pwd|secret|credential|dbcryptconfig")
"""Matches the name of a setting or property whose value is secret."""
