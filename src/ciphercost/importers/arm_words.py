"""arm_words: a name such as `tls-off` -> the arm that its words state. Pure."""

from __future__ import annotations

import re

from ciphercost.model.spec import ARMS, Arm


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN = words_of(
    "plain plaintext clear cleartext unencrypted notls nossl notde noenc noencryption nocrypt http insecure baseline"
)
ENCRYPTED = words_of(
    "encrypted encryption enc encrypt tls ssl mtls tde https cipher sqlcipher luks fscrypt gocryptfs secure sslmode pgsslmode usessl tlsv sslv"
)
NOT = words_of("no not non without skip")
WITH = words_of("with")
"""Of the word behind them."""
OFF = words_of("off disabled disable none false")
ON = words_of("on enabled enable required require true")
"""Of the word before them; without one, of that behind."""
VERBS = words_of("disable enable require")
UNSURE = words_of("prefer preferred allow")
"""Modes in which the server decides."""
WHOLE = (OFF | ON | words_of("with without")) - words_of("true false")
"""What tells of an arm where a name has nothing else."""
NEUTRAL = words_of("run runs test tests bench benchmark result results mode is was turned set txt log out csv json")
"""Words between which others are neighbours."""


def arm_in(text: str) -> Arm | None:
    """The arm that a name tells of: `tls-off` is plain, `notls` too, `tls` encrypted; None where it tells of none or of both. Pure."""
    told = told_by(text)
    return told[0] if told else None


def told_by(text: str) -> tuple[Arm, str] | None:
    """(arm, the words that tell of it). Pure. Words like `off`, `no`, `on` tell only of an encrypting word that they stand beside."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()
    split = re.sub(r"=\s*0(?![\d.])", "=off ", split)
    # `http2` says nothing of TLS; in `tls13` and `plain2` the digits are a version, or count.
    words = [word for word in re.findall(r"http\d|[a-z]+", split) if word not in NEUTRAL]
    if len(words) == 1 and words[0] in WHOLE:
        return ("encrypted" if words[0] in ON | WITH else "plain"), words[0]
    found: dict[Arm, list[str]] = {"plain": [], "encrypted": []}
    for at, word in enumerate(words):
        before, behind = (words[at - 1] if at else ""), (words[at + 1] if at + 1 < len(words) else "")
        if word in PLAIN:
            if before in NOT:
                return None
            found["plain"].append(word)
        elif word in ENCRYPTED:
            off = _said_of(words, at, NOT, OFF)
            on = _said_of(words, at, WITH, ON)
            if (off and on) or before in UNSURE or behind in UNSURE:
                return None
            found["plain" if off else "encrypted"].append(off or on or word)
        elif word in OFF - VERBS and before not in ENCRYPTED and behind in ENCRYPTED and at:
            return None  # of what, in `cache-off-tls`?
    told = [arm for arm in ARMS if found[arm]]
    return (told[0], found[told[0]][0]) if len(told) == 1 and not set(words) & {"prefer", "preferred"} else None


def _said_of(words: list[str], at: int, ahead: frozenset[str], either: frozenset[str]) -> str:
    """The encrypting word with what is said of it by a word before or behind it; empty: nothing is."""
    word, before, behind = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if before in ahead or (before in either and (at == 1 or before in VERBS)):
        return f"{before} {word}"
    last = at + 2 == len(words)
    return f"{word} {behind}" if behind in either or (last and behind in ahead) else ""
