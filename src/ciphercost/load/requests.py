"""Parses a script of HTTP requests, one per line, into variables and statements with $1, $2 … Pure.

    \\set id random(1, 1000)
    GET /item?id=:id
    POST /item {"id": :id, "name": ":name"}
    THINK :pause                    the client waits that many microseconds (open loop)
    SECURE POST /checkout id=:id    also encrypted with --set share=checkout

`\\set` works as in `script`. `:NAME` is replaced by a variable or parameter everywhere, also in quotes. Other colons
stay, since URLs and JSON contain many. A line that begins with `--` is a comment. A `;` at the end of a line is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from ciphercost.load.script import Script, Statement, by_arm, declared
from ciphercost.model.errors import UsageError, nearest

SECURE, CLEAR, THINK = "SECURE ", "CLEAR ", "THINK "
"""Prefixes: of a request that is always encrypted in the encrypted arm, of an unencrypted one, and of a pause."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
WITHOUT_BODY = ("GET", "HEAD")
_NAME = re.compile(r"(.?):([A-Za-z_]\w*)")


def parse(text: str, parameters: Mapping[str, int | str], where: str = "script") -> Script:
    """Parse a script into variables and requests. Parameters are written into the text as they are.

    Raises UsageError naming `where`, the line, and what to write instead.
    """
    variables, lines = declared(text, parameters, where)
    drawn = {variable.name for variable in variables}
    statements = []
    for number, line in enumerate(lines, start=1):
        request = line.strip().rstrip(";").rstrip()
        if request and not request.startswith("--"):
            here = f"{where}, line {number}"
            _check(request, here)
            statements.append(_statement(request, drawn, parameters, here))
    if all(each.sql.startswith(THINK) for each in statements):
        raise UsageError(f"{where}: contains no request; write GET /path, or POST /path and a body")
    return Script(tuple(variables), tuple(statements))


def _check(request: str, where: str) -> None:
    """Check a request's form: method, path, body. Raises UsageError."""
    words = request.removeprefix(SECURE).split(maxsplit=2)
    if words[0] == "THINK":
        if len(words) != 2:
            raise UsageError(f"{where}: write THINK and a number of microseconds")
        return
    if words[0] not in METHODS:
        raise UsageError(f"{where}: '{words[0]}' is not a method: {nearest(words[0], METHODS)}")
    if len(words) > 1 and not words[1].startswith(("/", ":")):
        raise UsageError(f"{where}: '{words[1]}' is not a path; a path begins with /")
    if len(words) > 2 and words[0] in WITHOUT_BODY:
        raise UsageError(f"{where}: a {words[0]} request has no body ('{words[2]}'); write one request per line")


def _statement(request: str, drawn: set[str], parameters: Mapping[str, int | str], where: str) -> Statement:
    order: list[str] = []

    def replace(match: re.Match[str]) -> str:
        before, name = match[1], match[2]
        if name in drawn:
            if name not in order:
                order.append(name)
            return f"{before}${order.index(name) + 1}"
        if name in parameters:
            return f"{before}{parameters[name]}"
        if before in ("=", "/", "&", " "):
            raise UsageError(f"{where}: ':{name}' is not set; {nearest(name, [*drawn, *parameters])}")
        return match[0]

    if re.search(r"\$\d", request):
        raise UsageError(f"{where}: $1, $2 … are reserved for the agent; use \\set name … and :name")
    return Statement(_NAME.sub(replace, request), tuple(order))


def marks(text: str) -> bool:
    """Whether the script marks any request with SECURE. Pure."""
    return re.search(rf"^\s*{SECURE}", text, re.MULTILINE) is not None


def unmarked(script: Script, *, clear: bool) -> Script:
    """Return the script without its marks. `clear`: the encrypted arm sends unmarked requests unencrypted. Pure."""

    def plain(request: str) -> str:
        return request.removeprefix(SECURE)

    def encrypted(request: str) -> str:
        return plain(request) if request.startswith((SECURE, THINK)) else CLEAR + request

    def each(change: Callable[[str], str]) -> Script:
        changed = tuple(msgspec.structs.replace(one, sql=change(one.sql)) for one in script.statements)
        return msgspec.structs.replace(script, statements=changed)

    return by_arm(each(plain), each(encrypted)) if clear else each(plain)
