"""Parses a script of HTTP requests, one per line, into variables and statements with $1, $2 …

    \\set id random(1, 1000)
    GET /item?id=:id
        Accept-Language: de         a header of the request above
    POST /item {"id": :id, "name": ":name"}
    POST /upload
        Content-Type: text/csv
        < rows.csv                  its body is this file, as it is
    THINK :pause                    the client waits that many microseconds (open loop)
    SECURE POST /checkout id=:id    also encrypted with --set share=checkout

`\\set` works as in `script`. `:NAME` is replaced by a variable or parameter everywhere, also in quotes. Other colons
stay, since URLs and JSON contain many. A line that begins with `--` is a comment. A `;` at the end of a line is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ciphercost.load import headers
from ciphercost.load.script import by_arm, declared
from ciphercost.load.script_parts import Script, Statement
from ciphercost.model import bounds
from ciphercost.model.errors import UsageError, nearest

SECURE, CLEAR, THINK = "SECURE ", "CLEAR ", "THINK "
"""Prefixes: of a request that is always encrypted in the encrypted arm, of an unencrypted one, and of a pause."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
WITHOUT_BODY = ("GET", "HEAD")
BODY_FILE = "< "
"""Begins a line that names the file of a request's body."""
_NAME = re.compile(r"(.?):([A-Za-z_]\w*)")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:(?=\s|$)")


def parse(
    text: str, parameters: Mapping[str, int | str], where: str = "script", directory: Path | None = None
) -> Script:
    """Parse a script into variables and requests. Parameters are written into the text as they are.

    `directory`: where files of bodies are looked up; None: the script can name none. Raises UsageError naming `where`, the line,
    and what to write instead.
    """
    variables, lines = declared(text, parameters, where)
    drawn = {variable.name for variable in variables}
    statements: list[Statement] = []
    for number, line in enumerate(lines, start=1):
        here = f"{where}, line {number}"
        if _HEADER.match(line.strip()):
            statements.append(_with_header(_owner(statements, here), line.strip(), drawn, parameters, here))
            continue
        if line.strip().startswith(BODY_FILE):
            statements.append(_with_body(_owner(statements, here), line.strip(), directory, here))
            continue
        request = line.strip().rstrip(";").rstrip()
        if request and not request.startswith("--"):
            _check(request, here)
            statements.append(_statement(request, drawn, parameters, here))
    if all(statement.sql.startswith(THINK) for statement in statements):
        raise UsageError(f"{where}: contains no request; write GET /path, or POST /path and a body")
    return Script(tuple(variables), tuple(statements))


def _owner(statements: list[Statement], where: str) -> Statement:
    """Take the request that a line belongs to off the end of the list. Raises UsageError."""
    if not statements or statements[-1].sql.startswith(THINK):
        raise UsageError(f"{where}: no request is above this line; write GET /path, or POST /path, first")
    return statements.pop()


def _with_header(
    of: Statement, line: str, drawn: set[str], parameters: Mapping[str, int | str], where: str
) -> Statement:
    """The request with one header more. Raises UsageError, which never repeats its value."""
    name, value = headers.split(line, where)
    if name.lower() in {header.partition(":")[0].lower() for header in of.headers.splitlines()}:
        raise UsageError(f"{where}: header {name} is given twice; join both values in one header")
    filled = _statement(value, drawn, parameters, where, of.parameters)
    lines = [*of.headers.splitlines(), f"{name}: {filled.sql}"]
    return msgspec.structs.replace(of, headers="\n".join(lines), parameters=filled.parameters)


def _with_body(of: Statement, line: str, directory: Path | None, where: str) -> Statement:
    """The request with the body that a file holds. Raises UsageError."""
    method, *rest = of.sql.removeprefix(SECURE).split(maxsplit=2)
    name = line.removeprefix(BODY_FILE).strip()
    if method in WITHOUT_BODY:
        raise UsageError(f"{where}: a {method} request has no body; remove the line, or write POST")
    if len(rest) > 1 or of.body is not None:
        raise UsageError(f"{where}: the request above has a body already; remove one of them")
    if directory is None:
        raise UsageError(f"{where}: a body can be in a file only in a script of your own (--sql)")
    try:
        body = bounds.read(directory / name, bounds.BODY, f"{where}: the body in {name}")
    except OSError as error:
        raise UsageError(f"{where}: can't read the body in {name}: {error.strerror}") from None
    try:
        return msgspec.structs.replace(of, body=body.decode())
    except UnicodeDecodeError:
        raise UsageError(f"{where}: the body in {name} is not UTF-8 text, and only text can be sent") from None


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


def _statement(
    request: str, drawn: set[str], parameters: Mapping[str, int | str], where: str, known: tuple[str, ...] = ()
) -> Statement:
    """A text with $1, $2 … for its variables. `known`: those that have a number already."""
    order = list(known)

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

    def rewritten(change: Callable[[str], str]) -> Script:
        changed = tuple(msgspec.structs.replace(one, sql=change(one.sql)) for one in script.statements)
        return msgspec.structs.replace(script, statements=changed)

    return by_arm(rewritten(plain), rewritten(encrypted)) if clear else rewritten(plain)
