"""--profile of a command's load: the tool's CPU time is the client's, that of whoever listens on the port the server's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import steady
from ciphercost.host import perf
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.result import Result
from ciphercost.model.secret import reveal
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule
from ciphercost.runs import pipeline
from conftest import Require, RequireServer
from test_real_command import pgbench
from userservers import UserServer, user_server


@pytest.fixture(scope="module")
def server(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserServer]:
    require_server("postgresql")
    with user_server("postgresql", tmp_path_factory.mktemp("postgresql")) as found:
        found.pgbench("-i", "-q")
        yield found


def parts(result: Result) -> set[tuple[str, str]]:
    """(end, part) of the profile."""
    (cell,) = result.cells
    return {(end.end, part.name) for end in cell.profile.ends for part in end.parts} if cell.profile else set()


def test_both_ends_of_a_commands_load_are_profiled(
    server: UserServer, tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(not perf.obstacle(), perf.obstacle())
    monkeypatch.setattr(schedule, "PROFILE_BLOCKS_QUICK", 2)
    monkeypatch.setenv("PGPASSWORD", reveal(server.fields.password))
    plain, encrypted = (pgbench(server, mode, "-t", "2000") for mode in ("disable", "verify-full"))
    cell = CellSpec(
        "command",
        "tls",
        url=f"127.0.0.1:{server.fields.port}",
        ca=str(server.ca),
        command=CommandLoad(plain=plain, encrypted=encrypted),
    )
    spec = Spec([cell], mode="quick", sessions=1, time=1.0, slice_seconds=1.0, profile=True)
    both = {("client", "cipher"), ("server", "cipher")}
    # On a busy machine a profile may have no sample of the little that the cipher takes.
    result, _ = steady.tried(partial(pipeline.run, spec), tmp_path, lambda result: both <= parts(result))
    (measured,) = result.cells
    assert measured.status == "ok", measured.reason
    assert "no-profile" not in {warning.code for warning in measured.warnings}
    assert measured.profile is not None
    assert {end.end for end in measured.profile.ends} == {"client", "server"}
    assert both <= parts(result)
