"""redact: keys made by this process -> texts without them. What a server says of a statement may repeat the keys that stood in it.

A server quotes the statement from where it stopped reading, and cuts it off where it likes: so parts of a key are hidden too.
"""

from __future__ import annotations

import re

PART = 12
"""Hexadecimal digits that are taken for a part of a key: so many are none by chance."""
SHOWN = "[key]"
_DIGITS = re.compile(rf"[0-9A-Fa-f]{{{PART},}}")
_parts: set[str] = set()


def hide(key: bytes) -> None:
    """From now on `shown` leaves this key out."""
    digits = key.hex()
    _parts.update(digits[at : at + PART] for at in range(len(digits) - PART + 1))


def shown(text: str) -> str:
    """The text without keys, which are written in hexadecimal digits wherever they stand."""
    return _DIGITS.sub(_instead, text) if _parts else text


def shown_line(line: bytes) -> bytes:
    """The same of a line in UTF-8, at no cost where no key is hidden."""
    return shown(line.decode(errors="replace")).encode() if _parts else line


def _instead(digits: re.Match[str]) -> str:
    word = digits.group(0).lower()
    return SHOWN if any(word[at : at + PART] in _parts for at in range(len(word) - PART + 1)) else digits.group(0)


SECRET = re.compile(r"(?i)pass(?:word|wd|phrase)|pwd|secret|credential|dbcryptconfig")
"""In the name of a setting or a property whose value nobody else may see."""
