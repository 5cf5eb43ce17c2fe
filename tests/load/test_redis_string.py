"""Connection strings of Valkey and Redis: every parameter is honoured, named, or refused with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ciphercost.engines import valkey
from ciphercost.load.connection_string import Place, redis
from ciphercost.model.errors import UsageError


@pytest.mark.parametrize(
    ("url", "place", "user", "level"),
    [
        ("redis://", Place("localhost", 6379), "default", "disable"),
        ("valkey://h/0", Place("h", 6379), "default", "disable"),
        ("rediss://me@[::1]:7/", Place("::1", 7), "me", ""),
        ("valkeys://m%40e@h:1?db=0", Place("h", 1), "m@e", ""),
        ("REDISS://h?username=me", Place("h", 6379), "me", ""),
        ("rediss://h?ssl_cert_reqs=none", Place("h", 6379), "default", "require"),
        ("rediss://h?ssl_cert_reqs=required", Place("h", 6379), "default", "verify-ca"),
        ("rediss://h?ssl_cert_reqs=required&ssl_check_hostname=true", Place("h", 6379), "default", "verify-full"),
        ("rediss://h?ssl_check_hostname=False", Place("h", 6379), "default", "verify-ca"),
        ("rediss://h?skip_verify=true", Place("h", 6379), "default", "require"),
        ("rediss://h?verifyPeer=FULL", Place("h", 6379), "default", "verify-full"),
    ],
)
def test_a_url_is_read_as_clients_read_it(url: str, place: Place, user: str, level: str) -> None:
    asked = redis.read(url)
    assert (asked.places, asked.user, asked.level) == ((place,), user, level)
    assert bool(asked.unsaid) == (not level)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://me:word@h", "holds a password"),
        ("redis://:word@h", "holds a password"),
        ("redis://h?password=word", "holds a password"),
        ("redis://h/3", "database 0 only"),
        ("redis://h?db=1", "database 0 only"),
        ("redis://h,i", "several servers"),
        ("redis://h:0", "port 0"),
        ("redis://h:99999", "port 99999"),
        ("redis://h:x", "port x"),
        ("redis://h?ssl_cert_reqs=none", "no effect with redis://"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs=maybe"),
        ("rediss://h?ssl_check_hostname=2", "write true or false"),
        ("rediss://h?ssl_cert_reqs=none&ssl_check_hostname=true", "contradicts"),
        ("redis://h?ssl_certfile=x", "no effect with redis://"),
        ("rediss://h?ssl_password=x", "set CIPHERCOST_KEY_PASSPHRASE"),
        ("rediss://h?ssl_min_version=3", "--set version="),
        ("rediss://h?sslmode=require", "unknown parameter 'sslmode'"),
        ("http://h", "must begin with redis://"),
        ("redis://h#x", "'#'"),
    ],
)
def test_what_can_not_be_honoured_is_refused(url: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        redis.read(url)
    assert why in str(refused.value)
    assert "word" not in str(refused.value).replace("password", "")


@given(
    name=some.sampled_from(redis.KNOWN) | some.text("abcdefghij_", min_size=1),
    value=some.text("019truefalsx", min_size=1),
)
def test_no_parameter_is_dropped_silently(name: str, value: str) -> None:
    try:
        asked = redis.read(f"rediss://h?{name}={value}")
    except UsageError:
        return
    honoured = name in (*redis.ABOUT_TLS, "db", "username")
    assert honoured or any(note.startswith(f"{name}=") for note in asked.notes)


def test_the_password_is_found_where_the_client_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDISCLI_AUTH", "VALKEYCLI_AUTH"):
        monkeypatch.delenv(name, raising=False)
    assert redis.password_found("valkey") is None
    monkeypatch.setenv("REDISCLI_AUTH", "one")
    monkeypatch.setenv("VALKEYCLI_AUTH", "two")
    passwords = redis.password_found("valkey"), redis.password_found("redis")
    assert [password.reveal() for password in passwords if password] == ["two", "one"]


def test_of_two_urls_both_have_their_parameters_read() -> None:
    asked = valkey.ENGINE.connection_string("redis://h?timeout=1 rediss://h:7?timeout=2&ssl_cert_reqs=none")
    assert asked
    assert (asked.level, len(asked.notes)) == ("require", 2)
    with pytest.raises(UsageError, match="two users"):
        valkey.ENGINE.connection_string("redis://a@h rediss://b@h")
    with pytest.raises(UsageError, match="unknown parameter"):
        valkey.ENGINE.connection_string("redis://h?x=1 rediss://h")
