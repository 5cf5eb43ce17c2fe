"""Data directories that tests copy are those that the server's own program made."""

from __future__ import annotations

from pathlib import Path

import pytest

import initialised
from ciphercost import engines
from ciphercost.engines import StartRequest
from ciphercost.host import supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from conftest import RequireServer


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
def test_a_server_starts_from_a_copy_with_the_password_that_its_files_name(
    engine: str, require_server: RequireServer, tmp_path: Path
) -> None:
    installation, known = require_server(engine), engines.get(engine)
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        for name in ("first", "second"):
            known.initialise(installation, scratch / name, run_supervisor)
        server = known.start(StartRequest(installation, scratch / "second", run_supervisor, logs=tmp_path))
        try:
            with Agent() as agent:
                agent.connect("own", server.connection())
                assert agent.query("own", "SELECT 1") == [["1"]]
        finally:
            server.stop()


@pytest.mark.parametrize(
    "argv",
    [
        ["/usr/bin/pg_ctl", "-D", "/scratch/data"],
        ["/usr/bin/initdb", "-D", "/scratch/data", "--pwfile=/scratch/p", "--encryption-key-command=cat /scratch/key"],
    ],
)
def test_what_makes_none_or_depends_on_other_files_runs_as_it_is(argv: list[str]) -> None:
    assert initialised.wanted(argv, {}) is None


def test_options_are_part_of_what_is_wanted_and_its_places_are_not() -> None:
    def of(place: str, *more: str) -> list[str]:
        wanted = initialised.wanted(["/usr/bin/initdb", "-D", f"{place}/data", f"--pwfile={place}/p", *more], {})
        assert wanted is not None
        return wanted.options

    assert of("/one") == of("/two")
    assert of("/one") != of("/one", "--no-data-checksums")
