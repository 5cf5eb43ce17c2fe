"""Registries: a package in which each file adds one entry, found by the file's name and imported only when it is asked for."""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ciphercost.model.errors import UsageError, nearest


@cache
def _modules(directories: tuple[tuple[str, int], ...]) -> list[str]:
    """The sorted module names in directories, each given with the time of its last change."""
    return sorted(module.name for module in pkgutil.iter_modules([path for path, _ in directories]))


class Registry(NamedTuple):
    """The files of one package. A name has `-` where its file's name has `_`; a file whose name begins with `_` is shared code."""

    package: str
    """The package that the registry belongs to: its `__name__`."""
    unknown: str = "unknown '{}': {}"
    """The error for a name that is none, with places for the name and for what was meant. User-visible."""
    beside: tuple[str, ...] = ()
    """Packages within this one that are no entries."""

    def files(self) -> list[str]:
        """List the module names of all entries. Imports none."""
        modules = _modules(
            tuple((directory, Path(directory).stat().st_mtime_ns) for directory in sys.modules[self.package].__path__)
        )
        return [name for name in modules if not name.startswith("_") and name not in self.beside]

    def names(self) -> list[str]:
        """List the names of all entries. Imports none."""
        return sorted(name.replace("_", "-") for name in self.files())

    def get(self, name: str) -> ModuleType:
        """Import the entry with this name. Raises UsageError that suggests the nearest name."""
        if name not in (known := self.names()):
            raise UsageError(self.unknown.format(name, nearest(name, known)))
        return self.load(name)

    def load(self, name: str) -> ModuleType:
        """Import the file of an entry that exists."""
        module = f"{self.package}.{name.replace('-', '_')}"
        # importlib.import_module does the same in Python, which takes ten times as long for a module that is loaded.
        __import__(module)
        return sys.modules[module]
