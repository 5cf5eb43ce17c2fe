"""requests: a script of HTTP requests, one a line -> variables and statements with $1, $2 … Pure.

    \\set id random(1, 1000)
    GET /item?id=:id
    POST /item {"id": :id, "name": ":name"}
    THINK :pause                    the client waits so many microseconds (open loop)
    SECURE POST /checkout id=:id    encrypted with --set share=checkout too

`\\set` is as in `script`. `:NAME` stands for a variable or a parameter wherever it stands, in quotes too; of other colons a URL and JSON
have many. A line that begins with `--` is a comment; a `;` at a line's end is taken for its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from ciphercost.load.script import Script, Statement, by_arm, declared
from ciphercost.model.errors import UsageError, nearest

SECURE, CLEAR, THINK = "SECURE ", "CLEAR ", "THINK "
"""How a request begins that is always encrypted in the encrypted arm, one that is not, and what is no request."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
WITHOUT_BODY = ("GET", "HEAD")
_NAME = re.compile(r"(.?):([A-Za-z_]\w*)")


def parse(text: str, parameters: Mapping[str, int | str], where: str = "script") -> Script:
    """Variables and requests of a script; parameters are written in as they are.

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
        raise UsageError(f"{where}: holds no request; write GET /path, or POST /path and a body")
    return Script(tuple(variables), tuple(statements))


def _check(request: str, where: str) -> None:
    """A request in its form: method, path, body. Raises UsageError."""
    words = request.removeprefix(SECURE).split(maxsplit=2)
    if words[0] == "THINK":
        if len(words) != 2:
            raise UsageError(f"{where}: write THINK and how many microseconds")
        return
    if words[0] not in METHODS:
        raise UsageError(f"{where}: '{words[0]}' is no method: {nearest(words[0], METHODS)}")
    if len(words) > 1 and not words[1].startswith(("/", ":")):
        raise UsageError(f"{where}: '{words[1]}' is no path: it begins with /")
    if len(words) > 2 and words[0] in WITHOUT_BODY:
        raise UsageError(f"{where}: a {words[0]} has no body ('{words[2]}'): one request a line")


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
            raise UsageError(f"{where}: ':{name}' is set nowhere; {nearest(name, [*drawn, *parameters])}")
        return match[0]

    if re.search(r"\$\d", request):
        raise UsageError(f"{where}: $1, $2 … are how values are sent on; write a variable's name, \\set and :name")
    return Statement(_NAME.sub(replace, request), tuple(order))


def marks(text: str) -> bool:
    """Whether any request of this script is marked as one to be encrypted. Pure."""
    return re.search(rf"^\s*{SECURE}", text, re.MULTILINE) is not None


def unmarked(script: Script, *, clear: bool) -> Script:
    """The script without its marks; `clear`: with requests that bore none in clear in the encrypted arm. Pure."""

    def plain(request: str) -> str:
        return request.removeprefix(SECURE)

    def encrypted(request: str) -> str:
        return plain(request) if request.startswith((SECURE, THINK)) else CLEAR + request

    def each(change: Callable[[str], str]) -> Script:
        changed = tuple(msgspec.structs.replace(one, sql=change(one.sql)) for one in script.statements)
        return msgspec.structs.replace(script, statements=changed)

    return by_arm(each(plain), each(encrypted)) if clear else each(plain)
