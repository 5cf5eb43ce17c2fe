"""ciphercost without its agent (`pip install .` alone): commands that generate load print the command that installs it."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from ciphercost import commands
from ciphercost.load import agent
from ciphercost.model.errors import MissingServer
from ciphercost.runs import doctor

ROOT = Path(__file__).parents[2]


class Installed:
    """Fake a distribution that pip installed from that directory."""

    def __init__(self, url: str, *requires: str) -> None:
        self._url = url
        self.requires = ["click>=8.1", *requires]

    def read_text(self, name: str) -> str | None:
        return json.dumps({"url": self._url, "dir_info": {}}) if name == "direct_url.json" and self._url else None


@pytest.fixture
def no_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIPHERCOST_AGENT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.chdir(tmp_path)


def installed_from(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(url))


@pytest.mark.usefixtures("no_agent")
def test_the_message_names_the_clone_that_it_was_installed_from(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_from(monkeypatch, ROOT.as_uri())
    with pytest.raises(MissingServer, match="is not installed") as caught:
        agent.find()
    assert f"{sys.executable} -m pip install {ROOT}/agents/rust" in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.usefixtures("no_agent")
@pytest.mark.parametrize("url", ["", "file:///nowhere/at/all", "https://git.example/ciphercost.git"])
def test_without_a_clone_it_says_to_get_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    installed_from(monkeypatch, url)
    with pytest.raises(MissingServer, match="in a clone of ciphercost's sources") as caught:
        agent.find()
    assert "pip install ./agents/rust" in str(caught.value)


@pytest.mark.usefixtures("no_agent")
def test_a_released_wheel_names_the_agents_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed("", "ciphercost-agent==1.2.3"))
    with pytest.raises(MissingServer, match="Install it: ") as caught:
        agent.find()
    assert f"{sys.executable} -m pip install ciphercost-agent==1.2.3" in str(caught.value)
    assert "clone" not in str(caught.value)


@pytest.mark.usefixtures("no_agent")
@pytest.mark.parametrize("command", [["run", "sqlite:sqlcipher"], ["calibrate", "null"]])
def test_what_makes_load_ends_with_status_2_and_leaves_nothing(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ciphercost", *command, "--no-progress"])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 2
    assert "pip install" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_agent")
def test_the_doctor_says_so_too() -> None:
    assert any("pip install" in text for _, state, text in doctor._agent() if state == "missing")


def test_pip_install_of_a_clone_asks_no_index_for_the_agent() -> None:
    """No index has the agent: as a dependency it would make `pip install .` fail before ciphercost can print anything."""
    requires = (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("]")[0]
    assert "ciphercost-agent" not in requires
