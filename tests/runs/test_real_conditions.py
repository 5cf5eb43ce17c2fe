"""Conditions on a real server: in force, named in the result, predicted, and removed if the run is killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from ciphercost.host import leftovers, link, namespaces
from ciphercost.model import run_directory
from ciphercost.model.result import Cell
from ciphercost.report.words import cell_text, figure_text
from conftest import RequirePossible, RequireServer
from processes import marked, wait_for
from test_real import CLI, SHORT, Start, measured, own_server, result_of

__all__ = ["own_server"]


@pytest.fixture
def rights(require_possible: RequirePossible) -> None:
    """The right to create a link."""
    require_possible(link.check_rights)


@pytest.mark.usefixtures("require_postgresql")
def test_a_delayed_cell_says_what_its_round_trips_predict(tmp_path: Path) -> None:
    argv = ("run", "postgresql:tls", "--workload", "connect", "--delay", "2ms", *SHORT, "--json", "out.json")
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["conditions"] | {"idle": ""} == {"delay": "2ms", "idle": ""}
    retried = cell["encryption"]["group"] not in ("X25519", "X25519MLKEM768")
    assert (
        cell["predicted"]["round_trips"] == 2 + retried
    )  # PostgreSQL's SSL request, the handshake, and perhaps a retry with another key share
    assert cell["predicted"]["added_ms"] == pytest.approx(2 * cell["predicted"]["round_trips"])
    assert figure_text.prediction(msgspec.convert(cell, Cell)) in " ".join(done.stdout.split())


@pytest.mark.usefixtures("require_postgresql", "rights")
def test_a_cell_over_a_slow_link_says_what_its_bytes_predict(tmp_path: Path) -> None:
    argv = ("run", "postgresql:tls", "--workload", "bulk-read", "--set", "size=20KB", "--bandwidth", "100mbit")
    done = measured(*argv, "--mtu", "1400", *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["conditions"] | {"idle": ""} == {"bandwidth": "100mbit", "mtu": "1400", "idle": ""}
    assert cell["predicted"]["round_trips"] == 0
    assert 0 < cell["predicted"]["throughput"] < 1.1


@pytest.mark.usefixtures("require_postgresql", "rights")
def test_a_link_loses_packets_as_asked_and_the_report_says_how_many(tmp_path: Path) -> None:
    # On connections that stay: a SYN that is lost is sent again only after a second, the next after two more.
    argv = ("run", "postgresql:tls", "--loss", "5%", "--delay", "1ms")
    done = measured(*argv, *SHORT, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["conditions"] | {"idle": ""} == {"delay": "1ms", "loss": "5%", "idle": ""}
    sent, lost = cell["link"]["sent"], cell["link"]["lost"]
    assert abs(lost - 0.05 * sent) < 6 * (sent * 0.05 * 0.95) ** 0.5 + 2  # and some packets that were on their way
    assert "".join(cell_text.link(msgspec.convert(cell, Cell))) in " ".join(done.stdout.split())
    assert not cell["predicted"]


@pytest.mark.usefixtures("rights")
@pytest.mark.parametrize("target", ["mysql:tls", "mariadb:tls", "firebird:wire-crypt"])
def test_every_server_is_reached_over_a_link_and_through_a_relay(
    tmp_path: Path, target: str, require_server: RequireServer
) -> None:
    require_server(target.partition(":")[0])
    for condition in (("--bandwidth", "1gbit"), ("--delay", "1ms")):
        done = measured("run", target, *condition, *SHORT, "--json", "out.json", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert result_of(tmp_path)["cells"][0]["conditions"] | {"idle": ""} == {
            condition[0].removeprefix("--"): condition[1],
            "idle": "",
        }


def test_a_server_of_the_users_can_be_delayed(tmp_path: Path, own_server: Start) -> None:
    user_server = own_server(certificate="ecdsa-p256")
    argv = (
        "run",
        "postgresql:tls",
        "--url",
        user_server.url,
        "--ca",
        "ca.pem",
        "--delay",
        "1ms",
        *SHORT,
        "--json",
        "out.json",
    )
    done = measured(*argv, cwd=tmp_path, PGPASSWORD=user_server.password)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["conditions"] | {"idle": ""} == {"delay": "1ms", "idle": ""}
    assert cell["encryption"]["verified"] == "yes"  # against the server's own name, although the address is the relay's


@pytest.mark.usefixtures("require_postgresql")
def test_a_servers_setting_is_in_force_and_reported(tmp_path: Path) -> None:
    """A statement that fails with any other value."""
    sql = tmp_path / "shown.sql"
    sql.write_text("SELECT 1 / (CASE WHEN current_setting('work_mem') = '12345kB' THEN 1 ELSE 0 END);\n")
    argv = ("run", "postgresql:tls", "--sql", str(sql), "--setting", "work_mem=12345kB", *SHORT, "--json", "out.json")
    done = measured(*argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert cell["conditions"] | {"idle": ""} == {"settings": "work_mem=12345kB", "idle": ""}
    assert "work_mem=12345kB" in done.stdout
    assert all(arm["throughput"] > 0 and not arm.get("errors") for arm in cell["arms"].values())


@pytest.mark.usefixtures("require_postgresql")
def test_a_setting_that_the_server_does_not_know_fails_its_cell_in_the_servers_words(tmp_path: Path) -> None:
    done = measured("run", "postgresql:tls", "--setting", "no_such_setting=1", *SHORT, cwd=tmp_path)
    assert done.returncode == 1
    assert "no_such_setting" in done.stdout


@pytest.mark.usefixtures("require_postgresql", "rights")
def test_a_run_that_is_killed_leaves_no_link_and_no_relay(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    argv: list[str | Path] = [
        CLI,
        "run",
        "postgresql:tls",
        "--quick",
        "--time",
        "60s",
        "--no-progress",
        "-o",
        directory,
    ]
    argv += ["--bandwidth", "100mbit", "--delay", "1ms"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        slices = directory / "slices.jsonl"
        wait_for("slices", lambda: slices.exists() and slices.stat().st_size > 10_000, 300)
        run_id = run_directory.read_facts(directory).id
        mine = [name for name in namespaces.left_behind() if run_id in name]
        assert len(mine) == 1
        os.kill(process.pid, signal.SIGKILL)
    wait_for("every process of the run to end", lambda: not marked(run_id), 300)
    wait_for("the link to go", lambda: not [name for name in namespaces.left_behind() if run_id in name], 300)
    assert not (Path("/sys/class/net") / f"cc{mine[0].rpartition('-')[2]}").exists()
    assert not [left for left in leftovers.leftovers() if run_id in str(left)]
