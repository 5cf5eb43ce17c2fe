"""redact: no message contains a key or a part of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ciphercost.load import redact
from ciphercost.mechanisms._column import secret

KEY = bytes(range(100, 132))
redact.hide(KEY)


@given(st.integers(0, 40), st.integers(redact.PART, 64), st.booleans())
def test_any_part_of_a_key_is_left_out(start: int, length: int, upper: bool) -> None:
    part = KEY.hex()[start : start + length]
    shown = redact.shown(f"near 'X'{part.upper() if upper else part}' at line 1")
    assert shown == (
        "near 'X'[key]' at line 1"
        if len(part) >= redact.PART
        else f"near 'X'{part.upper() if upper else part}' at line 1"
    )


def test_a_key_within_other_digits_is_left_out_with_them() -> None:
    assert redact.shown(f"abc{KEY.hex()}123") == "[key]"


@given(st.binary(min_size=8, max_size=64))
def test_other_digits_stay(other: bytes) -> None:
    key_digits, digits = KEY.hex(), other.hex()
    assume(not any(key_digits[at : at + redact.PART] in digits for at in range(len(key_digits) - redact.PART + 1)))
    text = f"x'{digits}' and KEY, 12 letters, deadbeef"
    assert redact.shown(text) == text


def test_every_key_that_is_made_for_a_run_is_hidden(tmp_path: Path) -> None:
    key = secret(tmp_path, "key", 16)
    assert (tmp_path / "column-key-16").stat().st_mode & 0o777 == 0o600
    assert key == secret(tmp_path, "key", 16) != secret(tmp_path, "iv", 16)
    assert redact.shown(f"KEY x'{key.hex()}'") == "KEY x'[key]'"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ('invalid input syntax for type integer: "it\'s me"', "invalid input syntax for type integer: …"),
        ("Duplicate entry 'it''s' for key 'people.PRIMARY'", "Duplicate entry … for key …"),
        (
            "You have an error in your SQL syntax near 'it's me' at line 1",
            "You have an error in your SQL syntax near … at line 1",
        ),
        ("Key (name)=(me) already exists.", "Key (name)=… already exists."),
        ("Failing row contains (1, me, (x)).", "Failing row contains …."),
        ("deadlock detected", "deadlock detected"),
    ],
)
def test_an_error_without_values_has_nothing_that_the_server_quotes(error: str, shown: str) -> None:
    assert redact.without_values(error) == shown
