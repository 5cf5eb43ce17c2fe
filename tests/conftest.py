"""What tests need from the machine. If it is missing, a test is skipped with the reason; with CIPHERCOST_REQUIRE=all (CI) it fails."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.remote import Producer

import accounts
import exhaustive
import fake as fake_agent
import initialised
import kept_primes
import late
import needs
import quick_java
import repetitions
import turns
import wrecks
from ciphercost.host import packet_capture
from ciphercost.host.installation import Installation
from ciphercost.host.run_ownership import scratch_base
from ciphercost.load.jdbc import java
from ciphercost.model.errors import CiphercostError
from directories import let_through, spread

Require = Callable[[object, str], None]
RequirePossible = Callable[[Callable[[], object]], None]
RequireServer = Callable[..., Installation]

# No deadline, because a noisy machine is no failure; derandomized, so that failures are repeatable.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

# A page at the end of every run would double the time of many tests; tests of the page enable it.
os.environ.setdefault("CIPHERCOST_PAGE", "off")


GARBAGE = 50_000
"""New objects after which the garbage collector searches them. Python's 700 suit programs that must stay small."""


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected: what this makes stays to the end, and searching it takes a quarter of the time
    config.pluginmanager.register(accounts.Accounts(config))
    config.pluginmanager.register(turns.StepsBack())
    initialised.use()
    kept_primes.use()
    quick_java.use()
    late.use()
    repetitions.QUICK = "not exhaustive" in config.option.markexpr
    # A background job of a shell ignores SIGINT, and so would every command that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> turns.Turns | None:
    """Another order of files, unless another way to distribute is asked for."""
    return turns.Turns(config, log) if config.getvalue("dist") == "loadfile" else None


COLLECTED = pytest.StashKey[list[str]]()
"""Names of all tests that pytest collected, before it selected by `-m`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the tests that `exhaustive.RULES` names their marker, before pytest selects by `-m`."""
    config.stash[COLLECTED] = [exhaustive.name_of(item.nodeid) for item in items]
    for item in items:
        if exhaustive.rule_of(exhaustive.name_of(item.nodeid)) is not None:
            item.add_marker(pytest.mark.exhaustive)


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what stays to the end: thousands of tests and all modules."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print what the tests require, and prepare scratch; with pytest-xdist only in the controller. (`-q` omits report headers, so this is
    none.)
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        for line in needs.report():
            reporter.write_line(line)
        spread(scratch_base())


def _require(found: object, reason: str) -> None:
    if found:
        return
    if os.environ.get("CIPHERCOST_REQUIRE") == "all":
        pytest.fail(f"required by CIPHERCOST_REQUIRE=all: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require() -> Require:
    """`require(found, reason)`: skip the test, or fail it, unless `found` is true."""
    return _require


@pytest.fixture
def alone() -> Iterator[None]:
    """Meanwhile no other test on this machine makes a wreck or removes those that it finds."""
    with wrecks.alone():
        yield


@pytest.fixture
def private_umask() -> Iterator[None]:
    """A umask that keeps others out, as hardened systems set it."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def require_possible() -> RequirePossible:
    """`require_possible(check)`: skip the test, or fail it, if the check raises CiphercostError."""

    def use(check: Callable[[], object]) -> None:
        reason = ""
        try:
            check()
        except CiphercostError as error:
            reason = str(error)
        _require(not reason, reason)

    return use


@pytest.fixture(scope="session")
def require_capture(require: Require) -> None:
    """The right to capture packets."""
    try:
        with packet_capture.Capture(loopback=True):
            pass
    except OSError as error:
        require(None, f"packets can't be captured here ({error.strerror}): run as root, or with CAP_NET_RAW")


@pytest.fixture(scope="session")
def chromium(require: Require) -> Iterator[Any]:
    """The headless browser, for tests of pages."""
    import browser

    require(browser.CHROMIUM, "no chromium: apt-get install chromium")
    with browser.chromium() as opened:
        yield opened


def _require_server(name: str, version: str = "") -> Installation:
    wanted = f"{name}@{version}" if version else name
    assert needs.is_server(name, version), (
        f"{wanted} is not in the list of tests/needs.py, so `make test` does not fetch it"
    )
    found = needs.here(name, version)
    _require(found, f"no {wanted} here: `ciphercost install {wanted}`")
    return found[0]


@pytest.fixture(scope="session")
def require_server() -> RequireServer:
    """`require_server(name, version="")`: an installation that already exists; fetches nothing."""
    return _require_server


@pytest.fixture(scope="session")
def require_postgresql() -> Installation:
    """A PostgreSQL of any version."""
    return _require_server("postgresql")


@pytest.fixture(scope="session")
def require_java(require_possible: RequirePossible) -> None:
    """Java and the JDBC agent."""
    require_possible(java.command)


@pytest.fixture
def whole_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java with both compilers, as the product starts it, in this process."""
    monkeypatch.setattr(java, "STEADY", quick_java.WHOLE)


@pytest.fixture
def own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scratch directory of this test alone, which the user that servers run as can reach."""
    place = tmp_path / "scratch"
    place.mkdir(mode=0o711)
    let_through(tmp_path)
    monkeypatch.setenv("CIPHERCOST_SCRATCH", str(place))
    return place


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fake_agent.Fake:
    """`fake(options)`: make the pipeline use a fake agent with these options, in virtual time."""

    def use(options: str) -> None:
        fake_agent.put(monkeypatch, tmp_path, options)

    return use
