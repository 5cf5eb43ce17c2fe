"""Errors of the operating system: each has its own words, and a full disk is named only where it is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from ciphercost.measure.experiment import recording_errors
from ciphercost.model import system_error
from ciphercost.model.errors import RunError
from ciphercost.provision import dataset

SOURCES = Path(system_error.__file__).parents[1]


def test_only_a_full_disk_is_called_full() -> None:
    full = {number for number in errno.errorcode if "disk is full" in system_error.words(OSError(number, "x"))}
    assert full == {errno.ENOSPC}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.ENOENT, "removed it meanwhile"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "owner and mode"),
    ],
)
def test_an_error_that_has_an_answer_gives_it(number: int, words: str) -> None:
    error = OSError(number, os.strerror(number), "/some/file")
    assert system_error.words(error).startswith(f"{os.strerror(number)}: /some/file; ")
    assert words in system_error.words(error)
    assert "/some/file" not in system_error.words(error, named=True)
    assert words in system_error.advised(f"cannot create regular file '/x': {os.strerror(number)}\n")


def test_an_error_without_an_answer_is_left_as_it_is() -> None:
    assert system_error.words(OSError(errno.EINVAL, "Invalid argument", "/x")) == "Invalid argument: /x"
    assert system_error.advised("cp: missing operand") == "cp: missing operand"
    assert system_error.advised("") == "it printed nothing"


def test_no_message_guesses_that_a_disk_is_full() -> None:
    assert not [path for path in SOURCES.rglob("*.py") if "is the disk full" in path.read_text()]


def test_a_copy_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=rf"can't copy .*{system_error.ADVICE[errno.ENOENT]}"):
        dataset.copy(tmp_path / "missing", tmp_path / "new")


def test_a_cell_says_what_the_system_said() -> None:
    facts = Mock(status=None, reason="")

    def fail() -> None:
        with recording_errors(facts, Mock()):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/x")

    fail()
    assert facts.status == "failed"
    assert facts.reason == f"Too many open files: /x; {system_error.ADVICE[errno.EMFILE]}"
