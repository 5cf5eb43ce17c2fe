"""What the cells of an experiment are compared with has its own name everywhere, not "the reference"."""

from __future__ import annotations

import html as html_module
import re
from typing import Any

import pytest

from ciphercost.model.result import Result, Warning_
from ciphercost.report import formats
from ciphercost.report.words import cell_text
from results import cell, estimate, result

VALUES = ("aes256-gcm", "aes128-gcm", "chacha20")


def matrix() -> Result:
    """A result of `--matrix cipher=aes256-gcm,aes128-gcm,chacha20`."""
    cells = []
    for number, value in enumerate(VALUES):
        more: dict[str, Any] = {
            "against_reference": estimate(0.97),
            "client_against_reference": {"client_cpu_plain": estimate(1.5)},
        }
        traffic = {
            arm: {"bytes_sent": 90.0, "bytes_received": 90.0, "round_trips": 1.0} for arm in ("plain", "encrypted")
        }
        cells.append(
            cell(
                group="g",
                variant=f"cipher={value}",
                factors={"cipher": value},
                traffic=traffic,
                chatter={arm: {f"SELECT {number}": 1.0} for arm in traffic},
                warnings=[Warning_("errors", f"{number} operations failed")],
                **(more if number else {}),
            )
        )
    return result(*cells)


@pytest.mark.parametrize("name", ["terminal", "md", "html"])
def test_a_matrix_names_its_first_value(name: str) -> None:
    text = " ".join(html_module.unescape(re.sub(r"<[^>]*>", " ", formats.get(name)(matrix()))).split())
    assert "the reference" not in text
    name = cell_text.reference_name(matrix().cells[0])
    assert f"against {name}" in text or f"compared with {name}" in text


def test_the_terminal_names_it_in_every_line_of_an_experiment() -> None:
    text = " ".join(formats.get("terminal")(matrix()).split())
    name = cell_text.reference_name(matrix().cells[0])
    assert text.count(f"with {name} ") == 1
    assert text.count(f"against {name}: ") == 2
    assert text.count(f"{VALUES[2]} against {name}, plain: ") == 1
    assert text.count(f"than {name}: ") == 2
    assert f"! {name}: {matrix().cells[0].warnings[0].text}" in text
