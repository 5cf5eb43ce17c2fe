"""rust_structs: the fields of the agent's messages, read from its sources.

The rule: in `agents/rust/src/message/` a message is a `pub struct`, or a variant of `enum Answer`, whose every line is a field, a
comment, an attribute or blank. Any other line is an error, so that nothing can be overlooked. `#[serde(skip)]`: not on the wire;
`#[serde(rename = …)]`: its name there;
`#[serde(default…)]` or `Option`: may be left out.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

SOURCES = Path(__file__).parents[2] / "agents" / "rust" / "src"
WORDS = (SOURCES / "query_mode.rs", SOURCES / "draw_mode.rs")
"""Where enums are whose words travel in a message, besides the messages' own."""
MESSAGES = "\n".join(path.read_text() for path in [*sorted((SOURCES / "message").glob("*.rs")), *WORDS])
WIRE = {
    "String": "str", "&'static str": "str", "Secret": "str", "bool": "bool", "f64": "float",
    **dict.fromkeys(("u8", "u16", "u64", "i64", "usize"), "int"),
}  # fmt: skip
"""JSON's types of Rust's."""


class Field(msgspec.Struct, frozen=True):
    kind: str
    """`str`, `int`, `float`, `bool`, or the words that it may be, joined by `|`."""
    optional: bool


def struct(name: str) -> dict[str, Field]:
    """The fields of a struct."""
    return _fields(_block(rf"^pub struct {name} \{{(.*?)\}}"))


def answer(variant: str) -> dict[str, Field]:
    """The fields of a variant of `Answer`."""
    body = _block(r"^pub enum Answer \{\n(.*?)\n\}")
    found = re.search(
        rf"^    {variant}(?: \{{\n(.*?)\n    \}}|\(Box<(\w+)>\)| \{{\}}),$", body, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"no variant {variant} of Answer"
    return struct(found[2]) if found[2] else _fields(found[1] or "")


def variants(enum: str) -> dict[str, list[str]]:
    """The structs that each variant of an enum holds."""
    body = _block(rf"^pub enum {enum} \{{\n(.*?)\n\}}")
    found = {}
    for line in filter(None, map(str.strip, body.splitlines())):
        match = re.fullmatch(r"(\w+)\((.*)\),", line)
        assert match is not None, f"{enum}: what is {line!r}?"
        found[match[1]] = re.findall(r"\w+", match[2].replace("Box<", ""))
    return found


def words(enum: str) -> str:
    """The words of an enum on the wire."""
    attributes, body = (
        _block(rf"^((?:#\[[^\n]*\]\n)+)pub enum {enum} \{{\n(.*?)\n\}}", 1),
        _block(rf"^pub enum {enum} \{{\n(.*?)\n\}}"),
    )
    kebab, renamed, found = 'rename_all = "kebab-case"' in attributes, "", []
    for line in filter(None, map(str.strip, body.splitlines())):
        if line.startswith(("///", "#[default]")):
            continue
        if match := re.fullmatch(r'#\[serde\(rename = "(.*)"\)\]', line):
            renamed = match[1]
            continue
        match = re.fullmatch(r"(\w+),", line)
        assert match is not None, f"{enum}: what is {line!r}?"
        found.append(renamed or (re.sub(r"(?<=.)([A-Z])", r"-\1", match[1]).lower() if kebab else match[1]))
        renamed = ""
    return "|".join(sorted(found))


def _block(pattern: str, group: int = 1) -> str:
    found = re.search(pattern, MESSAGES, re.MULTILINE | re.DOTALL)
    assert found is not None, f"the agent's sources have no {pattern}"
    return found[group]


def _fields(body: str) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    skip = default = False
    renamed = ""
    for line in filter(None, map(str.strip, body.splitlines())):
        if line.startswith("///"):
            continue
        if match := re.fullmatch(r'#\[serde\(rename = "(\w+)"\)\]', line):
            renamed = match[1]
            continue
        if line.startswith("#["):
            skip |= line == "#[serde(skip)]"
            default |= line.startswith("#[serde(default")
            assert skip or default or line == "#[expect(dead_code)]", f"what is {line!r}?"
            continue
        found = re.fullmatch(r"(?:pub )?(\w+): (.*),", line)
        assert found is not None, f"what is {line!r}?"
        name, kind = found[1], found[2]
        inner = re.fullmatch(r"Option<(.*)>", kind)
        kind = inner[1] if inner else kind
        if not skip:
            fields[renamed or name] = Field(WIRE.get(kind) or words(kind), bool(inner) or default)
        skip = default = False
        renamed = ""
    return fields
