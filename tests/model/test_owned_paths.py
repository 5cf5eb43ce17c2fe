"""ciphercost uses a cache or a run's directory only if nobody else can write to it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from ciphercost.host import package_cache
from ciphercost.host.package_cache import RECEIPT, Receipt, Work
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.runs import resume
from conftest import Require

STRANGER = 54321


@pytest.fixture
def root(require: Require) -> None:
    require(os.geteuid() == 0, "giving files to another user needs root")


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server in a cache."""
    cache = tmp_path / "cache"
    place = cache / "postgresql" / "17"
    place.mkdir(parents=True)
    for folder in (cache, place.parent, place):
        folder.chmod(0o755)
    (place / RECEIPT).write_bytes(msgspec.json.encode(Receipt("postgresql", "17.5", "maven", "bin")))
    monkeypatch.setenv("CIPHERCOST_CACHE", str(cache))
    assert [package.version for package in package_cache.installed("postgresql")] == ["17.5"]
    return place


def unused(work: Work) -> Receipt:
    raise AssertionError(work)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("which", [".", "..", "../..", "../../..", RECEIPT])
@pytest.mark.parametrize("how", ["foreign", "open"])
def test_a_server_that_somebody_else_could_have_put_there_is_not_run(fetched: Path, which: str, how: str) -> None:
    place = (fetched / which).resolve()
    if how == "foreign":
        os.chown(place, STRANGER, STRANGER)
    else:
        place.chmod(0o777)
    with pytest.raises(UsageError, match="CIPHERCOST_CACHE") as caught:
        package_cache.installed("postgresql")
    assert str(place) in str(caught.value)
    with pytest.raises(UsageError, match="CIPHERCOST_CACHE"):
        package_cache.keep("postgresql", "17", unused)


def test_a_cache_behind_a_link_of_ours_is_used(fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(fetched.parents[1])
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path / "link"))
    assert [package.version for package in package_cache.installed("postgresql")] == ["17.5"]


@pytest.mark.usefixtures("root")
def test_a_user_may_use_the_cache_of_root(fetched: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    os.seteuid(STRANGER)
    try:
        assert [package.version for package in package_cache.installed("postgresql")] == ["17.5"]
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("root")
def test_a_run_is_not_written_into_a_directory_of_somebody_else(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    os.chown(given, STRANGER, STRANGER)
    with pytest.raises(UsageError, match=f"{given}: belongs to uid {STRANGER}"):
        run_directory.directory_for(run_directory.new_id(), given)
    assert [*given.iterdir()] == []
    with pytest.raises(UsageError, match=f"uid {STRANGER}"):
        resume.run_in(given)  # its plan names programs to run


def test_a_directory_open_to_others_is_made_private_before_it_is_checked(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    given.chmod(0o777)
    assert run_directory.directory_for(run_directory.new_id(), given).stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("root")
def test_an_empty_cache_of_somebody_else_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's HOME may belong to another user; ciphercost still finds servers in PATH."""
    (tmp_path / "cache").mkdir()
    os.chown(tmp_path / "cache", STRANGER, STRANGER)
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path / "cache"))
    assert package_cache.installed("postgresql") == []
