"""If the encrypted connection to your server fails, for any reason, no login is sent unencrypted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ciphercost.load import trust
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import CellSpec
from ciphercost.plan.resolve import resolve
from ciphercost.provision.servers import Servers
from hostile import CERTIFICATES, SPOILT, Hostile
from impostors import PASSWORD
from terminals import on_a_terminal
from test_passwords import CLI, environment
from test_real import ciphercost

SECRETS = {"PGPASSWORD": PASSWORD, "MYSQL_PWD": PASSWORD}
QUICK = ("--quick", "--time", "4s", "--no-progress", "-o", "out")
NOTHING = "ciphercost sent nothing unencrypted to the server"


def url(engine: str, hostile: Hostile) -> str:
    return f"{engine}://me@localhost:{hostile.port}/shop"


def said(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_prove_sends_no_unencrypted_login(tmp_path: Path, engine: str, how: str) -> None:
    with Hostile(engine, how, tmp_path / "pki") as hostile:
        argv = ("prove", url(engine, hostile), "--ca", str(hostile.ca), "--set", "verify=full")
        done = ciphercost(*argv, cwd=tmp_path, **SECRETS)
    assert (hostile.asked > 0, hostile.in_clear) == (True, []), said(done)
    assert done.returncode == 1
    why = "certificate was rejected" if how in CERTIFICATES else "connection could not be encrypted"
    assert f"{why}, so {NOTHING}" in said(done)


@pytest.mark.parametrize("how", SPOILT)
def test_no_cell_of_a_run_sends_an_unencrypted_login_in_any_order(tmp_path: Path, how: str) -> None:
    with Hostile("postgresql", how, tmp_path / "pki") as hostile:
        cells = ("postgresql:none", "postgresql:tls")
        argv = ("run", *cells, "--url", url("postgresql", hostile), "--ca", str(hostile.ca), *QUICK)
        done = ciphercost(*argv, cwd=tmp_path, **SECRETS)
    assert (hostile.asked > 0, hostile.in_clear) == (True, []), said(done)
    assert done.returncode == 1
    assert NOTHING in said(done)


@pytest.mark.parametrize("how", ["another name", "expired", "strip", "reset"])
@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
@pytest.mark.parametrize("command", ["prove", "run"])
def test_a_jdbc_driver_sends_no_unencrypted_login(tmp_path: Path, engine: str, how: str, command: str) -> None:
    with Hostile(engine, how, tmp_path / "pki") as hostile:
        flags = ("--client", "jdbc", "--ca", str(hostile.ca), "--set", "verify=full")
        argv = {
            "prove": ("prove", url(engine, hostile), *flags),
            "run": ("run", f"{engine}:tls", "--url", url(engine, hostile), *flags, *QUICK),
        }[command]
        done = ciphercost(*argv, cwd=tmp_path, **SECRETS)
    assert (hostile.asked > 0, hostile.in_clear) == (True, []), said(done)
    assert done.returncode == 1
    assert NOTHING in said(done)


@pytest.mark.parametrize("how", ["another authority", "strip", "close"])
@pytest.mark.parametrize("cells", ["tls none", "none tls"])
def test_a_failed_encryption_never_leads_to_a_password_prompt(tmp_path: Path, how: str, cells: str) -> None:
    names = [f"postgresql:{each}" for each in cells.split()]
    with Hostile("postgresql", how, tmp_path / "pki") as hostile:
        argv = [CLI, "run", *names, "--url", url("postgresql", hostile), "--ca", str(hostile.ca), *QUICK]
        os.chdir(tmp_path)
        status, shown = on_a_terminal(argv, environment(tmp_path), asked="Password of", typed=f"{PASSWORD}\n")
    assert (status, hostile.in_clear) == (1, []), shown
    assert "Password of" not in shown


def test_a_weaker_request_is_not_sent_to_a_server_that_failed_a_stronger_one() -> None:
    known, place = trust.Refused(), ("host", 5432)
    known.note(place, {"tls": "verify-ca"}, AgentError("no", "tls"))
    assert known.reason(place, {"tls": "off"})
    assert known.reason(place, {"tls": "require"})
    assert not known.reason(place, {"tls": "verify-ca"})  # another cipher may work
    assert not known.reason(place, {"tls": "verify-full"})
    assert not known.reason(("host", 5433), {"tls": "off"})
    known.note(place, {"tls": "require"}, AgentError("no", "tls"))
    assert known.reason(place, {"tls": "require"})


def test_every_cell_of_a_run_is_known_before_the_first_connects() -> None:
    """Including cells that were already done before a resume."""
    cells = [resolve(CellSpec(engine="postgresql", mechanism=name, url="postgresql://h/d")) for name in ("none", "tls")]
    assert Servers(cells).cells == cells
