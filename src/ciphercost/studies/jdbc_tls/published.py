"""What the post printed: times by driver and arm, and sizes of the captured packets. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ciphercost.studies import Study
from ciphercost.studies.jdbc_tls.setups import PUBLISHED, Setup

POST, DEBUG = "the post", "the post's debug output"
SOURCES = {
    POST: "time of one loop with each driver and setting; it prints no unit, and milliseconds are an inference",
    DEBUG: "one insert and its OK: the unencrypted MySQL packets, and the TLS records that hold them",
}


def times(study: Study) -> dict[Setup, float]:
    """Milliseconds of one loop each, in the order in which they ran."""
    rows = list(study.rows("time.csv"))
    milliseconds = {}
    for setup, row in zip(PUBLISHED, rows, strict=True):
        assert row["driver"] == "mysql-connector-java"
        assert row["version"] == setup.driver
        assert ("on" in row["use_ssl"]) == (setup.arm == "encrypted")
        milliseconds[setup] = float(row["milliseconds"])
    return milliseconds


class Captured(NamedTuple):
    """One packet of the post's debug output and the TLS record that holds it, in bytes."""

    sender: str
    """`client` or `server`."""
    packet: str
    mysql: int
    """The MySQL packet with its header."""
    parts: tuple[int, int, int]
    """IV, MAC, and padding with its length byte."""
    record: int
    """The TLS record without its header of five bytes."""


def packets(study: Study) -> list[Captured]:
    """The captured insert, then its OK."""
    return [
        Captured(
            row["sender"],
            row["packet"],
            int(row["mysql_bytes"]),
            (int(row["iv_bytes"]), int(row["mac_bytes"]), int(row["padding_bytes"])),
            int(row["record_bytes"]),
        )
        for row in study.rows("packets.csv")
    ]
