"""A man in the middle between `prove` or `run` and a real server: attacks × commands × clients × servers.

Every attack is refused, with its reason, and without a number. The middle gets nothing unencrypted but a request for TLS, and
nothing encrypted either. `tests/middle` has the attacks; `make middle` prints all of them as one table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import RequireServer
from middle import behind as servers
from middle.attacks import ATTACKS, NONE, Attack
from middle.behind import CLI, Behind
from middle.case import CASES, CONTROLS, Case, attempt, between
from middle.chains import Chains
from terminals import on_a_terminal
from test_passwords import environment
from test_real import ciphercost

NAMED = {attack.name: attack for attack in ATTACKS}
DATABASES = ["postgresql", "mysql", "mariadb"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Behind]]:
    """`running(name)`: that server, started once."""
    started: dict[str, Behind] = {}
    with ExitStack() as stack:

        def start(name: str) -> Behind:
            if name not in started:
                started[name] = stack.enter_context(servers.server(name, tmp_path_factory.mktemp("logs")))
            return started[name]

        yield start


@pytest.fixture
def behind(request: pytest.FixtureRequest, require_server: RequireServer, running: Callable[[str], Behind]) -> Behind:
    """A running server, by its name."""
    require_server(request.param)
    return running(request.param)


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Chains:
    return Chains(tmp_path_factory.mktemp("chains"))


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    """A case; one over JDBC needs Java."""
    chosen: Case = request.param
    if chosen.client == "jdbc":
        request.getfixturevalue("require_java")
    return chosen


def parameters(cases: list[Case]) -> pytest.MarkDecorator:
    rows = [pytest.param(case.server, case, id=str(case)) for case in cases]
    return pytest.mark.parametrize(("behind", "case"), rows, indirect=True)


@parameters(CASES)
def test_an_attack_is_refused(behind: Behind, chains: Chains, case: Case, tmp_path: Path) -> None:
    outcome = attempt(case, behind, chains, tmp_path)
    assert not outcome.wrong, outcome.text


@parameters(CONTROLS)
def test_without_an_attack_it_works(behind: Behind, chains: Chains, case: Case, tmp_path: Path) -> None:
    outcome = attempt(case, behind, chains, tmp_path)
    assert not outcome.wrong, outcome.text


# ── whatever the order of cells ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("behind", DATABASES, indirect=True)
def test_no_later_cell_of_the_run_sends_anything_in_clear(behind: Behind, chains: Chains, tmp_path: Path) -> None:
    with between(NAMED["another authority"], behind, chains) as (middle, ca):
        argv = behind.argv("run", middle.port, ca, ("tls", "none"))
        done = ciphercost(*argv, cwd=tmp_path, **behind.environment)
    assert done.returncode == 1, done.stdout + done.stderr
    assert middle.struck
    assert not middle.in_clear
    assert not middle.learned


@pytest.mark.parametrize("behind", ["postgresql"], indirect=True)
@pytest.mark.parametrize("how", ["another authority", "stripped", "closed"])
@pytest.mark.parametrize("cells", ["tls none", "none tls"])
def test_a_failed_encryption_never_leads_to_a_password_prompt(
    behind: Behind, chains: Chains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, cells: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with between(NAMED[how], behind, chains) as (middle, ca):
        argv = [str(CLI), *behind.argv("run", middle.port, ca, cells.split())]
        status, shown = on_a_terminal(argv, environment(tmp_path), asked="Password of", typed="correct-horse\n")
    assert (status, middle.in_clear) == (1, []), shown
    assert "Password of" not in shown


@pytest.mark.parametrize("behind", DATABASES, indirect=True)
@pytest.mark.parametrize("how", ["another authority", "stripped", "closed"])
def test_of_two_encrypted_arms_neither_goes_on(behind: Behind, chains: Chains, tmp_path: Path, how: str) -> None:
    """The second arm asks for less than the first, which was refused, so it is not even tried."""
    with between(NAMED[how], behind, chains) as (middle, ca):
        argv = (*behind.argv("run", middle.port, ca, ("tls",)), "--versus", "verify=require")
        done = ciphercost(*argv, cwd=tmp_path, **behind.environment)
    assert done.returncode == 1, done.stdout + done.stderr
    assert middle.struck
    assert not middle.in_clear
    assert not middle.learned


# ── a user who checks less ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("behind", DATABASES, indirect=True)
def test_the_verdict_does_not_claim_verification_without_a_check(
    behind: Behind, chains: Chains, tmp_path: Path
) -> None:
    done, output = unchecked(NAMED["another authority"], behind, chains, tmp_path, "prove", "verify=require")
    assert done == 0, output  # the user asked for this
    assert "ENCRYPTED, proven" not in output
    assert "ENCRYPTED, but the server's identity" in output


@pytest.mark.parametrize("behind", ["postgresql"], indirect=True)
def test_a_login_that_is_bound_to_tls_finds_him_without_a_certificate(
    behind: Behind, chains: Chains, tmp_path: Path
) -> None:
    done, output = unchecked(
        NAMED["another authority"], behind, chains, tmp_path, "prove", "verify=require", bound=True
    )
    assert done == 1, output
    assert "The server has another certificate" in output
    assert "channel-binding=disable" in output


@pytest.mark.parametrize("behind", DATABASES, indirect=True)
def test_a_run_warns_of_a_server_that_was_not_verified(behind: Behind, chains: Chains, tmp_path: Path) -> None:
    done, output = unchecked(NAMED["another authority"], behind, chains, tmp_path, "run", "verify=require")
    assert done == 0, output
    cell = json.loads((tmp_path / "out" / "result.json").read_text())["cells"][0]
    assert "server-not-verified" in {warning["code"] for warning in cell["warnings"]}
    assert "a man in the middle" in output


@pytest.mark.parametrize("behind", DATABASES, indirect=True)
def test_an_unchecked_name_is_reported(behind: Behind, chains: Chains, tmp_path: Path) -> None:
    done, output = unchecked(NONE, behind, chains, tmp_path, "prove", "verify=ca")
    assert done == 0, output
    assert "the server's name was not verified" in output


def unchecked(
    attack: Attack, behind: Behind, chains: Chains, place: Path, command: str, factor: str, *, bound: bool = False
) -> tuple[int, str]:
    """Exit status and output of a command that checks less of the server's identity."""
    # PostgreSQL's login would find him by itself.
    more = () if bound or behind.name != "postgresql" else ("--set", "channel-binding=disable")
    with between(attack, behind, chains) as (middle, ca):
        argv = behind.argv(command, middle.port, ca, ("tls",))
        done = ciphercost(*argv, "--set", factor, *more, cwd=place, **behind.environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())
