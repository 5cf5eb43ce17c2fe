"""Which runs a cluster can make the load of, and what a run without Ray is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ciphercost.commands import run as command
from ciphercost.load.fleet import addresses
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import cluster_checks, specs


def spec(cell: CellSpec | None = None, **fields: object) -> Spec:
    return Spec([cell or CellSpec("postgresql", "tls", clients=8)], **fields)  # type: ignore[arg-type]


@pytest.fixture
def with_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_checks, "installed", lambda: True)


@pytest.mark.usefixtures("with_ray")
@pytest.mark.parametrize(
    ("refused_spec", "words"),
    [
        (spec(agents=2), "--agents: only a cluster has machines to use; add --cluster auto"),
        (spec(min_agents=2), "--min-agents: only a cluster"),
        (spec(placement="near-server"), "--placement: only a cluster"),
        (
            spec(cluster="auto", agents=9),
            "--agents 9: postgresql:tls has 8 clients, and each agent needs one; use --clients 9",
        ),
        (spec(cluster="auto", min_agents=9), "--min-agents 9: postgresql:tls has 8 clients"),
        (spec(cluster="auto", agents=3, min_agents=4), "--min-agents 4: more than --agents 3"),
        (spec(cluster="somewhere"), "--cluster somewhere: write auto, HOST:6379 or ray://HOST:10001"),
        (spec(cluster="host:port"), "--cluster host:port: 'port' is not a port"),
        (spec(CellSpec("sqlite", "sqlcipher"), cluster="auto"), "sqlite runs inside the agent"),
        (spec(CellSpec("postgresql", "tls", regime="one-core"), cluster="auto"), "--regime one-core"),
        (spec(CellSpec("postgresql", "tls", delay="10ms"), cluster="auto"), "the delay of --delay"),
        (spec(CellSpec("mysql", "tls", url="mysql://me@h/?socket=/run/s"), cluster="auto"), "the Unix socket of --url"),
        (spec(CellSpec("postgresql", "tls", mtu=1500), cluster="auto"), "the link of --bandwidth, --mtu and --loss"),
    ],
    ids=lambda value: value[:40].replace(" ", "-") if isinstance(value, str) else "",
)
def test_what_a_cluster_can_not_do_is_refused_with_what_to_do(refused_spec: Spec, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        specs.plan(refused_spec)
    assert words in str(caught.value)


@pytest.mark.usefixtures("with_ray", "require_java")
def test_jdbc_is_refused() -> None:
    with pytest.raises(UsageError, match=r"driver .*this machine only"):
        specs.plan(spec(CellSpec("mysql", "tls", client="jdbc"), cluster="auto"))


@pytest.mark.usefixtures("with_ray")
def test_a_cluster_that_can_make_the_load_is_accepted() -> None:
    specs.plan(spec(cluster="auto", agents=8))
    specs.plan(spec(cluster="10.0.0.1:6379"))
    specs.plan(spec(cluster="ray://[::1]:10001", placement="near-server"))


def test_without_ray_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = CliRunner().invoke(command.run, ["postgresql:tls", "--cluster", "auto"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_status == 2
    assert str(done.exception).startswith("--cluster needs Ray")
    assert "pip install 'ciphercost[ray]'" in str(done.exception)


def test_without_ray_the_command_line_ends_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ray'] = None\n")
    sources = str(Path(cluster_checks.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "ciphercost", "run", "postgresql:tls", "--cluster", "auto"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{tmp_path}:{sources}"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'ciphercost[ray]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_ray_is_not_imported_before_it_is_used() -> None:
    program = (
        "import importlib, pkgutil, sys, ciphercost\n"
        "for module in pkgutil.walk_packages(ciphercost.__path__, 'ciphercost.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        "from ciphercost.commands import main\n"
        "sys.argv = ['ciphercost', 'run', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'ray' not in sys.modules, 'Ray was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--cluster" in done.stdout


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.0.0.1:6379", "10.0.0.1:6379"),
        ("ray://head", "ray://head:10001"),
        ("ray://head:10002", "ray://head:10002"),
        ("ray://head:10002/", "ray://head:10002"),
    ],
)
def test_addresses(address: str, expected: str) -> None:
    assert addresses.resolved(address) == expected


def test_auto_is_the_cluster_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(UsageError, match=r"no Ray cluster; .*`ray start --head`"):
        addresses.resolved("auto")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / addresses.CURRENT).write_text("10.0.0.9:6379")
    assert addresses.resolved("auto") == "10.0.0.9:6379"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.8:6379")
    assert addresses.resolved("auto") == "10.0.0.8:6379"


def test_nobody_answers_at_an_address() -> None:
    with pytest.raises(UsageError, match="no Ray cluster answers there: Connection refused"):
        addresses.check_listening("127.0.0.1:1", "127.0.0.1:1")
