"""Registries find entries by file name, import the one that is asked for, and suggest a name for one that is unknown."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ciphercost import engines, hops, mechanisms
from ciphercost.model.errors import UsageError
from ciphercost.report import formats, trend_formats

LOADED = """
import sys
from ciphercost.model.spec import CellSpec
from ciphercost.plan.resolve import resolve
resolve(CellSpec(sys.argv[1], sys.argv[2], workload=sys.argv[3]))
for package in ("engines", "mechanisms", "hops"):
    split = (name.split(".") for name in sys.modules if name.startswith(f"ciphercost.{package}."))
    print(*sorted({parts[2] for parts in split if not parts[2].startswith("_") and parts[2] != "capabilities"}))
"""
"""Prints the files of three registries that resolving one cell imports."""


@pytest.mark.parametrize(
    ("target", "files"),
    [
        (("postgresql", "tls", "point-select"), ["postgresql", "tls", ""]),
        (("mariadb", "aes-ecb-128", "search"), ["mariadb", "aes", ""]),
    ],
)
def test_a_cell_imports_the_engine_and_the_mechanism_that_it_names(target: tuple[str, ...], files: list[str]) -> None:
    printed = subprocess.run([sys.executable, "-c", LOADED, *target], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == files


def test_every_entry_has_the_name_of_its_file() -> None:
    """Otherwise it could not be found by its name without importing the others."""
    assert [engines.get(name).name for name in engines.names()] == engines.names()
    assert [hops.get(name).name for name in hops.names()] == hops.names()
    assert [mechanisms.get(name).name for name in mechanisms.names()] == mechanisms.names()


def test_shared_code_and_folders_of_shared_code_are_no_entries() -> None:
    assert not {"capabilities", "_network", "-network"} & set(engines.names())
    assert "html" in formats.names()


@pytest.mark.parametrize("name", ["aes", "aes-cbc-512", "tls-1.3", "innodb_tde", "_rest", ""])
def test_what_only_resembles_a_mechanism_is_none(name: str) -> None:
    assert mechanisms.find(name) is None
    assert not mechanisms.has(engines.get("mariadb"), name)
    with pytest.raises(UsageError, match=r"^unknown mechanism '.*': (did you mean|known: )"):
        mechanisms.get(name)


def test_an_unknown_name_is_refused_in_the_words_of_its_registry() -> None:
    with pytest.raises(UsageError, match=r"^unknown engine 'postgres': did you mean 'postgresql'\?$"):
        engines.get("postgres")
    with pytest.raises(UsageError, match=r"^unknown hop 'two_envoys': did you mean 'two-envoys'\?"):
        hops.get("two_envoys")
    with pytest.raises(UsageError, match=r"^--format htm: not a format of trend; did you mean 'html'\?"):
        trend_formats.get("htm")
