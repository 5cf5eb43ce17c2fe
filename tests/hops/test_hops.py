"""Hops: each leads every server's connections on, shows on each part of the way what its arm's name says, and costs what it uses."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import processes
import short
import warm
from ciphercost import engines, hops
from ciphercost.hops import Ends, Stage, Wanted, pgbouncer
from ciphercost.hops._envoy import configuration
from ciphercost.host import supervisor
from ciphercost.host.pki import Pki
from ciphercost.host.procfs import tree
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.model import run_directory
from ciphercost.model.errors import MissingServer, UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.plan import matrix, resolve
from ciphercost.prove import witnesses
from ciphercost.provision import server_pairs
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair
from conftest import Require, RequireServer
from test_real import CLI

QUICK = ("--quick", "--time", "4s", "--no-latency", "--no-progress")
CARRIED = [
    ("postgresql@15", "pgbouncer", "hop"),
    ("postgresql@15", "pgbouncer", "server"),
    ("postgresql@15", "odyssey", "hop"),
    ("postgresql@15", "odyssey", "server"),
    ("postgresql@15", "haproxy", "hop"),
    ("postgresql@18", "haproxy", "server"),
    ("postgresql@15", "envoy", "hop"),
    ("postgresql@15", "two-envoys", "hop"),
    ("postgresql@15", "two-envoys", "server"),
    ("mysql@9.7", "haproxy", "server"),
    ("mariadb@11.8", "two-envoys", "hop"),
    ("nginx", "haproxy", "hop"),
    ("nginx", "haproxy", "server"),
    ("nginx", "two-envoys", "hop"),
    ("apache", "envoy", "hop"),
    ("postgresql@15", "stunnel", "hop"),
    ("redis@7.0", "stunnel", "hop"),
    ("valkey", "haproxy", "hop"),
    ("valkey", "envoy", "server"),
    ("memcached", "haproxy", "hop"),
]
LEGS = {
    ("haproxy", "hop"): "absent visible",
    ("haproxy", "server"): "absent absent",
    ("envoy", "hop"): "absent visible",
    ("envoy", "server"): "absent absent",
    ("pgbouncer", "hop"): "absent visible",
    ("pgbouncer", "server"): "absent absent",
    ("odyssey", "hop"): "absent visible",
    ("odyssey", "server"): "absent absent",
    ("stunnel", "hop"): "absent visible",
    ("two-envoys", "hop"): "visible absent visible",
    ("two-envoys", "server"): "absent absent absent",
}
"""What the canary is on each part of the encrypted arm's way, from the client to the server."""


@pytest.fixture(autouse=True)
def every_hop(require: Require) -> None:
    installed = []
    with suppress(MissingServer):
        installed = [hops.get(name).find(fetch=False) for name in hops.names()]
    require(installed, "no hops here: `make servers`")


@pytest.mark.parametrize(("server", "hop", "ends"), CARRIED)
def test_each_part_of_the_way_is_what_the_arms_name_says(
    server: str, hop: str, ends: str, require_server: RequireServer, tmp_path: Path
) -> None:
    require_server(*server.split("@"))
    done = warm.run(("prove", f"{server}:tls", "--set", f"hop={hop}", "--set", f"ends={ends}"), cwd=tmp_path)
    printed = " ".join(done.stdout.split())
    assert done.returncode == 0, printed + done.stderr
    wire = {arm: line for arm in ("plain", "encrypted") for line in [wire_of(printed, arm)]}
    parts = len(LEGS[hop, ends].split())
    assert seen(wire["plain"]) == ["visible"] * (parts if hops.get(hop).forwards_plain else 1)
    assert seen(wire["encrypted"]) == LEGS[hop, ends].split()
    assert "between client and hop: " in printed
    assert "between hop and server: " in printed


def wire_of(printed: str, arm: str) -> str:
    """What the wire witness said about an arm."""
    _, _, rest = printed.partition(f"{arm} arm")
    return rest.partition("wire: ")[2].partition(" arm ")[0]


def seen(detail: str) -> list[str]:
    """What the canary was on each part."""
    return re.findall(r"the canary is (absent|visible)", detail)


def test_the_hop_and_its_encryption_are_measured_apart(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("postgresql", "15")
    argv = ("run", "postgresql@15:tls", "--hop", "pgbouncer", *QUICK, "--json", "out.json")
    done = short.run(argv, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert [cell["variant"] for cell in cells] == ["hop alone", "ends=hop", "ends=server"]
    assert {cell["status"] for cell in cells} == {"ok"}
    alone, hop, server = cells
    for cell in cells:
        assert cell["encryption"]["hop"].startswith("PgBouncer 1.")
        assert {"client", "server", "wire"} == {proof["witness"] for proof in cell["proofs"]}
        assert cell["arms"]["encrypted"]["hop_cpu_us_per_op"] > 0
        assert cell["added"]["hop_cpu"]["low"] <= cell["added"]["hop_cpu"]["mean"] <= cell["added"]["hop_cpu"]["high"]
    # Straight to the server there is no hop, and what it costs is all of its CPU time.
    assert "hop_cpu_us_per_op" not in alone["arms"]["plain"]
    assert alone["added"]["hop_cpu"]["mean"] == pytest.approx(alone["arms"]["encrypted"]["hop_cpu_us_per_op"])
    assert hop["arms"]["plain"]["hop_cpu_us_per_op"] > 0
    assert "hop alone" in done.stdout
    assert "through PgBouncer 1." in " ".join(done.stdout.split())
    assert server["against_reference"] is not None


def test_a_hop_that_dies_ends_its_cell_and_says_so(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    argv = [
        str(CLI),
        "run",
        "nginx:tls",
        "--set",
        "hop=haproxy",
        "--quick",
        "--time",
        "60s",
        "--no-progress",
        "-o",
        "run",
    ]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        slices = tmp_path / "run" / "slices.jsonl"
        processes.wait_for("load", lambda: slices.exists() and slices.stat().st_size > 20_000, patience=300.0)
        for pid in processes_named(process.pid, "haproxy"):
            os.kill(pid, signal.SIGKILL)
        printed = " ".join(process.communicate()[0].split())
    assert process.returncode == 1, printed
    assert "the hop (HAProxy " in printed
    assert "died during the measurement, killed by SIGKILL" in printed
    assert "Traceback" not in printed


def processes_named(root: int, name: str) -> list[int]:
    found = []
    for pid in tree(root):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
    return found


REFUSED = [
    ({"engine": "mysql", "factors": {"hop": "haproxy"}}, r"asks the server for TLS in its own protocol.*ends=server"),
    ({"engine": "nginx", "factors": {"hop": "pgbouncer"}}, r"PgBouncer speaks PostgreSQL's protocol only"),
    ({"engine": "nginx", "factors": {"hop": "odyssey"}}, r"Odyssey speaks PostgreSQL's protocol only"),
    ({"engine": "nginx", "factors": {"hop": "haproxi"}}, r"did you mean 'haproxy'"),
    (
        {"engine": "nginx", "factors": {"hop": "haproxy", "resumption": "tickets"}},
        r"resumption=tickets does not go with",
    ),
    ({"engine": "nginx", "factors": {"hop": "haproxy", "version": "1.1"}}, r"a hop has TLS 1\.2 and 1\.3"),
    ({"engine": "nginx", "factors": {"hop": "two-envoys", "version": "1.2"}}, r"the hop itself uses TLS 1\.3"),
    ({"engine": "mysql", "factors": {"hop": "stunnel"}}, r"stunnel does not speak the protocol of mysql"),
    ({"engine": "nginx", "factors": {"hop": "stunnel", "ends": "server"}}, r"it begins none towards the server"),
    ({"engine": "nginx", "mechanism": "hop", "factors": {"hop": "stunnel"}}, r"can't be measured alone"),
    (
        {"engine": "nginx", "mechanism": "hop", "factors": {"hop": "haproxy", "library": "openssl-3.5"}},
        r"library=openssl-3\.5 does not go with",
    ),
    ({"engine": "nginx", "mechanism": "hop"}, r"needs --set hop=NAME: .*haproxy"),
    (
        {"engine": "postgresql", "factors": {"hop": "haproxy"}, "url": "postgresql://a@b/c"},
        r"not before yours; remove hop",
    ),
]


@pytest.mark.parametrize(("cell", "reason"), REFUSED)
def test_what_no_hop_can_carry_is_refused_before_anything_starts(cell: dict[str, object], reason: str) -> None:
    cell_spec = CellSpec(**({"mechanism": "tls", "workload": engines.get(str(cell["engine"])).usual_workload} | cell))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=reason):
        resolve.resolve(cell_spec)


def test_a_run_through_a_hop_has_only_the_cells_that_it_can_carry() -> None:
    variants = [cell.variant for cell in matrix.through(CellSpec("mysql", "tls"), "haproxy")]
    assert variants == ["hop alone", "ends=server"]
    assert [cell.variant for cell in matrix.through(CellSpec("nginx", "tls"), "two-envoys")] == [
        "hop alone",
        "ends=hop",
        "ends=server",
    ]
    assert [cell.variant for cell in matrix.through(CellSpec("nginx", "tls"), "stunnel")] == ["ends=hop"]
    with pytest.raises(UsageError, match=r"--hop haproxy: .*write mysql:tls"):
        matrix.through(CellSpec("mysql", "innodb-tde"), "haproxy")
    with pytest.raises(UsageError, match=r"--hop pgbouncer: PgBouncer speaks PostgreSQL's protocol only"):
        matrix.through(CellSpec("nginx", "tls"), "pgbouncer")
    with pytest.raises(UsageError, match=r"--hop and --set both set ends"):
        matrix.through(CellSpec("nginx", "tls", factors={"ends": "hop"}), "haproxy")


@pytest.mark.parametrize("name", hops.names())
@pytest.mark.parametrize("ends", ["", "hop", "server"])
def test_a_way_begins_and_ends_as_its_processes_do(name: str, ends: Ends) -> None:
    hop = hops.get(name)
    legs, stages = hop.legs(ends), hop.stages(ends)
    assert len(legs) == len(stages) + 1
    for (before, after), stage in zip(itertools.pairwise(legs), stages, strict=True):
        if stage == Stage():
            assert before == after, "what passes bytes on changes nothing"
        else:
            assert (before, after) == (stage.accepts, stage.connects)
    assert any(legs) == bool(ends)


@pytest.mark.parametrize(("accepts", "connects"), [(False, False), (True, False), (False, True)])
def test_an_envoy_shows_and_checks_certificates_only_towards_another(
    accepts: bool, connects: bool, tmp_path: Path
) -> None:
    pki = Pki(tmp_path / "pki", both_ends=True)
    wanted = Wanted(
        Stage(accepts, connects), ("127.0.0.1", 1), "nginx", tmp_path, pki, "", None, 1, "127.0.0.1", mutual=True
    )
    resources = configuration(wanted, 2)["static_resources"]
    (chain,) = resources["listeners"][0]["filter_chains"]
    assert ("transport_socket" in chain) == accepts
    assert ("transport_socket" in resources["clusters"][0]) == connects
    if accepts:
        assert chain["transport_socket"]["typed_config"]["require_client_certificate"]


# ── witnesses that fail ───────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def started(place: Path, cell: CellSpec) -> Iterator[tuple[PreparedCell, ServerPair, Agent]]:
    """The cell's server pair with its hop, and an agent."""
    with Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        shared, logs = ExperimentResources(scratch / "secrets" / "group-0"), place / "logs"
        logs.mkdir()
        with (
            server_pairs.bench(resolve.resolve(cell), run_supervisor, scratch, logs, 0, shared, data=False) as bench,
            shared.session(),
            Agent() as agent,
        ):
            yield bench, server_pairs.start(bench, 1, set(), set()), agent


def failed(bench: PreparedCell, pair: ServerPair, agent: Agent) -> set[tuple[str, str]]:
    """The (arm, witness) that fail."""
    proofs, _ = witnesses.prove(bench.engine, bench.mechanism, pair, agent, 1)
    return {(proof.arm, proof.witness) for proof in proofs if not proof.passed}


def test_a_hop_that_encrypts_unasked_is_detected(
    tmp_path: Path, require_server: RequireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_server("postgresql", "15")
    # As it does by default, where the server offers TLS.
    monkeypatch.setattr(pgbouncer, "WITHOUT", "")
    cell = CellSpec("postgresql", "hop", version="15", factors={"hop": "pgbouncer"})
    with started(tmp_path, cell) as (bench, pair, agent):
        assert failed(bench, pair, agent) == {("encrypted", "server"), ("encrypted", "wire")}


def test_a_client_that_encrypts_where_only_the_hop_is_measured_is_detected(
    tmp_path: Path, require_server: RequireServer
) -> None:
    require_server("nginx")
    cell = CellSpec("nginx", "hop", workload="file", factors={"hop": "haproxy"})
    with started(tmp_path, cell) as (bench, pair, agent):
        assert failed(bench, pair, agent) == set()
        tls = pair.by_arm["plain"].other_ports["tls"]
        pair.connect["plain"] = pair.connect["plain"] | tls | {"tls": "require"}
        assert ("plain", "client") in failed(bench, pair, agent)


def test_a_hop_that_does_not_encrypt_towards_the_server_is_detected(
    tmp_path: Path, require_server: RequireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_server("postgresql", "15")
    monkeypatch.setattr(pgbouncer, "CONNECTS", pgbouncer.WITHOUT.format(side="server"))
    cell = CellSpec("postgresql", "tls", version="15", factors={"hop": "pgbouncer", "ends": "server"})
    with started(tmp_path, cell) as (bench, pair, agent):
        assert failed(bench, pair, agent) == {("encrypted", "server"), ("encrypted", "wire")}
