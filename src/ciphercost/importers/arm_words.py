"""Finds the arm that a name such as `tls-off` states. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from ciphercost.model.spec import ARMS, Arm


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN = words_of(
    "plain plaintext clear cleartext claro unencrypted notls nossl notde noenc noencryption nocrypt http insecure baseline"
)
ENCRYPTED = words_of(
    "encrypted encryption enc encrypt tls ssl mtls tde https cipher sqlcipher luks fscrypt gocryptfs secure sslmode pgsslmode usessl tlsv sslv "
    "verifyfull verifyca verifyidentity cifrado cifrada cifrados cifradas"
)
NOT = words_of("no not non without skip")
WITH = words_of("with")
"""These apply to the following word."""
OFF = words_of("off disabled disable none false")
ON = words_of("on enabled enable required require true")
"""These apply to the preceding word, or, if there is none, to the following one."""
VERBS = words_of("disable enable require")
UNSURE = words_of("prefer preferred allow optional")
"""Modes in which the server decides whether to encrypt."""
CHECKED = words_of("full ca identity")
"""What follows `verify` in a mode that encrypts and checks the certificate."""
WHOLE = (OFF | ON | words_of("with without")) - words_of("true false")
"""Words that state an arm if the name has no other words."""
YES, NO = words_of("true t yes y on 1 enabled"), words_of("false f no n off 0 disabled")
NEUTRAL = words_of("run runs test tests bench benchmark result results mode is was turned set txt log out csv json")
"""Words that are skipped, so that the words around them become neighbours."""
SWITCH = r"(?<![a-z])(tls|ssl|tde|enc|encrypt|encrypted|encryption|usessl|https|mtls)"
SWITCHED_OFF = re.compile(rf"{SWITCH}0(?!\d|\.\d)")
"""`ssl0`: switched off. In `tls1.0` and `ssl01` the 0 belongs to a version or a counter."""
NUMBERED = re.compile(rf"{SWITCH}[-_ ]?(\d+)(?!\d|\.\d)", re.IGNORECASE)
"""A word for encryption with a number, which may be a switch (0, 1) or count the runs."""
VERIFIES = re.compile(rf"(?<![a-z])verify[-_ ]?({'|'.join(CHECKED)})(?![a-z])")


SWITCHED = re.compile(rf"([\w-]{{1,40}})\s*=\s*({'|'.join(sorted(YES | NO, key=len, reverse=True))})", re.IGNORECASE)
"""A switch with its value and nothing else, which may be a password: `useSSL=false`, `plaintext=1`."""
OF_ITS_COLUMN = re.compile(
    r"v?1\.[0-3]|no[-_ ]?verify|trust|strict|mandatory|.*(?:aes|chacha|camellia|gcm|ccm).*", re.IGNORECASE
)
"""Values that state an arm only below a heading such as `tls` or `cipher`: versions, ciphers, modes."""


@lru_cache(maxsize=4096)  # a table has few values in many rows
def arm_of_value(value: str, column: str) -> str:
    """Return the text that states the arm of a table's row: the value, or `useSSL=false` if it needs its column. Pure."""
    switch = value.lower() in YES | NO
    named = arm_in(column)
    if (switch and named) or (named == "encrypted" and arm_in(value) is None and OF_ITS_COLUMN.fullmatch(value)):
        return f"{column}={value}"
    return value


def server_decides(text: str) -> str:
    """Return the word of a mode that leaves the choice to the server, such as `prefer`; empty: there is none. Pure."""
    return next((word for word in re.findall(r"[a-z]+", text.lower()) if word in UNSURE), "")


def arm_in(text: str) -> Arm | None:
    """Return the arm that a name states: `tls-off` and `notls` are plain, `tls` is encrypted; None if it states neither
    or both. Pure.
    """
    told = arm_stated_in(text)
    return told[0] if told else None


def arm_stated_in(text: str) -> tuple[Arm, str] | None:
    """Return (arm, the words that state it). Words like `off`, `no`, `on` count only next to an encryption word. Pure."""
    if (switch := SWITCHED.fullmatch(text.strip())) and (arm := arm_in(switch[1])):
        other: Arm = "encrypted" if arm == "plain" else "plain"
        return (arm if switch[2].lower() in YES else other), text.strip()
    text = re.sub(r"(TLS|SSL)v(?=\d)", r"\1 ", text)
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()
    split = re.sub(r"=\s*0(?!\d|\.\d)", "=off ", split)
    split = SWITCHED_OFF.sub(r"\1 off ", split)
    split = VERIFIES.sub(r"verify\1", split)
    # `http2` says nothing about TLS. In `tls13` and `plain2` the digits are a version or a counter.
    words = [word for word in re.findall(r"http\d|[a-z]+", split) if word not in NEUTRAL]
    if len(words) == 1 and words[0] in WHOLE:
        return ("encrypted" if words[0] in ON | WITH else "plain"), words[0]
    words_by_arm: dict[Arm, list[str]] = {"plain": [], "encrypted": []}
    for at, word in enumerate(words):
        before, behind = (words[at - 1] if at else ""), (words[at + 1] if at + 1 < len(words) else "")
        if word in PLAIN:
            if before in NOT:
                return None
            words_by_arm["plain"].append(word)
        elif word in ENCRYPTED:
            off = _said_of(words, at, NOT, OFF)
            on = _said_of(words, at, WITH, ON)
            if (off and on) or before in UNSURE or behind in UNSURE:
                return None
            words_by_arm["plain" if off else "encrypted"].append(off or on or word)
        elif word in OFF - VERBS and before not in ENCRYPTED and behind in ENCRYPTED and at:
            return None  # in `cache-off-tls`, `off` may refer to either neighbour
    told = [arm for arm in ARMS if words_by_arm[arm]]
    return (told[0], words_by_arm[told[0]][0]) if len(told) == 1 and not set(words) & {"prefer", "preferred"} else None


def _said_of(words: list[str], at: int, ahead: frozenset[str], either: frozenset[str]) -> str:
    """Return the encryption word together with the neighbour that modifies it; empty if none does."""
    word, before, behind = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if before in ahead or (before in either and (at == 1 or before in VERBS)):
        return f"{before} {word}"
    last = at + 2 == len(words)
    return f"{word} {behind}" if behind in either or (last and behind in ahead) else ""
