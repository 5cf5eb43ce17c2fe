"""--versus: what the arms may differ in, what they are called, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs, versus
from ciphercost.plan.planned import PlannedCell
from ciphercost.plan.resolve import resolve


def planned(target: str, **fields: Any) -> PlannedCell:
    engine, _, mechanism = target.partition(":")
    return resolve(CellSpec(engine, mechanism, **fields))


def names(cell: PlannedCell) -> tuple[str, str]:
    pair = versus.pair_of(cell)
    assert pair is not None
    return pair.reference.name, pair.compared.name


@pytest.mark.parametrize(
    ("target", "fields", "reference", "compared"),
    [
        ("postgresql:tls", {"versus": {"version": "1.2"}}, "TLS 1.2", "TLS 1.3"),
        (
            "nginx:tls",
            {"factors": {"group": "x25519mlkem768"}, "versus": {"group": "x25519"}, "workload": "connect"},
            "group=x25519",
            "group=x25519mlkem768",
        ),
        ("mysql:tls", {"versus": {"cipher": "chacha20"}}, "cipher=chacha20", "cipher=aes256-gcm"),
        (
            "postgresql:tls",
            {"versus": {"version": "1.2", "cipher": "aes128-gcm"}},
            "TLS 1.2, cipher=aes128-gcm",
            "TLS 1.3, cipher=aes256-gcm",
        ),
        ("sqlite:sqlcipher", {"factors": {"kdf": "raw"}, "versus": {"kdf": "passphrase"}}, "kdf=passphrase", "kdf=raw"),
        (
            "mysql:aes-cbc-256",
            {"workload": "search", "versus": {"mechanism": "aes-ecb-256"}},
            "aes-ecb-256",
            "aes-cbc-256",
        ),
        ("postgresql:tls", {"versus": {"version": "1.3"}}, "TLS 1.3", "TLS 1.3, again"),
    ],
)
def test_the_arms_have_the_names_of_their_settings(
    target: str, fields: dict[str, Any], reference: str, compared: str
) -> None:
    assert names(planned(target, **fields)) == (reference, compared)


def test_what_both_mechanisms_have_is_set_for_both() -> None:
    cell = planned("mysql:aes-cbc-256", workload="search", factors={"iv": "fixed"}, versus={"mechanism": "aes-cbc-128"})
    assert (cell.of("plain").factors["iv"], cell.of("encrypted").factors["iv"]) == ("fixed", "fixed")
    other = planned(
        "mysql:aes-cbc-256", workload="search", factors={"iv": "fixed"}, versus={"mechanism": "aes-ecb-256"}
    )
    assert "iv" not in other.of("plain").factors


def test_a_cell_without_versus_is_plain_and_encrypted() -> None:
    cell = planned("postgresql:tls")
    assert versus.pair_of(cell) is None
    assert (cell.side("plain"), cell.side("encrypted")) == ("plain", "encrypted")
    other = planned("postgresql:tls", versus={"version": "1.2"})
    assert (other.side("plain"), other.side("encrypted")) == ("encrypted", "encrypted")
    assert (other.of("plain").factors["version"], other.of("encrypted").factors["version"]) == ("1.2", "1.3")


@pytest.mark.parametrize(
    ("target", "fields", "words"),
    [
        ("postgresql:none", {"versus": {"version": "1.2"}}, "encrypts nothing"),
        (
            "postgresql:tls",
            {"versus": {"size": "64KB"}, "workload": "bulk-read"},
            "--versus size=64KB: the arms can differ",
        ),
        ("postgresql:tls", {"versus": {"versoin": "1.2"}}, "version"),
        ("postgresql:tls", {"versus": {"version": "1.4"}}, "1.4"),
        ("postgresql:tls", {"versus": {"mechanism": "pgcrypto"}}, "--versus mechanism=pgcrypto"),
        (
            "mysql:aes-cbc-256",
            {"workload": "search", "versus": {"mechanism": "tls"}},
            "does not; name a mechanism that does",
        ),
        ("mysql:aes-cbc-256", {"workload": "search", "versus": {"mechanism": "aes-cbx-256"}}, "aes-cb"),
        ("haproxy:tls", {"versus": {"hop": "envoy"}, "workload": "connect"}, "remove one of them"),
        ("postgresql:tls", {"versus": {"version": "1.2"}, "cpu_crypto": "off"}, "cpu_crypto=off"),
        ("postgresql:tls", {"versus": {"version": "1.2"}, "factors": {"group": "x25519mlkem768"}}, "post-quantum"),
        (
            "mysql:aes-cbc-256",
            {"workload": "search", "versus": {"mechanism": "client-aes-gcm-256"}},
            "name it as the target",
        ),
    ],
)
def test_what_does_not_fit_is_refused(target: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        planned(target, **fields)
    assert words in str(refused.value)


def test_an_address_without_tls_is_refused_beside_two_encrypted_arms() -> None:
    cell = CellSpec(
        "url", "tls", workload="page", url="http://shop.test/ https://shop.test/", versus={"version": "1.2"}
    )
    with pytest.raises(UsageError, match="nothing goes to an address without TLS"):
        specs.plan(Spec([cell]))
    with pytest.raises(UsageError, match="--versus need one"):
        specs.plan(Spec([CellSpec("url", "tls", workload="page", url="https://shop.test/")]))
