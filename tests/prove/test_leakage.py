"""leakage: what stored bytes reveal, on ciphers made here: each finding where its fault is, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.decrepit.ciphers import modes as old
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.prove import leakage
from ciphercost.prove.leakage import BLOCK

KEY = bytes(range(32))
Mode = Callable[[bytes], modes.Mode]
MODES: dict[str, Mode] = {
    "ecb": lambda _: modes.ECB(),
    "cbc": modes.CBC,
    "cfb": old.CFB,
    "cfb8": old.CFB8,
    "ofb": old.OFB,
    "ctr": modes.CTR,
}
FIXED_SHOW = {
    "ecb": {"pattern-shows", "equality-shows"},
    "cbc": {"equality-shows"},
    "cfb": {"equality-shows", "key-stream-reused"},
    "cfb8": {"equality-shows"},
    "ofb": {"equality-shows", "key-stream-reused"},
    "ctr": {"equality-shows", "key-stream-reused"},
}
LONG = st.binary(min_size=40, max_size=120)


def seal(mode: str, text: bytes, iv: bytes) -> bytes:
    """Encrypt one value; padded if the mode needs whole blocks."""
    if mode in ("ecb", "cbc"):
        missing = BLOCK - len(text) % BLOCK
        text += bytes([missing]) * missing
    cipher: Any = Cipher(algorithms.AES(KEY), MODES[mode](iv))
    encryptor = cipher.encryptor()
    return bytes(encryptor.update(text) + encryptor.finalize())


def unlike(a: bytes, b: bytes) -> bool:
    """Whether the texts differ enough, and from the beginning, to show what a mode does with them."""
    return a[0] != b[0] and sum(p != q for p, q in zip(a[:BLOCK], b[:BLOCK], strict=True)) >= leakage.TOLD


def whole_texts(a: bytes, b: bytes) -> dict[int, bytes]:
    return {1: a, 2: a, 3: bytes(range(65, 81)) * 4, 4: b}


def codes(texts: dict[int, bytes], stored: dict[int, bytes]) -> set[str]:
    return {finding.code for finding in leakage.findings(texts, stored, "an IV")}


@pytest.mark.parametrize("mode", MODES)
@given(LONG.map(lambda text: b"a" + text), LONG.map(lambda text: b"b" + text))
def test_a_fixed_iv_reveals_what_its_mode_reveals(mode: str, a: bytes, b: bytes) -> None:
    texts = whole_texts(a, b)
    if not unlike(a, b) or not unlike(a, texts[3]) or not unlike(b, texts[3]):
        return
    if leakage.repeated_blocks(a) or leakage.repeated_blocks(b):
        return
    iv = bytes(range(100, 116))
    assert codes(texts, {n: seal(mode, text, iv) for n, text in texts.items()}) == FIXED_SHOW[mode]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "ecb"])
@given(LONG, LONG)
def test_an_iv_per_value_reveals_nothing(mode: str, a: bytes, b: bytes) -> None:
    texts = whole_texts(a, b)
    draw = random.Random(1)
    ivs = {n: draw.randbytes(BLOCK) for n in texts}
    assert codes(texts, {n: ivs[n] + seal(mode, text, ivs[n]) for n, text in texts.items()}) == set()


@given(LONG, LONG)
def test_one_key_stream_behind_ivs_that_were_stored_is_found_too(a: bytes, b: bytes) -> None:
    """As if an IV were stored that the cipher does not use."""
    texts = {1: b"a" + a, 2: b"b" + b}
    if not unlike(texts[1], texts[2]):
        return
    iv, draw = bytes(BLOCK), random.Random(2)
    stored = {n: draw.randbytes(BLOCK) + seal("ctr", text, iv) for n, text in texts.items()}
    assert codes(texts, stored) == {"key-stream-reused"}


@given(st.binary(min_size=BLOCK, max_size=64), LONG, LONG)
def test_equal_beginnings_that_are_stored_alike_are_no_key_stream(beginning: bytes, a: bytes, b: bytes) -> None:
    whole = beginning[: len(beginning) // BLOCK * BLOCK]
    if a[:BLOCK] == b[:BLOCK]:
        return
    texts = {1: whole + a, 2: whole + b}
    for mode in ("ecb", "cbc"):
        assert leakage.key_stream(texts, {n: seal(mode, text, bytes(BLOCK)) for n, text in texts.items()}) == 0


@given(st.integers(0, 200), st.integers(0, 2**32))
def test_random_bytes_repeat_no_block(size: int, seed: int) -> None:
    assert leakage.repeated_blocks(random.Random(seed).randbytes(size)) == 0


@given(st.integers(2, 6), st.integers(0, BLOCK - 1))
def test_equal_blocks_are_counted_at_any_alignment(times: int, start: int) -> None:
    assert leakage.repeated_blocks(bytes(range(200, 200 + start)) + bytes(range(BLOCK)) * times) == times - 1


def test_a_stream_that_ends_early_is_less_severe_than_one_that_covers_a_text() -> None:
    texts = {1: b"a" * 40, 2: b"b" * 40}
    for mode, severity, size in (("ctr", "high", 40), ("cfb", "medium", BLOCK)):
        stored = {n: seal(mode, text, bytes(BLOCK)) for n, text in texts.items()}
        (reused,) = [
            finding for finding in leakage.findings(texts, stored, "an IV") if finding.code == "key-stream-reused"
        ]
        assert (reused.severity, reused.closes) == (severity, "an IV")
        assert f"({size} bytes seen)" in reused.text


def test_plaintext_is_one_key_stream_of_zeros() -> None:
    """Without encryption, everything is visible."""
    texts = whole_texts(b"canary0123456789abcdef", b"another text of some length")
    assert codes(texts, texts) == {"pattern-shows", "equality-shows", "key-stream-reused"}
