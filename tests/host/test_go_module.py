"""A Go module is built once, by a `go` that is new enough, and built again if its source changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost.host import programs
from ciphercost.host.go_module import built, need_go
from ciphercost.host.package_cache import offline
from ciphercost.model.errors import MissingServer
from ciphercost.model.version import VERSION
from conftest import Require

MAIN = (
    'package main\n\nimport "fmt"\n\nvar version = "unpackaged"\n\nfunc main() {{ fmt.Println("{word}", version) }}\n'
)


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    place = tmp_path / "cache"
    place.mkdir()
    monkeypatch.setenv("CIPHERCOST_CACHE", str(place))
    return place


def module(directory: Path, word: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "go.mod").write_text("module example\n\ngo 1.21\n")
    (directory / "main.go").write_text(MAIN.format(word=word))
    (directory / "README.md").write_text(word)  # no source
    return directory


def fake_go(directory: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A `go` that prints its version, and does this."""
    directory.mkdir()
    program = directory / "go"
    program.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")


def test_a_module_is_built_once_and_again_if_its_source_changes(
    tmp_path: Path, cached: Path, require: Require, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        need_go()
    except MissingServer as error:
        require(None, str(error))
    place = module(tmp_path / "module", "one")
    with offline(), pytest.raises(MissingServer, match="was not fetched yet"):
        built(place, "example")
    program = built(place, "example")
    assert programs.printed([program], 20) == f"one {VERSION}\n"
    with offline():
        assert built(place, "example") == program
    assert capfd.readouterr().err.count("building example with go") == 1
    (place / "README.md").write_text("another")
    assert built(place, "example") == program
    other = built(module(place, "two"), "example")
    assert other != program
    assert programs.printed([other], 20) == f"two {VERSION}\n"
    assert {path.name for path in program.parent.iterdir()} == {"example", "installation.json"}
    assert not list(cached.glob("tools/.new-*"))


def test_a_missing_go_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingServer, match=r"'go' was not found; .* apt-get install golang-go"):
        need_go()


def test_an_old_go_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_go(tmp_path / "bin", monkeypatch, "echo go version go1.19.8 linux/amd64")
    with pytest.raises(MissingServer, match=r"needs Go 1.21 or newer .*bin/go is go1.19"):
        need_go()


def test_what_go_says_is_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cached: Path) -> None:
    fake_go(
        tmp_path / "bin", monkeypatch, "[ $1 = version ] && echo go version go1.24.2 linux/amd64 && exit",
        "echo 'go: go.mod requires go >= 1.25.0 (running go 1.24.2; GOTOOLCHAIN=local)' >&2; exit 1",
    )  # fmt: skip
    with pytest.raises(
        MissingServer, match=r"go could not build example: .*requires go >= 1\.25\.0 .*; GOTOOLCHAIN=auto"
    ):
        built(module(tmp_path / "module", "x"), "example")
    assert not list(cached.glob("tools/example-*"))
