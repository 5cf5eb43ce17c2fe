"""mounts: the kernel's table of mounts is read with whatever characters names have."""

from __future__ import annotations

import pytest

from ciphercost.host import mounts
from ciphercost.host.mounts import Mount


@pytest.mark.parametrize(
    "name", ["plain", "a\x85b", "a\u2028b", "a\xa0b"], ids=["plain", "next-line", "separator", "no-break"]
)
def test_a_name_is_one_word_whatever_it_contains(name: str) -> None:
    line = f"36 35 98:0 / /mnt/{name} rw,noatime shared:1 - ext4 /dev/{name} rw,errors=continue\n"
    assert (
        mounts.mounts(line * 2)
        == [Mount("98:0", "/", f"/mnt/{name}", "ext4", f"/dev/{name}", "rw,errors=continue")] * 2
    )
