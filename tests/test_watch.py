"""watch: while a person is asked on the terminal, nothing else is drawn there."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from ciphercost import passwords, watch
from ciphercost.agent import Agent
from ciphercost.errors import AgentError

UP = "\x1b[1A"
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
"""The cursor."""


@pytest.fixture
def screen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def bar(screen: io.StringIO) -> watch.Screen:
    return watch.Screen(Console(file=screen, force_terminal=True, width=80, height=20))


def cursor(shown: str) -> str:
    return SHOWN if shown.rindex(SHOWN) > shown.rindex(HIDDEN) else HIDDEN


def test_a_bar_that_is_paused_draws_nothing_and_then_goes_on_below(bar: watch.Screen, screen: io.StringIO) -> None:
    with bar:
        bar.start(["one"], [10.0], 12.0)
        bar.phase(0, 1, "before")
        time.sleep(0.6)
        assert "before" in screen.getvalue()
        with bar.paused():
            at = len(screen.getvalue())
            assert cursor(screen.getvalue()) == SHOWN
            bar.phase(0, 1, "asking")
            time.sleep(0.6)
            assert len(screen.getvalue()) == at
        bar.phase(0, 1, "after")
        time.sleep(0.6)
        first, _, rest = screen.getvalue()[at:].partition("after")
        assert rest
        assert UP not in first, "it went back over what was asked"
    assert cursor(screen.getvalue()) == SHOWN


def test_it_goes_on_after_a_question_that_was_broken_off(bar: watch.Screen, screen: io.StringIO) -> None:
    with bar:
        with pytest.raises(KeyboardInterrupt), bar.paused():
            raise KeyboardInterrupt
        assert cursor(screen.getvalue()) == HIDDEN
    assert cursor(screen.getvalue()) == SHOWN


def test_what_does_not_draw_has_nothing_to_pause(
    bar: watch.Screen, screen: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    for watcher in (bar, watch.Lines(), watch.Watcher()):
        with watcher.paused():
            pass
    assert not screen.getvalue()
    assert capsys.readouterr() == ("", "")


def test_a_password_is_asked_for_while_the_bar_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Wanting(Agent):
        def __init__(self) -> None:
            pass

        def connect(self, arm: str, **fields: object) -> dict[str, object]:
            seen.append("refused")
            raise AgentError("no password was given")

    class Noting(watch.Watcher):
        @contextmanager
        def paused(self) -> Iterator[None]:
            seen.append("paused")
            yield
            seen.append("goes on")

    def answer(_: str) -> str:
        seen.append("asked")
        return "secret"

    monkeypatch.setattr("getpass.getpass", answer)
    monkeypatch.setattr(passwords, "_known", {})
    fields = {"host": "127.0.0.1", "port": 1, "user": "u"}
    assert passwords.ask_where_wanted(Wanting(), [fields], "no password", Noting().paused)
    assert seen == ["refused", "paused", "asked", "goes on"]
    assert passwords.with_password(fields, "")["password"] == "secret"
