"""redact: no message contains a key or a part of one."""

from __future__ import annotations

from pathlib import Path

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
