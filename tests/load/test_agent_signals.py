"""A signal that arrives while an agent starts is not lost."""

from __future__ import annotations

import signal

import pytest

from ciphercost.host.deferred_signals import signals_delayed


def test_a_signal_that_comes_meanwhile_is_handled_at_the_end() -> None:
    reached = []
    # A shell starts background jobs with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def start() -> None:
        with signals_delayed():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert reached == ["the end"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_delayed():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
