"""What to do about a web address that can't be measured."""

from __future__ import annotations

import pytest

from ciphercost.engines._web import advice
from ciphercost.engines.url import ENGINE, pair
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import Arm

URLS: dict[str, str] = {"plain": "http://the.shop:8080/", "encrypted": "https://the.shop:8443/"}


@pytest.mark.parametrize(
    ("arm", "location", "words"),
    [
        ("plain", "https://the.shop:8443/", "it enforces encryption"),
        ("plain", "https://www.the.shop/en/", "it enforces encryption"),
        ("encrypted", "http://the.shop:8080/", "there is no encrypted page"),
        ("encrypted", "/en/?a=b", "--url http://the.shop:8080/en/?a=b --url https://the.shop:8443/en/?a=b"),
        ("plain", "http://www.the.shop/", "--url http://www.the.shop/ --url https://www.the.shop/"),
        ("encrypted", "/accounts/login/?next=/", "/accounts/login/?next=/, a login"),
        ("encrypted", "https://id.example/oauth/authorize?sso=1", "Name the final address"),
        ("encrypted", "/", "redirects to the same page"),
        ("encrypted", "", "name the final address in both --url"),
    ],
)
def test_a_redirect(arm: Arm, location: str, words: str) -> None:
    assert words in advice._of_redirect(location, arm, URLS)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("status-401", "needs a login: give --header 'Cookie: …'"),
        ("status-403", "--header 'User-Agent: …'"),
        ("status-404", "check the path in both addresses"),
        ("status-418", "answers 200, not 418"),
        ("status-503", "see the server's own log"),
        ("tls", ""),
    ],
)
def test_a_status(code: str, words: str) -> None:
    hint = advice.of_code(code)
    assert words in hint
    assert bool(hint) == bool(words)


def test_the_port_that_takes_tls() -> None:
    url = "https://The.Shop:8443/a?b"
    assert "ciphercost prove http://the.shop:PORT/a?b https://The.Shop:8443/a?b" in ENGINE.no_control(url, "status-400")
    assert not ENGINE.no_control(url, "status-301-https")
    assert not ENGINE.no_control("https://the.shop/", "status-400")
    assert not ENGINE.no_control("http://the.shop:8080/ https://the.shop:8443/", "closed-early")


@pytest.mark.parametrize(
    ("url", "shown", "authority", "path"),
    [
        ("HTTPS://Shop.Example/Cart?a=b", "shop.example", "shop.example", "/Cart?a=b"),
        ("https://[::1]:8443/", "::1", "[::1]:8443", "/"),
        ("https://bücher.example?q=1", "bücher.example", "xn--bcher-kva.example", "/?q=1"),
        ("https://shop.example:443", "shop.example", "shop.example", "/"),
    ],
)
def test_an_address(url: str, shown: str, authority: str, path: str) -> None:
    plain, encrypted = pair(url)
    assert (encrypted.shown, encrypted.authority, encrypted.path) == (shown, authority, path)
    assert plain.scheme == "http"
    assert ENGINE.called(url) == shown


def test_a_fragment_is_refused() -> None:
    with pytest.raises(UsageError, match="no client sends #top to a server"):
        pair("https://shop.example/#top")
