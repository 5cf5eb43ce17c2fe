"""The sentence that puts a profile's cipher beside its floor: what was counted, what was not, and what was nothing."""

from __future__ import annotations

import msgspec

from ciphercost.model.cipher_work import CipherWork, Enciphered, Stream
from ciphercost.model.profile import End, EndProfile, ProfilePart
from ciphercost.model.result import Cell
from ciphercost.report.words import floor_text

FLOOR = {
    "aes256-cbc+hmac-sha512/4016_open": 2.0,
    "aes256-cbc+hmac-sha512/4016_seal": 3.0,
    "chacha20_seal": 0.5,
    "chacha20_open": 0.6,
}
PAGES = Stream(CipherWork("aes256-cbc", "hmac-sha512", 4016), 4096, read=4096 * 3000)


def cell(stream: Stream, operations: int) -> Cell:
    return Cell(
        engine="x", version="", layer="rest", mechanism="y", workload="z", clients=1, status="ok", mode="quick",
        floor=FLOOR, enciphered=Enciphered({"pages": stream}, operations),
    )  # fmt: skip


def end(cipher_us: float, name: str = "cipher", which: End = "server") -> EndProfile:
    part = ProfilePart(name, 0.0, cipher_us, cipher_us, cipher_us - 1, cipher_us + 1)
    return EndProfile(
        end=which, added_us=cipher_us, low_us=0, high_us=0, parts=[part], processes=[], libraries=[], symbols=[],
        frames=[], samples={}, whole=1, nameless=0, lost=0, kernel=True, profiled_us={},
    )  # fmt: skip


def against_floor(of: Cell, profile: EndProfile) -> str:
    return floor_text.against_floor(of, profile, lambda value: f"{value:.1f}")


def test_counted_bytes_give_a_floor_in_microseconds_and_its_ratio() -> None:
    words = against_floor(cell(PAGES, 1000), end(36.144))
    assert words.startswith(floor_text.BEGINNING)
    assert "decrypts 12,048 bytes at 2 ns per byte" in words
    assert "(pages: AES-256-CBC with HMAC-SHA512, 4,016 bytes at a time)" in words
    assert "need 24.1 µs" in words
    assert "take 36.1 µs, 1.5 times" in words
    assert "1,000 operations" in words
    assert "encrypts" not in words
    both = msgspec.structs.replace(PAGES, written=4096 * 1000)
    words = against_floor(cell(both, 1000), end(36.144))
    assert "decrypts 12,048 bytes at 2 ns per byte" in words
    assert "encrypts 4,016 bytes at 3 ns per byte" in words


def test_pieces_of_any_length_are_named_as_such() -> None:
    log = Stream(CipherWork("chacha20"), 16384, pieces=True, written=500_000)
    words = against_floor(cell(log, 1000), end(3))
    assert "encrypts 500 bytes at 0.5 ns per byte" in words
    assert "CHACHA20, in pieces of any length" in words
    assert "16,384 bytes at a time" in words


def test_without_a_count_it_says_for_how_many_bytes_the_time_would_do() -> None:
    words = against_floor(cell(PAGES, 0), end(60))
    assert "decrypts a byte of pages in 2 ns" in words
    assert "encrypts one in 3 ns" in words
    assert "60.0 µs" in words
    assert "20,000 to 30,000 bytes per operation" in words
    assert "not counted" in words
    assert "times that" not in words


def test_if_the_cache_had_every_page_the_floor_is_0() -> None:
    nothing = msgspec.structs.replace(PAGES, read=0)
    words = against_floor(cell(nothing, 1000), end(0.5))
    assert "in 1,000 operations" in words
    assert "the floor is 0" in words
    assert "take 0.5 µs" in words
    assert "take 0.0 µs" in against_floor(cell(nothing, 1000), end(5, name="rest"))


def test_bytes_whose_cipher_no_sample_met_take_nothing() -> None:
    assert "take 0.0 µs, 0 times that" in against_floor(cell(PAGES, 1000), end(36, name="rest"))


def test_with_tls_the_bytes_are_those_on_the_wire() -> None:
    tls = msgspec.structs.replace(
        cell(PAGES, 0), enciphered=None, encryption={"cipher": "TLS_CHACHA20_POLY1305_SHA256"},
        arms={"encrypted": {"wire_bytes_per_op": 10_000.0}},
    )  # fmt: skip
    words = against_floor(tls, end(15))
    assert words.startswith(floor_text.BEGINNING)
    assert "needs 0.5 ns per byte" in words
    assert "5 µs for an operation's 10,000 bytes" in words
    assert "take 15.0 µs, 3 times that" in words


def test_where_nothing_can_be_compared_nothing_is_said() -> None:
    assert against_floor(cell(PAGES, 0), end(36, name="rest")) == ""
    assert against_floor(cell(PAGES, 1000), end(36, which="client")) == ""
    assert against_floor(msgspec.structs.replace(cell(PAGES, 1000), floor={}), end(36)) == ""
