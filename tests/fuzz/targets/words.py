"""Short texts of the command line: targets, URLs, durations, prices, and MySQL's option files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ciphercost.engines import firebird, mysql, postgresql
from ciphercost.load import units
from ciphercost.load.connection_string import option_files, pg_service
from ciphercost.model.errors import CiphercostError
from ciphercost.plan import targets

READERS: tuple[Callable[[str], object], ...] = (
    targets.target,
    targets.target_of_url,
    postgresql.ENGINE.check_url,
    mysql.ENGINE.check_url,
    firebird.ENGINE.check_url,
    units.duration,
    units.share,
    units.budget,
    units.price,
    option_files.parse_options,
    pg_service.parse,
)


def parse(data: bytes, place: Path) -> None:
    text = data.decode(errors="replace")
    for reader in READERS:
        try:
            reader(text)
        except CiphercostError:
            continue


def seeds(place: Path) -> Iterator[bytes]:
    yield b"postgresql@18:tls"
    yield b"postgresql://me@host:5432/db?sslmode=require&sslrootcert=/ca.pem"
    yield b"http://[::1"
    yield b"90s"
    yield b"$0.04/vcpu-hour"
    yield b'[client]\nuser = \'me\'\npassword="a\\"b" # no\n!include x\n'
