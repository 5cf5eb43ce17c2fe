"""The header and notes of ELF files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host import elf
from conftest import Require

PROGRAM = Path(sys.executable).resolve()
CONTENT = PROGRAM.read_bytes()[:1024]


def test_a_program_of_this_machine_is_known() -> None:
    assert elf.read(PROGRAM).machine == os.uname().machine


def test_the_build_id_is_that_of_the_linker(tmp_path: Path, require: Require) -> None:
    require(shutil.which("cc"), "no C compiler")
    source, library = tmp_path / "a.c", tmp_path / "a.so"
    source.write_text("int a;")
    subprocess.run(["cc", "-shared", "-Wl,--build-id=0x0123456789abcdef", "-o", library, source], check=True)
    assert elf.read(library).build_id == "0123456789abcdef"
    subprocess.run(["cc", "-shared", "-Wl,--build-id=none", "-o", library, source], check=True)
    assert elf.read(library).build_id == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no ELF file"),
        (b"#!/bin/sh\n", "no ELF file"),
        (b"\x7fELF\x01\x01" + bytes(60), "32 bits"),
        (b"\x7fELF\x02\x02" + bytes(60), "another byte order"),
        (CONTENT[:40], "cut off"),
        (CONTENT[:80], "cut off"),
    ],
)
def test_another_file_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        elf.read(tmp_path / "file")


@given(st.integers(0, len(CONTENT) - 1), st.binary(min_size=1, max_size=16))
def test_a_damaged_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, at: int, by: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(CONTENT[:at] + by + CONTENT[at + len(by) :])
    try:
        binary = elf.read(file)
    except ValueError:
        return
    assert binary.machine
    assert bytes.fromhex(binary.build_id) is not None
