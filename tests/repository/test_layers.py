"""The code base's structure: no import circles, registries that load their own package only, files of a readable size.

`lint-imports` holds the order of the packages; this file holds what it can't see.
"""

from __future__ import annotations

import ast
import graphlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import ciphercost
from ciphercost.model.registry import Registry

ROOT = Path(ciphercost.__file__).parent
MOST_LINES = 450
LONGER: dict[str, str] = {
    "engines/firebird.py": "one server; its start, its accounts and its wire still stand in one class",
    "engines/postgresql.py": "one server; its start, its accounts and its settings still stand in one class",
}
"""Files longer than MOST_LINES, each with the reason why it is one file."""


def drawn(text: str) -> list[str]:
    """Packages of CONTRIBUTING.md's picture of the layers, from the top."""
    picture = text.partition("## Structure")[2].partition("### The path of one slice")[0]
    return re.findall(r"^    (?:\w+/ \| )?(\w+)(?:/|\.py) .*$", picture, re.MULTILINE)


def test_contributors_see_every_layer_in_its_place() -> None:
    root = ROOT.parents[1]
    (contract, *_) = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer.rpartition(" ")[2] for layer in contract["layers"]]
    assert drawn((root / "CONTRIBUTING.md").read_text()) == layers


@cache
def parsed(text: str) -> ast.Module:
    """Its syntax tree, made once for all tests that read this text."""
    return ast.parse(text)


@cache
def sources() -> Mapping[str, str]:
    """Source text of each module by its name."""
    texts = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return texts


def imported(text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Those of `modules` that a source text imports anywhere: at the top, in functions, or only for types."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            # `from ciphercost.model.spec import Arm` names an object in `spec`, not a module.
            known = name
            while known and known not in modules:
                known = known.rpartition(".")[0]
            if known:
                yield known


def circle(modules: Mapping[str, str]) -> list[str]:
    """One circle of imports, or an empty list."""
    graph = {name: set(imported(text, modules)) - {name} for name, text in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_there_are_no_circular_imports() -> None:
    assert circle(sources()) == []


@pytest.mark.parametrize(
    "back",
    [
        "from p import a",
        "import p.a",
        "from p.a import NAME",
        "def late():\n    from p.a import NAME",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import NAME",
    ],
)
def test_a_circle_is_found_wherever_its_import_is(back: str) -> None:
    modules = {"p": "", "p.a": "from p.b import NAME", "p.b": "from p import c", "p.c": back}
    assert set(circle(modules)) == {"p.a", "p.b", "p.c"}
    assert circle(modules | {"p.c": ""}) == []


def dynamic_imports(text: str) -> Iterator[ast.Attribute | ast.Name | ast.ImportFrom]:
    """Every use of `importlib.import_module`, under any name, and of `__import__`."""
    for node in ast.walk(parsed(text)):
        match node:
            case ast.Attribute(attr="import_module") | ast.Name(id="__import__"):
                yield node
            case ast.ImportFrom(module="importlib", names=names) if any(
                alias.name == "import_module" for alias in names
            ):
                yield node


def _last_name(node: ast.expr) -> str:
    """The name that a call names last; empty where what it calls is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def loads_others(text: str) -> list[int]:
    """Lines at which a source text may load a module by name, other than by a registry of its own package."""
    tree = parsed(text)
    registries = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) == "Registry"]
    others = [node for node in registries if not node.args or ast.unparse(node.args[0]) != "__name__"]
    return sorted(node.lineno for node in [*dynamic_imports(text), *others])


def test_a_registry_loads_its_own_package_only() -> None:
    modules = dict(sources())
    assert list(dynamic_imports(modules.pop(Registry.__module__))), "the one module that loads files by name"
    assert {name: lines for name, text in modules.items() if (lines := loads_others(text))} == {}
    packages = {path.parent.relative_to(ROOT.parent) for path in ROOT.rglob("__init__.py")}
    registries = [name for name, text in modules.items() if "Registry(" in text]
    assert {"ciphercost.engines", "ciphercost.mechanisms", "ciphercost.report.formats"} <= set(registries)
    assert {Path(*name.split(".")) for name in registries} <= packages, "only a package's own file is a registry"


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("REGISTRY = Registry(__name__)", True),
        ('registry.Registry(__name__, "unknown engine")', True),
        ('Registry("ciphercost.engines")', False),
        ('Registry(package="ciphercost.engines")', False),
        ('importlib.import_module(f"{__name__}.{name}").ENGINE', False),
        ("importlib.import_module(name)", False),
        ("from importlib import import_module, metadata", False),
        ("__import__(name)", False),
    ],
)
def test_loading_under_another_name_is_found(line: str, allowed: bool) -> None:
    assert (loads_others(line) == []) is allowed


def test_no_file_is_too_long() -> None:
    lines = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in ROOT.rglob("*.py")}
    long = {name for name, count in lines.items() if count > MOST_LINES}
    assert long - LONGER.keys() == set(), "split it, or say in LONGER why it is one file"
    assert LONGER.keys() - long == set(), "it is short enough: remove it from LONGER"
