"""A command as the load, on a PostgreSQL that the user runs: proven, measured, resumed, and refused where an arm is not what it is called."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import ciphercost
import warm
from ciphercost.model.secret import reveal
from conftest import RequireServer
from userservers import UserServer, user_server

SHORT = 'mode = "quick"\nsessions = 1\ntime = 1.0\nslice_seconds = 1.0\n'
"""One second by the schedule; commands that do a fixed number of transactions take less."""


@pytest.fixture(scope="module")
def server(require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserServer]:
    require_server("postgresql")
    with user_server("postgresql", tmp_path_factory.mktemp("postgresql")) as found:
        found.pgbench("-i", "-q")
        yield found


def pgbench(server: UserServer, mode: str, *options: str, place: str = "host={host} port={port}") -> str:
    """The command that runs some of pgbench's transactions in this sslmode."""
    where = f"{place} user={server.fields.user} dbname={server.fields.database} sslmode={mode}"
    where += " sslrootcert={ca}" if mode.startswith("verify") else ""
    program = Path(server.installation.location) / "pgbench"
    return shlex.join([str(program), "-n", "-S", *(options or ("-t", "200")), where])


def run(
    server: UserServer,
    directory: Path,
    plain: str,
    encrypted: str,
    *,
    mechanism: str = "tls",
    ca: bool = True,
    by: Sequence[str] = (),
    url: str = "",
    **more: Any,
) -> CompletedProcess[str]:
    """Run a cell of these commands. `by`: a program that runs ciphercost; `url`: empty: the server's. `more`: further fields of the commands."""
    cell = {"engine": "command", "mechanism": mechanism, "url": url or f"127.0.0.1:{server.fields.port}"}
    cell |= {"ca": str(server.ca)} if ca else {}
    command = {"plain": plain, **({"encrypted": encrypted} if encrypted else {}), **more}
    lines = [SHORT, "[[cells]]", *(f"{name} = {json.dumps(value)}" for name, value in cell.items()), "[cells.command]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in command.items()]
    spec = directory / "spec.toml"
    spec.write_text("\n".join(lines) + "\n")
    password = dict.fromkeys(("PGPASSWORD", "MYSQL_PWD"), reveal(server.fields.password))
    argv = ["run", str(spec), "-o", str(directory / "run"), "--no-progress"]
    if by:
        return subprocess.run(
            [*by, sys.executable, "-m", "ciphercost", *argv],
            cwd=directory,
            env={**os.environ, **password, "PYTHONPATH": str(Path(ciphercost.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    return warm.run(argv, cwd=directory, env=password)


def cell_of(directory: Path) -> dict[str, Any]:
    cell: dict[str, Any] = json.loads((directory / "run" / "result.json").read_text())["cells"][0]
    return cell


def refusal(done: CompletedProcess[str], directory: Path) -> str:
    """Why the cell has no number: nothing of it was measured."""
    assert done.returncode == 1, done.stdout + done.stderr
    cell = cell_of(directory)
    assert not cell.get("overhead")
    assert not (directory / "run" / "slices.jsonl").exists() or not (directory / "run" / "slices.jsonl").read_text()
    assert "\n" not in cell["reason"]
    return f"{cell['status']}: {cell['reason']}"


def test_pgbench_over_tls_is_proven_and_measured(server: UserServer, tmp_path: Path) -> None:
    done = run(server, tmp_path, pgbench(server, "disable"), pgbench(server, "verify-full"), canary="pgbench_accounts")
    assert done.returncode == 0, done.stdout + done.stderr
    cell = cell_of(tmp_path)
    assert (cell["status"], cell["workload"]) == ("ok", "pgbench")
    assert {"throughput", "server_cpu_per_op", "client_cpu_per_op", "tool_latency_mean"} <= cell["overhead"].keys()
    assert "wire_bytes_per_op" not in cell["overhead"]
    details = {proof["arm"]: proof["detail"] for proof in cell["proofs"]}
    assert "TLSv1.3" in details["encrypted"]
    assert "the canary is absent" in details["encrypted"]
    assert "the canary is readable" in details["plain"]
    assert cell["encryption"]["verified"] == "yes"
    assert "verified_by" not in cell["encryption"], "its name is checked too"
    assert cell["client"].startswith("pgbench ")
    assert 0 < cell["arms"]["plain"]["startup_s"] < cell["arms"]["plain"]["process_s"]
    assert "its own clock leaves that out" in " ".join(done.stdout.split())
    assert reveal(server.fields.password) not in "".join(
        path.read_text(errors="replace") for path in (tmp_path / "run").rglob("*") if path.is_file()
    )


def test_a_client_that_verifies_nothing_is_told_so(server: UserServer, tmp_path: Path) -> None:
    done = run(server, tmp_path, pgbench(server, "disable"), pgbench(server, "require"), ca=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = cell_of(tmp_path)
    assert cell["encryption"]["verified"] == "no"
    assert any("does not verify the server: it accepts" in warning["text"] for warning in cell["warnings"])


def test_a_command_compared_with_itself_needs_no_proof(server: UserServer, tmp_path: Path) -> None:
    done = run(server, tmp_path, pgbench(server, "disable"), "", mechanism="none", ca=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cell_of(tmp_path)["status"] == "ok"
    assert not cell_of(tmp_path)["proofs"]


def test_two_encrypted_arms_are_refused(server: UserServer, tmp_path: Path) -> None:
    done = run(server, tmp_path, pgbench(server, "require"), pgbench(server, "verify-full"))
    reason = refusal(done, tmp_path)
    assert reason.startswith("unproven: wire witness, plain arm: ")
    assert "use TLS (TLSv1.3), so this arm is not plain" in reason


def test_exchanged_arms_are_refused(server: UserServer, tmp_path: Path) -> None:
    reason = refusal(run(server, tmp_path, pgbench(server, "verify-full"), pgbench(server, "disable")), tmp_path)
    assert "encrypted arm: 2 of 2 connections" in reason
    assert "without a TLS handshake" in reason
    assert "plain arm" in reason


def test_a_canary_that_the_plain_arm_does_not_show_proves_nothing(server: UserServer, tmp_path: Path) -> None:
    plain, encrypted = pgbench(server, "disable"), pgbench(server, "verify-full")
    assert "'nowhere' is not readable" in refusal(run(server, tmp_path, plain, encrypted, canary="nowhere"), tmp_path)


def test_a_command_that_fails_in_one_arm_is_named_with_what_it_said(server: UserServer, tmp_path: Path) -> None:
    wrong = pgbench(server, "verify-full").replace(f"dbname={server.fields.database}", "dbname=nosuchdatabase")
    reason = refusal(run(server, tmp_path, pgbench(server, "disable"), wrong), tmp_path)
    assert reason.startswith("failed: encrypted arm: ")
    assert "pgbench failed with exit status" in reason
    assert "nosuchdatabase" in reason


@pytest.mark.usefixtures("require_capture")
def test_a_command_without_a_relay_is_proven_by_its_packets(server: UserServer, tmp_path: Path) -> None:
    place = f"host={{host}} port={server.fields.port}"
    done = run(server, tmp_path, pgbench(server, "disable", place=place), pgbench(server, "verify-full", place=place))
    assert done.returncode == 0, done.stdout + done.stderr
    assert all("by captured packets" in proof["detail"] for proof in cell_of(tmp_path)["proofs"])


@pytest.mark.usefixtures("require_capture")
def test_packets_show_exchanged_arms_too(server: UserServer, tmp_path: Path) -> None:
    place = f"host={{host}} port={server.fields.port}"
    both = pgbench(server, "verify-full", place=place), pgbench(server, "disable", place=place)
    assert "so this arm is not plain" in refusal(run(server, tmp_path, *both, unproven=True), tmp_path)


def test_what_nothing_shows_is_measured_only_on_request_and_labelled(server: UserServer, tmp_path: Path) -> None:
    place = f"host={{host}} port={server.fields.port}"
    both = pgbench(server, "disable", place=place), pgbench(server, "verify-full", place=place)
    without = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"] if os.geteuid() == 0 else []
    (tmp_path / "first").mkdir()
    reason = refusal(run(server, tmp_path / "first", *both, by=without), tmp_path / "first")
    assert "packets can't be captured here (Operation not permitted)" in reason
    assert "--unproven measures without proof" in reason
    done = run(server, tmp_path, *both, by=without, unproven=True)
    assert done.returncode == 1, "what is unproven passes no gate"
    cell = cell_of(tmp_path)
    assert cell["status"] == "unproven"
    assert cell["overhead"]["throughput"]["ratio"] > 0
    assert cell["reason"].startswith("measured without proof (--unproven): ")
    assert "UNPROVEN" in done.stdout
    assert "NOT PROVEN: nothing shows what the commands send" in " ".join(done.stdout.split())


def test_what_restarts_the_server_runs_around_each_session(server: UserServer, tmp_path: Path) -> None:
    said = tmp_path / "said"
    around = {name: f"sh -c 'echo {name} $0 >> {said}' {{port}}" for name in ("before", "after")}
    done = run(server, tmp_path, pgbench(server, "disable"), "", mechanism="none", ca=False, **around)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said.read_text() == f"before {server.fields.port}\nafter {server.fields.port}\n"
    assert not any(warning["code"] == "not-restarted" for warning in cell_of(tmp_path)["warnings"])


def test_what_comes_after_a_session_runs_also_if_the_session_fails(server: UserServer, tmp_path: Path) -> None:
    done = run(server, tmp_path, "false", "", mechanism="none", ca=False, after=f"touch {tmp_path}/after")
    assert "false failed with exit status 1" in refusal(done, tmp_path)
    assert (tmp_path / "after").exists()


def test_a_failed_restart_is_told_with_its_last_line(server: UserServer, tmp_path: Path) -> None:
    before = "sh -c 'echo no such unit 1>&2; exit 5'"
    done = run(server, tmp_path, pgbench(server, "disable"), "", mechanism="none", ca=False, before=before)
    assert "--before: sh failed with exit status 5: no such unit" in refusal(done, tmp_path)


def test_a_secret_in_a_command_is_in_no_record_and_the_run_is_not_resumed(server: UserServer, tmp_path: Path) -> None:
    plain = pgbench(server, "disable", place="host={host} port={port} options=-cgeheim.token=geheim1")
    done = run(server, tmp_path, plain, "", mechanism="none", ca=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "spec.toml").unlink()
    for path in filter(Path.is_file, (tmp_path / "run").rglob("*")):
        assert "geheim1" not in path.read_text(errors="replace"), path
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert plan["cells"][0]["spec"]["command"]["hidden"]


def test_the_server_is_the_process_that_the_user_names(server: UserServer, tmp_path: Path) -> None:
    named = {"server_pid": str(tmp_path / "pid")}
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    done = run(server, tmp_path, pgbench(server, "disable"), "", mechanism="none", ca=False, **named)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "pid").write_text("no number\n")
    (tmp_path / "second").mkdir()
    done = run(server, tmp_path / "second", pgbench(server, "disable"), "", mechanism="none", ca=False, **named)
    assert "there is no process no number" in refusal(done, tmp_path / "second")
