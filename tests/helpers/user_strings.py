"""List every string that a user can see, with file, line and kind, for review: `make strings`.

    python tests/helpers/user_strings.py [PATH…]      only files whose path contains one of these texts

Kinds: help (commands and options), error (messages of exceptions), warning, finding, output (printed lines), title
(TOML files of workloads), agent (Rust and Java), and text: any other literal that reads like words.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ciphercost"
AGENTS = {"agents/rust/src": "*.rs", "agents/java/src/main": "*.java"}

PRINTS = {"announce", "complain", "echo", "print", "say", "write"}
"""Functions and methods that print their arguments."""
RECORDS = {"Warning_": "warning", "Finding": "finding"}
"""Records with a text for the user, and the kind of their strings."""
TOML_KEYS = ("title", "measures")
COMMANDS = ("command", "group")
WORDS = re.compile(r"[A-Za-z]{2,}[,:;.)]? +[\w({`'…“\"-]")
NOT_PROSE = re.compile(
    r"\s*(ALTER|ANALYZE|BEGIN|CALL|CHECK|CHECKPOINT|COMMIT|COPY|CREATE|DELETE|DROP|EXECUTE|FLUSH|GET|GRANT|INSERT|KEY|LOAD|"
    r"POST|PRAGMA|RECREATE|REVOKE|SELECT|SET|SHOW|START|TRUNCATE|UPDATE|USE|VACUUM|WHERE|WITH)\b"
)
LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])'|r(?P<hashes>\#*)".*?"(?P=hashes)|"(?P<text>(?:\\.|[^"\\])*)\"""",
    re.DOTALL,
)


class Found(NamedTuple):
    """One string of one file."""

    path: str
    line: int
    kind: str
    text: str


def every() -> list[Found]:
    """All strings, sorted by file and line."""
    found: list[Found] = []
    errors = _errors()
    for path in sorted(PACKAGE.rglob("*.py")):
        found += of_python(path.read_text(), str(path.relative_to(ROOT)), errors)
    for path in sorted(PACKAGE.rglob("*.toml")):
        found += of_toml(path.read_text(), str(path.relative_to(ROOT)))
    for folder, pattern in AGENTS.items():
        for path in sorted((ROOT / folder).rglob(pattern)):
            found += of_agent(path.read_text(), str(path.relative_to(ROOT)))
    return sorted(found)


def of_python(source: str, path: str, errors: frozenset[str] = frozenset()) -> list[Found]:
    """The strings of a module. `errors`: names of exception classes. Pure."""
    finder = _Finder(path, errors)
    finder.visit(_parsed(source))
    return finder.found


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def of_toml(source: str, path: str) -> Iterator[Found]:
    """The titles of a workload. Pure."""
    data = tomllib.loads(source)
    for key in TOML_KEYS:
        if isinstance(data.get(key), str):
            line = next(number for number, text in enumerate(source.splitlines(), start=1) if text.startswith(key))
            yield Found(path, line, "title", data[key])


def of_agent(source: str, path: str) -> Iterator[Found]:
    """The strings of a Rust or Java file that read like words; its tests are left out. Pure."""
    source = source.partition("#[cfg(test)]")[0]
    for match in LITERAL.finditer(source):
        text = " ".join(re.sub(r"\\\n", "", match["text"] or "").split())
        if _is_prose(text):
            yield Found(path, source.count("\n", 0, match.start()) + 1, "agent", text)


class _Finder(ast.NodeVisitor):
    """Collects the strings of one module."""

    def __init__(self, path: str, errors: frozenset[str]) -> None:
        self.found: list[Found] = []
        self._path, self._errors = path, errors
        self._kind = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        is_command = any(_name(each.func) in COMMANDS for each in node.decorator_list if isinstance(each, ast.Call))
        if is_command and (text := ast.get_docstring(node)):
            self._add(node.body[0].lineno, "help", text)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring, or the text below an attribute
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        kind = RECORDS.get(name, "")
        if name in self._errors or (name == "__init__" and isinstance(node.func, ast.Attribute)):
            kind = "error"
        elif name in PRINTS:
            kind = "output"
        self._inside(kind, [node.func, *node.args])
        for keyword in node.keywords:
            self._inside("help" if keyword.arg == "help" else kind, [keyword.value])

    def visit_Raise(self, node: ast.Raise) -> None:
        self._inside("error", list(filter(None, (node.exc, node.cause))))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._literal(node.lineno, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = (
            each.value if isinstance(each, ast.Constant) else "{" + ast.unparse(each.value) + "}"  # type: ignore[attr-defined]
            for each in node.values
        )
        self._literal(node.lineno, "".join(map(str, parts)))
        for each in node.values:  # strings inside the braces
            if isinstance(each, ast.FormattedValue):
                self.visit(each.value)

    def _inside(self, kind: str, nodes: list[ast.expr]) -> None:
        before, self._kind = self._kind, kind or self._kind
        for node in nodes:
            self.visit(node)
        self._kind = before

    def _literal(self, line: int, text: str) -> None:
        if _is_prose(text):
            self._add(line, self._kind or "text", text)

    def _add(self, line: int, kind: str, text: str) -> None:
        self.found.append(Found(self._path, line, kind, " ".join(text.split())))


def _is_prose(text: str) -> bool:
    return bool(WORDS.search(text)) and not NOT_PROSE.match(text)


def _name(node: ast.expr) -> str:
    """The last part of a dotted name; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _errors() -> frozenset[str]:
    """Names of all exception classes of the package, and of the functions that make one."""
    bases: dict[str, list[str]] = {}
    makers: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(_parsed(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [_name(each) for each in node.bases]
            elif (
                isinstance(node, ast.FunctionDef) and node.returns is not None and _name(node.returns).endswith("Error")
            ):
                makers.add(node.name)
    known = {"Exception", "KeyboardInterrupt", "ValueError", "OSError"}
    while more := {name for name, parents in bases.items() if name not in known and known.intersection(parents)}:
        known |= more
    return frozenset(known | makers)


def main(wanted: list[str]) -> None:
    """Print the strings whose path contains one of `wanted`, or all of them."""
    for path, line, kind, text in every():
        if not wanted or any(each in path for each in wanted):
            print(f"{path}:{line}: {kind}: {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
