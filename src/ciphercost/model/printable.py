"""printable: text from files, servers and records of others, without what steers a terminal. Pure."""

from __future__ import annotations

import unicodedata

UNPRINTABLE = frozenset({"Cc", "Cf", "Cs"})
"""Unicode categories of control characters, format characters (such as text direction) and lone surrogates."""


def printable(text: str) -> str:
    """The text with U+FFFD for each control or format character except line ends and tabs, and for what XML forbids."""
    if text.isprintable():
        return text
    return "".join("\ufffd" if _steers(letter) else letter for letter in text)


def _steers(letter: str) -> bool:
    return letter not in "\n\t" and (unicodedata.category(letter) in UNPRINTABLE or letter in "\ufffe\uffff")
