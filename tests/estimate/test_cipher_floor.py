"""What ciphers alone need for a cell's operation: by file at rest, by byte on the wire, and at the right end only."""

from __future__ import annotations

import msgspec
import pytest

from ciphercost.estimate import cipher_floor
from ciphercost.estimate.cipher_floor import RestFloor, WireFloor
from ciphercost.model.cipher_work import CipherWork, Enciphered, Stream
from ciphercost.model.result import Cell

PAGES = Stream(CipherWork("aes256-cbc", "hmac-sha512", 4016), 4096, read=4096 * 600, written=4096 * 100)
LOG = Stream(CipherWork("aes256-ctr"), 16384, written=50_000)
FLOOR = {
    "aes256-cbc+hmac-sha512/4016_open": 2.0,
    "aes256-cbc+hmac-sha512/4016_seal": 3.0,
    "aes256-ctr_open": 0.5,
    "aes256-ctr_seal": 0.4,
    "aes256-gcm_seal": 0.1,
    "aes256-gcm_open": 0.2,
}


def at_rest(streams: dict[str, Stream], operations: int = 100) -> Cell:
    return Cell(
        engine="x", version="", layer="rest", mechanism="y", workload="z", clients=1, status="ok", mode="quick",
        floor=FLOOR, enciphered=Enciphered(streams, operations),
    )  # fmt: skip


def test_at_rest_each_kind_of_file_has_its_own_cipher_and_only_the_encrypted_bytes_of_a_page_count() -> None:
    floor = cipher_floor.of(at_rest({"pages": PAGES, "log": LOG}), "server")
    assert isinstance(floor, RestFloor)
    pages, log = floor.streams
    assert (pages.opened, pages.sealed) == (6 * 4016, 4016)
    assert (log.opened, log.sealed) == (0, 500)
    assert floor.us == pytest.approx((6 * 4016 * 2 + 4016 * 3 + 500 * 0.4) / 1e3)
    assert floor.operations == 100


def test_only_the_end_that_has_the_files_has_their_floor() -> None:
    cell = at_rest({"pages": PAGES})
    assert cipher_floor.of(cell, "client") is None
    embedded = msgspec.structs.replace(cell, embedded=True)
    assert cipher_floor.of(embedded, "server") is None
    assert isinstance(cipher_floor.of(embedded, "client"), RestFloor)


def test_without_a_count_there_are_speeds_and_no_bytes() -> None:
    floor = cipher_floor.of(at_rest({"pages": PAGES}, operations=0), "server")
    assert isinstance(floor, RestFloor)
    assert (floor.operations, floor.us) == (0, 0)
    assert (floor.streams[0].open_ns, floor.streams[0].seal_ns) == (2.0, 3.0)


def test_a_floor_that_was_not_measured_is_none() -> None:
    slower = Stream(CipherWork("aes128-cbc"), 16384)
    assert cipher_floor.of(at_rest({"pages": PAGES, "other": slower}), "server") is None
    assert cipher_floor.of(msgspec.structs.replace(at_rest({}), enciphered=None), "server") is None


def test_with_tls_the_server_seals_what_the_client_opens_and_a_hop_has_no_floor() -> None:
    cell = msgspec.structs.replace(
        at_rest({}), enciphered=None, encryption={"cipher": "TLS_AES_256_GCM_SHA384"},
        arms={"encrypted": {"wire_bytes_per_op": 20_000.0}},
    )  # fmt: skip
    assert cipher_floor.of(cell, "server") == WireFloor(0.1, 20_000)
    assert cipher_floor.of(cell, "client") == WireFloor(0.2, 20_000)
    assert cipher_floor.of(cell, "hop") is None
    server = cipher_floor.of(cell, "server")
    assert server is not None
    assert server.us == pytest.approx(2)
