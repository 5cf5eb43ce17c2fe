"""The warning of a cell whose library chose another key exchange than the reference's."""

from __future__ import annotations

import pytest

import results
from ciphercost.estimate.results import with_other_group
from ciphercost.model.result import Cell


def cell(library: str, negotiated: str, group: str = "") -> Cell:
    return results.cell(factors={"library": library, "group": group}, encryption={"group": negotiated})


def test_another_key_exchange_of_another_library_is_named() -> None:
    warned = with_other_group(cell("openssl-3.5", "X25519MLKEM768"), cell("openssl-3.0", "X25519"))
    (warning,) = [warning for warning in warned.warnings if warning.code == "groups-differ"]
    assert "X25519MLKEM768 here and X25519 with" in warning.text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cell("openssl-3.5", "X25519"), cell("openssl-3.0", "X25519")),
        (cell("openssl-3.5", "P-256", "p256"), cell("openssl-3.0", "X25519", "x25519")),
        (cell("openssl-3.5", "P-256"), cell("openssl-3.5", "X25519")),
        (cell("openssl-3.5", ""), cell("openssl-3.0", "X25519")),
    ],
)
def test_nothing_is_said_where_nothing_differs_or_somebody_chose(one: Cell, other: Cell) -> None:
    assert with_other_group(one, other) == one
