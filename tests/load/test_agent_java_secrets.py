"""The Java agent's error messages never contain the password, and stay readable whatever the password is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from ciphercost.load.jdbc import java
from ciphercost.model.errors import MissingServer
from conftest import Require

HARNESS = """
package ciphercost.agent;
public class Said {
    public static void main(String[] words) {
        var reason = new Reason(Sql.Dialect.MYSQL, java.util.List.of(words[0]));
        System.out.print(reason.text(new java.sql.SQLException(words[1], new IllegalStateException(words[1]))));
    }
}
"""
Shown = Callable[[str, str], str]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Shown:
    """Return the message that the agent makes of a driver's message, with this password."""
    try:
        jar, program = java.jar(), java.find()
    except MissingServer as error:
        require(None, str(error))
        raise
    place = tmp_path_factory.mktemp("java")
    (place / "Said.java").write_text(HARNESS)
    subprocess.run(["javac", "-cp", str(jar), "-d", str(place), str(place / "Said.java")], check=True)

    def say(password: str, message: str) -> str:
        command = [str(program), "-cp", f"{jar}{os.pathsep}{place}", "ciphercost.agent.Said", password, message]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return say


DENIED = "Access denied for user 'ada'@'127.0.0.1' (using password: YES)"


@pytest.mark.parametrize("password", ["a", "e", "usi"])
def test_a_short_password_leaves_a_message_readable(shown: Shown, password: str) -> None:
    assert shown(password, DENIED).startswith(DENIED)


@pytest.mark.parametrize("password", ["a", "Z9", "sesame-4711-Xy"])
@pytest.mark.parametrize(
    "message",
    [
        "can't connect with {user=me, password=%s}",
        "bad URL jdbc:mysql://me:%s@host/shop",
        "bad URL jdbc:mysql://host/shop?user=me&password=%s&useSSL=false",
        "trustCertificateKeyStorePassword = '%s' is wrong",
    ],
)
def test_a_password_that_is_named_is_hidden_whatever_its_length(shown: Shown, password: str, message: str) -> None:
    plain, _, rest = (message % "\0").partition("\0")
    told = shown(password, message % password)
    assert "[password]" in told
    for wrong in (plain + password + rest, f"={password}", f":{password}@", f"'{password}'"):
        assert wrong not in told


def test_a_password_is_hidden_wherever_it_stands_also_where_the_message_is_cut(shown: Shown) -> None:
    password = "sesame-4711-Xy"
    assert shown(password, f"syntax error near '{password}'").startswith("syntax error near '[password]'")
    for length in range(285, 300):
        assert "sesame" not in shown(password, "x" * length + password)
