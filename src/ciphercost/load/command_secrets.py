"""command_secrets: a command without the secrets that can be recognised in it, for records and reports. Pure.

Secrets belong into the environment or a file: every user of this machine can read a command line.
"""

from __future__ import annotations

import re

import msgspec

from ciphercost.model.command_load import CommandLoad
from ciphercost.model.spec import CellSpec, Spec

HIDDEN = "[hidden]"
SECRET = re.compile(
    r"""(?P<user>://[^\s/@:'"]*:)[^\s@/'"]+(?=@)
    |(?P<name>(?<![a-z0-9])[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|api_?key|credential|(?<![a-z])auth(?![a-z]))[\w.-]*["']?\s*[=:]\s*
     |(?<!\S)--?[\w-]*(?:password|passwd|passphrase|pass|pwd|secret|token|api-?key|credential)[\w-]*\s+(?!-))
     (?:\\?"[^"]*"?|\\?'[^']*'?|[^\s&;,'"]+)
    |(?P<pair>(?<!\S)-u\s*[^\s:]+:)[^\s/]\S*
    |(?P<mysql>\bmy(?:sql\w*|admin)\b[^|;&]*?\s(?-i:-p))(?!\s)\S+
    |(?P<redis>\b(?:redis|valkey|memtier)[-_]\w+\b[^|;&]*?\s-a\s+)\S+
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What stands before a secret, by group, and the secret."""
TEXTS = ("plain", "encrypted", "before", "after")


def shown(text: str) -> str:
    """The text with each secret hidden."""
    return SECRET.sub(lambda match: f"{next(filter(None, match.groups()))}{HIDDEN}", text)


def without(load: CommandLoad) -> CommandLoad:
    """Commands as the record holds them."""
    texts = {name: shown(getattr(load, name)) for name in TEXTS}
    hidden = load.hidden or any(texts[name] != getattr(load, name) for name in TEXTS)
    return msgspec.structs.replace(load, **texts, hidden=hidden)


def recorded(cell: CellSpec) -> CellSpec:
    """A cell as the record holds it."""
    return msgspec.structs.replace(cell, command=without(cell.command)) if cell.command else cell


def recorded_spec(spec: Spec) -> Spec:
    """A spec as the record holds it."""
    if not any(cell.command for cell in spec.cells):
        return spec
    return msgspec.structs.replace(spec, cells=[recorded(cell) for cell in spec.cells])
