"""A Ray cluster on a public address is used with token authentication only."""

from __future__ import annotations

import pytest

from ciphercost.load.fleet import addresses
from ciphercost.model.errors import UsageError

PUBLIC = "ray://8.8.8.8:10001"


@pytest.mark.parametrize(
    "place", ["127.0.0.1:6379", "ray://10.0.0.3:10001", "192.168.3.4:6379", "[::1]:6379", "[fd00::1]:6379"]
)
def test_a_private_cluster_needs_no_token(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    addresses.check_guarded(place, place, "2.40.0")


@pytest.mark.parametrize("place", [PUBLIC, "8.8.8.8:6379", "[2001:4860:4860::8888]:6379"])
def test_a_public_cluster_without_a_token_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(UsageError, match=r"public address.* every node with RAY_AUTH_MODE=token"):
        addresses.check_guarded(place, place, "2.60.0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    addresses.check_guarded(place, place, "2.52.0")
    with pytest.raises(UsageError, match=r"Ray 2\.51\.1 has no token authentication"):
        addresses.check_guarded(place, place, "2.51.1")
