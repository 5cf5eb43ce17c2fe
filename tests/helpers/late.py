"""A grammar that is compiled when it is first asked for, not when it is imported.

jsonschema imports `rfc3987_syntax`, for formats that few schemas name. That compiles its grammar for a second and a half of CPU, in every
process that runs tests.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

NAME = "rfc3987_syntax"


def _is_valid_syntax(rule: str, text: str) -> bool:
    if isinstance(sys.modules.get(NAME), _Late):
        del sys.modules[NAME]
    return bool(importlib.import_module(NAME).is_valid_syntax(rule, text))


class _Late(ModuleType):
    is_valid_syntax = staticmethod(_is_valid_syntax)


def use() -> None:
    """In this process and its forks, if nothing has imported it yet."""
    sys.modules.setdefault(NAME, _Late(NAME))
