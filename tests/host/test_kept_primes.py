"""RSA keys that tests make of kept primes are keys like any other, and no two are the same."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import load_pem_x509_certificate

import kept_primes
from ciphercost.host.pki import Pki

SHORT = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo


def test_every_pair_comes_once_before_any_comes_again() -> None:
    pairs = [kept_primes.pair(number, 60) for number in range(1680)]
    assert len({frozenset(pair) for pair in pairs}) == 1680
    assert all(first != second for first, second in pairs)
    assert kept_primes.pair(1680, 60) == pairs[0]


def test_its_keys_have_their_length_are_valid_and_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_primes, "PLACE", tmp_path)
    monkeypatch.setattr(kept_primes, "KEPT", 6)
    keys = [kept_primes.key(1024) for _ in range(7)]
    for key in keys:
        assert key.key_size == 1024
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        serialization.load_pem_private_key(text, None)  # which checks that it is one
    numbers = [key.public_key().public_numbers().n for key in keys]
    assert all(one != other for one, other in itertools.combinations(numbers, 2))


def test_two_authorities_share_no_key(tmp_path: Path) -> None:
    authorities = [load_pem_x509_certificate(Pki(tmp_path / name).ca.read_bytes()) for name in ("one", "two")]
    assert len({authority.public_key().public_bytes(*SHORT) for authority in authorities}) == 2
