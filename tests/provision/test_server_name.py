"""`--server-name`: the name that is verified, sent to the server, and asked for, where the URL names another address."""

from __future__ import annotations

from pathlib import Path

import pytest

import odd_sites
import warm
from ciphercost.provision.prepared_cell import renamed
from middle.chains import Chains


@pytest.mark.parametrize(
    ("authority", "expected"),
    [
        ("10.0.0.5", "shop.example"),
        ("10.0.0.5:8443", "shop.example:8443"),
        ("[::1]", "shop.example"),
        ("[::1]:8443", "shop.example:8443"),
        ("localhost", "shop.example"),
    ],
)
def test_a_site_keeps_its_port(authority: str, expected: str) -> None:
    assert renamed(authority, "shop.example") == expected


def test_a_site_at_another_address_is_verified_by_its_name(tmp_path: Path) -> None:
    shown = Chains(tmp_path / "chains").present("another name")
    named = "elsewhere.example"
    with odd_sites.pair(lambda _: odd_sites.html(odd_sites.WORDS), (shown.chain, shown.key)) as site:
        argv = ["prove", site.encrypted_url, "--ca", str(shown.ca)]
        without = warm.run(argv, cwd=tmp_path)
        assert site.encrypted.seen == [], "nothing is asked of a site of another name"
        with_it = warm.run([*argv, "--server-name", named], cwd=tmp_path)
        asked_for = {request.headers["host"] for request in site.encrypted.seen}
        assert asked_for == {f"{named}:{site.encrypted.port}"}
    assert (without.returncode, "name mismatch" in without.stdout) == (1, True), without.stdout
    assert (with_it.returncode, "ENCRYPTED, proven by" in with_it.stdout) == (0, True), with_it.stdout
