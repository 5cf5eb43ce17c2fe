"""The documents inside of a wheel: `NAME-VERSION.dist-info/sboms/` (PEP 770)."""

from __future__ import annotations

import json
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

from .document import invalid

COMPILED_IN = {"openssl", "sqlcipher", "sqlite"}
"""C libraries that both wheels' documents must name: the agent holds them."""


def wrong(wheel: Path) -> str | None:
    """What is wrong with the document of a wheel of ours, or None."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        folder = metadata.removesuffix("METADATA") + "sboms/"
        inside = {name: archive.read(name).decode() for name in names if name.startswith(folder)}
        stated = Parser().parsestr(archive.read(metadata).decode())
    if len(inside) != 1:
        return f"{len(inside)} files in {folder}; expected one"
    ((name, text),) = inside.items()
    found = invalid(text) or _mismatch(json.loads(text), stated["Name"], stated["Version"])
    return found and f"{name}: {found}"


def _mismatch(document: dict[str, Any], name: str, version: str) -> str | None:
    about = document["metadata"]["component"]
    if (about["name"], about["version"]) != (name, version):
        return f"describes {about['name']} {about['version']}, not {name} {version}"
    missing = COMPILED_IN - {each["name"] for each in document.get("components", []) if each["scope"] == "required"}
    return f"names no {', '.join(sorted(missing))}" if missing else None
