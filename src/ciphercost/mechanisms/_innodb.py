"""What the encryption of MySQL and of MariaDB share: how an existing table is encrypted. Not a mechanism."""

from __future__ import annotations

from collections.abc import Sequence

from ciphercost.mechanisms._rest import ArmAtRest, Conversion

COPY = "ciphercost_copy"


def innodb_conversion(look: ArmAtRest, table: str, *, make: Sequence[str], encrypt: str, encrypted: str) -> Conversion:
    """The copy of a table that is then encrypted; in the plain arm the same server rewrites it by the same algorithm.

    `make`: creates the copy, empty and unencrypted.
    """
    rewrite = f"ALTER TABLE {COPY} FORCE, ALGORITHM = COPY"
    return Conversion(
        make=(f"DROP TABLE IF EXISTS {COPY}", *make, f"INSERT INTO {COPY} SELECT * FROM {table}"),
        convert=(encrypt if look.arm == "encrypted" else rewrite,),
        drop=(f"DROP TABLE IF EXISTS {COPY}",),
        converted=look.volume.path / "data" / (look.connect.database or "") / f"{COPY}.ibd",
        encrypted=encrypted if look.arm == "encrypted" else "",
    )
