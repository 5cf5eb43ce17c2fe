"""Modules of the Rust agent: no circular imports, and no file of an unreadable length."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "agents" / "rust" / "src"
PATH = re.compile(r"\b(crate|super)((?:::\w+)*)(?:::\{([^;]*)\})?")
LONG = 450
EXCUSE = "Longer than others:"


def modules(root: Path) -> dict[str, Path]:
    """File of each module by its path in the crate, without tests and `main.rs`, which nothing imports."""
    files = {}
    for file in sorted(root.rglob("*.rs")):
        parts = file.relative_to(root).with_suffix("").parts
        if "tests" not in parts and parts != ("main",):
            files["::".join(part for part in parts if part != "mod")] = file
    return files


def code_of(file: Path) -> str:
    """The code of a file without comments, and without the tests at its end."""
    code = re.split(r"^#\[cfg\(test\)\]\nmod tests \{$", file.read_text(), maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r"//.*", "", code)


def imports(module: str, code: str, known: dict[str, Path]) -> set[str]:
    """Modules with their own file that a module's code names, in `use` or in an expression."""
    imported: set[str] = set()
    for start, path, names in PATH.findall(code):
        parts = path.split("::")[1:]
        base: list[str] = [] if start == "crate" else module.split("::")[:-1]
        while parts[:1] == ["super"]:
            base, parts = base[:-1], parts[1:]
        for name in names.split(",") if names else [""]:
            whole = [*base, *parts, *name.strip().split("::")]
            of = ("::".join(whole[:length]) for length in range(len(whole), 0, -1))
            imported.update(filter(None, [next((candidate for candidate in of if candidate in known), None)]))
    return imported - {module}


def graph(root: Path) -> dict[str, set[str]]:
    known = modules(root)
    return {module: imports(module, code_of(file), known) for module, file in known.items()}


def between_top_modules(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    top: dict[str, set[str]] = {}
    for module, others in uses.items():
        name = module.split("::")[0]
        top.setdefault(name, set()).update({other.split("::")[0] for other in others} - {name})
    return top


def circle(uses: dict[str, set[str]]) -> list[str]:
    """One circle of imports, or an empty list."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_the_agent_has_no_circular_imports() -> None:
    uses = graph(SOURCES)
    assert {"arm", "drivers::http", "message"} <= uses["session"], "the check misses imports"
    assert circle(between_top_modules(uses)) == []
    assert circle(uses) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    def circle_of(one: str, other: str) -> list[str]:
        (tmp_path / "a.rs").write_text(one)
        (tmp_path / "b").mkdir(exist_ok=True)
        (tmp_path / "b" / "mod.rs").write_text("mod c;\n")
        (tmp_path / "b" / "c.rs").write_text(other)
        return circle(between_top_modules(graph(tmp_path)))

    assert circle_of("use crate::b::c::Thing;\n", "use crate::a::{self, Other};\n")
    assert circle_of("fn f() { crate::b::f() }\n", "use super::super::a;\n")
    assert circle_of("use crate::{draw, b::c};\n", "fn f() -> crate::a::Other {}\n")
    assert not circle_of(
        "use crate::b::c::Thing;\n", "//! Not crate::a.\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"
    )
    assert not circle_of("use super::b::c;\n", "use crate::d;\n")


def test_no_file_of_the_agent_is_too_long() -> None:
    texts = {str(file.relative_to(SOURCES)): file.read_text() for file in SOURCES.rglob("*.rs")}
    assert not {name for name, text in texts.items() if text.count("\n") > LONG and EXCUSE not in text[:500]}
