"""libpq's other form of a connection string, `host=db.example dbname=shop sslmode=require`, as the URL that means the same. Pure.

Source: the PostgreSQL documentation, "Connection Strings", "Keyword/Value Connection Strings".
"""

from __future__ import annotations

import re
from urllib.parse import quote

from ciphercost.load.connection_string import holds_password
from ciphercost.load.connection_string.libpq import INSTEAD, SECRETS
from ciphercost.model.errors import UsageError

KEYWORDS = re.compile(r"\s*[a-z_]+\s*=")
"""How such a string begins. No URL and no target does."""
NAME = re.compile(r"\s*([^\s=]+)\s*=\s*")
VALUE = re.compile(r"(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<bare>(?:[^\s\\']|\\.)(?:[^\s\\]|\\.)*|))(?=\s|$)", re.DOTALL)


def as_url(text: str) -> str:
    """The URL that means what a keyword string means; any other text as it is. Raises UsageError where libpq can't read it."""
    if not KEYWORDS.match(text):
        return text
    parameters: list[str] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        name = NAME.match(text, at)
        value = name and VALUE.match(text, name.end())
        if not name or not value:
            shown = name[1] if name else text[at:].split()[0]
            raise UsageError(
                f"{shown}: a value is missing, or its quote is open; write NAME=VALUE, with spaces NAME='VALUE'"
            )
        if name[1] in SECRETS:
            raise holds_password(INSTEAD)
        plain = re.sub(r"\\(.)", r"\1", value["bare"] if value["quoted"] is None else value["quoted"], flags=re.DOTALL)
        parameters.append(f"{quote(name[1], safe='')}={quote(plain, safe='/:,~')}")
        at = value.end()
    return f"postgresql://?{'&'.join(parameters)}"
