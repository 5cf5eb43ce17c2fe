"""readable_files: the umask while a run goes on, and afterwards."""

from __future__ import annotations

import os
import threading

import pytest

from ciphercost.host.readable_files import own_umask, readable_files
from conftest import Require


def umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


@pytest.mark.usefixtures("private_umask")
def test_root_widens_it_for_servers_and_gets_its_own_back(require: Require) -> None:
    require(os.geteuid() == 0, "needs root: another user's servers run as that user")
    with readable_files():
        assert umask() == 0o022
        with readable_files():
            assert umask() == 0o022
        assert umask() == 0o022, "the outer one still needs it"
        assert own_umask() == 0o077
    assert (umask(), own_umask()) == (0o077, -1)


@pytest.mark.usefixtures("private_umask")
def test_threads_that_overlap_do_not_close_it_for_each_other(require: Require) -> None:
    require(os.geteuid() == 0, "needs root: another user's servers run as that user")
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with readable_files():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with readable_files():
        thread.start()
        inside.wait()
    assert umask() == 0o022
    leave.set()
    thread.join()
    assert umask() == 0o077


@pytest.mark.usefixtures("private_umask")
def test_another_user_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with readable_files():
        assert umask() == 0o077
