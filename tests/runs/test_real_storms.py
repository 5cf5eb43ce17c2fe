"""Real storms and idle connections: recorded, estimated, shown in every report; at a server's connection limit one line, and nothing is left."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

import short
import steady
from ciphercost import hops
from ciphercost.estimate import results, storms
from ciphercost.model import run_directory
from ciphercost.model.connection_memory import MOMENTS, MemoryLevel
from ciphercost.model.spec import ARMS
from ciphercost.model.storms import StormSlice
from ciphercost.plan.connection_loads import STEPS
from ciphercost.runs import anonymize
from conftest import RequirePossible, RequireServer
from test_real import result_of
from userservers import LIMITED, user_server

QUICK = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--rate", "500")


@pytest.fixture(scope="module")
def stormy(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Path:
    """A run with a storm and idle connections."""
    require_server("valkey")
    place = tmp_path_factory.mktemp("stormy")
    options = ("--workload", "storm", "--clients", "4", "--storm", "1000", "--connections", "16", "-o", "run")
    done = short.run(["run", "valkey:tls", *options, *QUICK, "--json", "out.json"], cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "while 50 others connect" in done.stdout
    assert "memory per connection, up to 16" in done.stdout
    return place


def test_storms_are_recorded_and_estimated(stormy: Path) -> None:
    (cell,) = result_of(stormy)["cells"]
    slices = list(run_directory.read_beside(stormy / "run", StormSlice))
    assert [(one.block, one.position) for one in slices] == [(block, place) for block in range(4) for place in range(5)]
    for one in slices:
        assert one.back is not None
        assert one.back.operations + one.back.errors == one.wanted
        assert one.back.connects >= one.wanted - 1
    storm = cell["storm"]
    assert (storm["kind"], storm["asked"], storm["rate"], storm["blocks"]) == ("rate", "1000", 500, 4)
    # On a busy machine nothing may be done in one of the short parts; tests/estimate/test_storms.py has ratios of throughput.
    worked = all(one.during is not None and one.during.operations for one in slices if one.position > 0)
    for arm in ARMS:
        assert (storm["arms"][arm]["wanted"], storm["arms"][arm].get("refused")) == (400, 0)
        assert storm["arms"][arm]["levels"].get("throughput_during", 0) > 0 or not worked
    assert {"back_p50", "back_last"} <= set(storm["ratios"])


def test_memory_is_recorded_at_every_step_and_moment(stormy: Path) -> None:
    (cell,) = result_of(stormy)["cells"]
    levels = list(run_directory.read_beside(stormy / "run", MemoryLevel))
    assert {(one.arm, one.moment, one.connections) for one in levels} == {
        (arm, moment, 2 * step) for arm in ARMS for moment in MOMENTS[:2] for step in range(STEPS + 1)
    }, "workload storm has no large response"
    assert set(cell["connection_memory"]["added"]) == {"handshake", "traffic"}
    assert set(cell["connection_memory"]["added"]["handshake"]) == {"server", "kernel", "client"}


def test_the_record_gives_the_same_result_again_and_is_published_whole(stormy: Path) -> None:
    again = results.conclude(stormy / "run")
    recorded = json.loads((stormy / "run" / "result.json").read_text())["cells"][0]
    assert msgspec.to_builtins(again.cells[0].storm)["ratios"] == recorded["storm"]["ratios"]
    assert {"storm.jsonl", "memory.jsonl"} <= set(anonymize.shareable(stormy / "run"))
    assert {"storm.jsonl", "memory.jsonl"} <= set(run_directory.read_facts(stormy / "run").hashes)


def test_a_storm_beside_saturated_connections_measures_what_it_takes_from_them(
    tmp_path: Path, require_server: RequireServer
) -> None:
    require_server("valkey")
    options = ("--workload", "storm", "--clients", "4", "--storm", "saturated=400", "-o", "run")
    quick = [word for word in QUICK if word not in ("--rate", "500")]

    def stormed(place: Path) -> tuple[str, list[StormSlice]]:
        place.mkdir()
        done = short.run(["run", "valkey:tls", *options, *quick, "--json", "out.json"], cwd=place)
        assert done.returncode == 0, done.stdout + done.stderr
        return " ".join(done.stdout.split()), list(run_directory.read_beside(place / "run", StormSlice))

    def whole(outcome: tuple[str, list[StormSlice]]) -> bool:
        """On a busy machine nothing may be done in one of the short parts; then there is no change of throughput."""
        counted = [one for one in outcome[1] if one.position > 0]
        return all(part and part.operations for one in counted for part in (one.before, one.during))

    (text, slices), place = steady.tried(stormed, tmp_path, whole)
    (cell,) = result_of(place)["cells"]
    storm = cell["storm"]
    assert (storm["kind"], storm["asked"], storm["rate"]) == ("saturated", "saturated=400", 0)
    for arm in ARMS:
        assert {"ratio", "low", "high"} <= set(storm["arms"][arm]["change"]["throughput_during"])
    assert {"ratio", "low", "high"} <= set(storm["change"]["throughput_during"])
    assert all(one.rate == 0 for one in slices)
    assert "4 established connections send as fast as they can" in text
    assert "operations/s during ÷ before, encrypted against plain" in text


def test_a_failover_brings_every_client_back_on_a_fresh_server(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    options = ("--workload", "storm", "--clients", "4", "--storm", "failover=24", "-o", "run")
    done = short.run(["run", "nginx:tls", *options, *QUICK, "--json", "out.json"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["storm"]["wanted"] == 24
    assert {"back_p50", "back_last", "reconnect"} <= set(cell["storm"]["ratios"])
    assert all(one.reconnect_s > 0 for one in run_directory.read_beside(tmp_path / "run", StormSlice))


def test_a_storm_at_the_servers_limit_ends_in_one_line_and_leaves_nothing(
    tmp_path: Path, own_scratch: Path, require_server: RequireServer
) -> None:
    require_server("postgresql")
    # Room for both arms' established connections, and for no other.
    options = ("--workload", "storm", "--clients", "8", "--storm", "20", "--setting", "max_connections=16")

    def refused(place: Path) -> dict[str, Any]:
        place.mkdir()
        done = short.run(["run", "postgresql:tls", *options, *QUICK, "--json", "out.json"], cwd=place)
        assert done.returncode == 1, done.stdout + done.stderr
        (cell,) = result_of(place)["cells"]
        return dict(cell)

    # Where the server's processes of the proofs' connections still end, those of the load are refused.
    cell, _ = steady.tried(refused, tmp_path, lambda cell: cell["reason"].startswith("storm, "))
    assert cell["status"] == "failed"
    assert cell["reason"].startswith("storm, ")
    assert "too many clients" in cell["reason"]
    assert "\n" not in cell["reason"]
    assert list(own_scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "storm", "options"),
    [
        ("mysql:tls", "800", ("--set", "resumption=on")),
        ("mariadb:tls", "failover=24", ()),
        ("postgresql:tls", "rotation=30m/24", ("--set", "hop=pgbouncer")),
    ],
)
def test_storms_on_other_servers_and_through_a_pooler(
    target: str,
    storm: str,
    options: tuple[str, ...],
    tmp_path: Path,
    require_server: RequireServer,
    require_possible: RequirePossible,
) -> None:
    require_server(target.partition(":")[0])
    if "hop=pgbouncer" in options:
        require_possible(lambda: hops.get("pgbouncer").find(fetch=False))
    given = ("--workload", "storm", "--clients", "4", "--storm", storm, *options, "-o", "run")
    done = short.run(["run", target, *given, *QUICK, "--json", "out.json"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["storm"]["asked"] == storm
    assert {"back_p50", "back_last"} <= set(cell["storm"]["ratios"])
    resumed = opened = 0
    for one in run_directory.read_beside(tmp_path / "run", StormSlice):
        assert one.back is not None
        assert (one.back.operations, one.back.errors) == (one.wanted, 0)
        resumed, opened = resumed + one.back.resumed, opened + one.wanted
    # The factor holds for new connections too: half of them are the plain arm's.
    assert (resumed > opened / 4) == ("resumption=on" in options)


def test_a_storm_on_a_users_own_server_needs_no_more_than_a_login(
    tmp_path: Path, require_server: RequireServer
) -> None:
    require_server("postgresql")
    (place := tmp_path / "server").mkdir()
    with user_server("postgresql", place) as server:
        server.ask(*LIMITED["postgresql"])
        before = server.state()
        given = (
            "--url",
            server.url_for("limited"),
            *server.by_ca,
            "--workload",
            "storm",
            "--clients",
            "4",
            "--storm",
            "800",
        )
        argv = ["run", "postgresql:tls", *given, *QUICK, "-o", "run", "--json", "out.json"]
        done = short.run(argv, cwd=tmp_path, env={**server.environment, "PGPASSWORD": "limited"})
        assert done.returncode == 0, done.stdout + done.stderr
        (cell,) = result_of(tmp_path)["cells"]
        assert {"back_p50", "back_last"} <= set(cell["storm"]["ratios"])
        assert server.state() == before


def test_new_connections_that_a_server_at_its_limit_refuses_are_counted(
    tmp_path: Path, own_scratch: Path, require_server: RequireServer
) -> None:
    require_server("postgresql")
    # Room for both arms' four established connections, and for eight of the hundred new ones: of the storm before, some may still end.
    options = ("--workload", "storm", "--clients", "4", "--storm", "rotation=30m/100")
    argv = ["run", "postgresql:tls", *options, "--setting", "max_connections=16", *QUICK, "--json", "out.json"]

    def refusing(place: Path) -> subprocess.CompletedProcess[str]:
        place.mkdir()
        return short.run(argv, cwd=place)

    done, place = steady.tried(refusing, tmp_path, lambda done: done.returncode == 0)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(place)["cells"]
    refused = {arm: cell["storm"]["arms"][arm].get("refused", 0) for arm in ARMS}
    assert sum(refused.values()) > 0
    (warning,) = [one["text"] for one in cell["warnings"] if one["code"] == storms.REFUSED]
    assert "53300=" in warning
    assert "raise the server's connection limit" in warning
    assert list(own_scratch.iterdir()) == []
