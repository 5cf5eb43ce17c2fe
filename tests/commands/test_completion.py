"""Shells complete ciphercost's own names, quickly, and each part of the command line offers what fits there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import terminals
from ciphercost import commands, engines, mechanisms, studies
from ciphercost.commands import _names
from ciphercost.load import clients, workloads
from ciphercost.report import comparison_formats, trend_formats

BINARY = Path(sys.executable).parent / "ciphercost"
HEAVY = {"numpy", "cryptography", "jinja2", "rich", "vl_convert", "ciphercost.engines", "ciphercost.mechanisms"}
ASK = "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
ASK += "from ciphercost import commands\ncommands.main()"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIPHERCOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "completion.json"


def asked(line: str, shell: str = "fish") -> list[str]:
    """The words that a shell would offer behind this line, by the protocol that its script uses."""
    words = line.split(" ")
    environment = {"COMP_WORDS": line, "COMP_CWORD": words[-1], "_CIPHERCOST_COMPLETE": f"{shell}_complete"}
    if shell == "zsh":
        environment["COMP_CWORD"] = str(len(words) - 1)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["ciphercost"])
        return _answer(shell)


def _answer(shell: str) -> list[str]:
    from ciphercost.commands import _shells

    _shells.register()
    lines = CliRunner().invoke(commands.cli, complete_var="_CIPHERCOST_COMPLETE").output.splitlines()
    if shell == "zsh":
        return lines[1::3]
    return [line.partition(",")[2].partition("\t")[0] for line in lines if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_every_command(shell: str) -> None:
    assert set(asked("ciphercost ", shell)) >= {
        name for name, command in commands.cli.commands.items() if not command.hidden
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_target_as_one_word(shell: str) -> None:
    assert asked("ciphercost run sqlite:sqlc", shell) == ["sqlite:sqlcipher"]


def test_every_engine_and_each_of_its_mechanisms_is_offered() -> None:
    assert asked("ciphercost run ") == [f"{name}:" for name in engines.names()]
    for name in engines.names():
        known = [f"{name}:{mechanism}" for mechanism in mechanisms.of(engines.get(name))]
        assert asked(f"ciphercost run {name}:") == known
        assert asked(f"ciphercost run {name}") == known
    assert asked("ciphercost calibrate ") == engines.names()


def test_a_version_stays_in_a_target() -> None:
    assert asked("ciphercost run postgresql@17:tl") == ["postgresql@17:tls"]


def test_a_spec_file_is_a_target(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text("")
    assert asked("ciphercost run gr") == ["grid.toml"]


def test_workloads_are_those_in_the_engines_language() -> None:
    assert asked("ciphercost run --workload ") == workloads.names()
    assert asked("ciphercost run valkey:tls --workload ") == [
        "connect",
        "idle-connections",
        "kv-get",
        "kv-set",
        "replication",
        "storm",
    ]
    assert asked("ciphercost calibrate valkey --workload kv-g") == ["kv-get"]


def test_set_offers_options_of_mechanism_and_workload_then_their_values() -> None:
    offered = asked("ciphercost run valkey:tls --workload kv-set --set ")
    assert {"version=", "cipher=", "size="} <= set(offered)
    assert "page_size=" not in offered
    assert asked("ciphercost run postgresql:tls --set version=") == [
        f"version={value}" for value in _factor("tls", "version")
    ]
    assert asked("ciphercost prove sqlite:sqlcipher --set hm") == [
        f"hmac={value}" for value in _factor("sqlcipher", "hmac")
    ]


def _factor(mechanism: str, name: str) -> tuple[str, ...]:
    return next(factor.values for factor in mechanisms.get(mechanism).factors if factor.name == name)


def test_a_matrix_offers_the_values_that_it_does_not_have_yet() -> None:
    offered = asked("ciphercost run postgresql:tls --matrix version=1.2,")
    assert "version=1.2,1.3" in offered
    assert "version=1.2,1.2" not in offered


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ciphercost run postgresql:tls --regime ", ["capacity", "one-core", "latency"]),
        ("ciphercost run postgresql:tls --client ", clients.words()),
        ("ciphercost compare a b --format ", comparison_formats.names()),
        ("ciphercost report a --format te", ["terminal"]),
        ("ciphercost trend a b --format ", trend_formats.names()),
        ("ciphercost report a --need at-rest,auth", ["at-rest,authenticated"]),
        ("ciphercost list gr", ["grants"]),
        ("ciphercost completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_options_and_arguments_offer_their_values(line: str, offered: list[str]) -> None:
    assert asked(line) == offered


@pytest.mark.parametrize(
    ("line", "some"),
    [("list grants m", ["mysql", "mariadb"]), ("list studies web", ["web-tls"]), ("list engines ngi", ["nginx"])],
)
def test_list_offers_the_names_of_its_table(line: str, some: list[str]) -> None:
    assert set(some) <= set(asked(f"ciphercost {line}"))


def test_an_unknown_command_is_no_error_while_a_line_is_typed() -> None:
    assert set(asked("ciphercost nonsense ")) >= {"run", "quick"}


def test_studies_and_schemes_are_offered() -> None:
    assert asked("ciphercost replicate ") == [*studies.names(), "all"]
    assert {"https://", "http://"} <= set(asked("ciphercost prove http"))


def test_runs_are_offered_newest_first_and_each_once(tmp_path: Path) -> None:
    for name in ("runs/20261101-120000-aaaaaa", "runs/20261102-120000-bbbbbb", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "plan.json").write_text("{}")
    every = ["latest", "20261102-120000-bbbbbb", "20261101-120000-aaaaaa", "elsewhere"]
    for command in ("report", "resume", "compare"):
        assert asked(f"ciphercost {command} ") == every
    assert asked("ciphercost compare latest elsewhere 2026") == every[1:3]
    assert asked("ciphercost compare latest elsewhere 20261102-120000-bbbbbb 2026") == every[2:3]


def test_without_runs_directories_are_offered() -> None:
    assert "dir," in _raw("ciphercost report wha")


def _raw(line: str) -> str:
    environment = {**os.environ, "COMP_WORDS": line, "_CIPHERCOST_COMPLETE": "bash_complete"}
    return subprocess.run([BINARY], env=environment, capture_output=True, text=True, check=True).stdout


# ── speed ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def imported(environment: dict[str, str], *words: str) -> set[str]:
    """The modules that a command imports."""
    command = [sys.executable, "-c", ASK, *words]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return set(done.stderr.split())


def test_help_and_completion_import_nothing_that_takes_long(own_cache: Path) -> None:
    assert imported({}, "--help") & (HEAVY | {"msgspec", "click.shell_completion"}) == set()
    lines = ("run my", "run postgresql:tls --set v", "run postgresql:tls --workload ", "report ", "report x --format ")
    asking = [{"COMP_WORDS": f"ciphercost {line}", "_CIPHERCOST_COMPLETE": "bash_complete"} for line in lines]
    assert imported(asking[0]) >= HEAVY & {"ciphercost.engines"}  # the first time, it reads the registries
    assert own_cache.is_file()
    for environment in asking:
        assert imported(environment) & HEAVY == set(), environment


def test_names_are_read_again_when_a_file_of_a_registry_changes(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _names.names()
    own_cache.write_text(own_cache.read_text().replace("sqlcipher", "replaced"))
    assert "replaced" in _names.names()["mechanisms"]
    monkeypatch.setattr(_names, "_stamp", lambda: "another")
    assert _names.names()["mechanisms"] == before["mechanisms"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"stamp": 1}', "\xff"])
def test_a_damaged_cache_is_written_again(own_cache: Path, content: str) -> None:
    own_cache.parent.mkdir()
    own_cache.write_text(content)
    assert "sqlite" in _names.names()["engines"]
    assert "sqlite" in own_cache.read_text()


def test_a_cache_that_can_not_be_written_changes_nothing(own_cache: Path) -> None:
    own_cache.parent.write_text("a file, not a directory")
    assert asked("ciphercost run sqlite:sqlc") == ["sqlite:sqlcipher"]


# ── shells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bash_completes_a_target_at_its_colon(tmp_path: Path, own_cache: Path) -> None:
    """In a real bash on a terminal: bash itself cuts words at colons and equals signs."""
    start = tmp_path / "start"
    start.write_text('eval "$(ciphercost completion bash)"\nPS1="ready> "\n')
    environment = {**os.environ, "PATH": f"{BINARY.parent}:{os.environ['PATH']}", "TERM": "dumb"}
    typed = "ciphercost run null:b\t --set effect=5% --reg\t one\t --print-spec > made.toml\nexit\n"
    command = ["/bin/bash", "--noprofile", "--rcfile", str(start), "-i"]
    terminals.on_a_terminal(command, environment, asked="ready> ", typed=typed)
    spec = (tmp_path / "made.toml").read_text()
    assert 'mechanism = "busy"' in spec
    assert 'regime = "one-core"' in spec


def test_the_help_shows_how_to_install_it_in_each_shell() -> None:
    text = CliRunner().invoke(commands.cli, ["completion", "--help"]).output
    for shell in ("bash", "zsh", "fish"):
        assert f"ciphercost completion {shell} >" in text
        script = CliRunner().invoke(commands.cli, ["completion", shell]).output
        assert "_CIPHERCOST_COMPLETE" in script
        assert "ciphercost" in script


EVIL = ("x$(touch pwned).toml", "x`touch pwned`.toml", "x;touch pwned;.toml", "x'y.toml", 'x"y z.toml', "x!y.toml")


def test_names_of_files_can_not_steer_a_terminal(tmp_path: Path) -> None:
    for name in ("a\x1b[31m.toml", "a\nplain,other.toml", "a\u202e.toml", "a\x9b.toml", "good.toml"):
        (tmp_path / name).touch()
    for shell in ("bash", "zsh", "fish"):
        assert [word for word in asked("ciphercost run ", shell) if word.endswith(".toml")] == ["good.toml"]


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_bash_runs_nothing_of_a_completed_name(tmp_path: Path, quote: str) -> None:
    """In a real bash on a terminal, also within a quotation that is open."""
    start = tmp_path / "start"
    start.write_text('eval "$(ciphercost completion bash)"\nPS1="ready> "\n')
    environment = {**os.environ, "PATH": f"{BINARY.parent}:{os.environ['PATH']}", "TERM": "dumb"}
    for name in EVIL:
        (tmp_path / name).touch()
        typed = f"ciphercost run {quote}x\t{quote}\n\x03\nexit\n"
        command = ["/bin/bash", "--noprofile", "--rcfile", str(start), "-i"]
        terminals.on_a_terminal(command, environment, asked="ready> ", typed=typed)
        (tmp_path / name).unlink()
        assert not (tmp_path / "pwned").exists(), name
