"""A JVM's perf map goes into a file that was made for it: nobody can put a link in its place."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from ciphercost.host import programs
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import java
from ciphercost.model.errors import MissingServer
from conftest import Require


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory like /tmp."""
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o1777)
    return place


def test_the_file_exists_before_anything_is_written(shared: Path) -> None:
    place = java.reserved(shared, "perf-7.map")
    assert place is not None
    assert (place.stat().st_size, place.stat().st_mode & 0o777) == (0, 0o600)
    with pytest.raises(FileExistsError):
        place.symlink_to("/etc/passwd")


def test_a_link_that_was_there_first_is_not_followed(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (shared / "perf-7.map").symlink_to(tmp_path / "precious")
    assert java.reserved(shared, "perf-7.map") is None
    (shared / "perf-8.map").symlink_to(tmp_path / "nothing")
    assert java.reserved(shared, "perf-8.map") is None
    assert not (tmp_path / "nothing").exists()


def test_a_directory_where_others_could_replace_it_is_not_used(shared: Path) -> None:
    shared.chmod(0o777)
    assert java.reserved(shared, "perf-7.map") is None
    shared.chmod(0o755)
    assert java.reserved(shared, "perf-7.map") is not None


def test_a_link_put_in_place_at_the_last_moment_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    """As an attacker does who sees the JVM start: the link comes after every check, right before jcmd."""
    try:
        command = java.command()
    except MissingServer as error:
        require(None, str(error))
        raise
    precious = tmp_path / "precious"
    precious.write_text("precious")
    printed = programs.printed
    with Agent(command) as agent:
        mapped = Path(f"/tmp/perf-{agent.pid}.map")

        def attacked(*arguments: object) -> str:
            with contextlib.suppress(FileExistsError):
                mapped.symlink_to(precious)
            return printed(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(java, "printed", attacked)
        created = java.perf_map(agent.pid)
        try:
            assert precious.read_text() == "precious"
            assert created == mapped
            assert not mapped.is_symlink()
            assert "java" in mapped.read_text().lower()
        finally:
            mapped.unlink(missing_ok=True)
