"""Which resource limited an arm, from its record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ciphercost.estimate import bottleneck
from ciphercost.host import procfs
from ciphercost.model.result import Cell
from conftest import RequireServer
from test_real import ciphercost, result_of


def facts(server_us: float | None, client_us: float, throughput: float = 10_000.0, **more: Any) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "throughput": throughput,
        "client_cpu_us_per_op": client_us,
        "operations": throughput,
        "seconds": 1.0,
    }
    return figures | ({} if server_us is None else {"server_cpu_us_per_op": server_us}) | more


def cell(plain: dict[str, Any], encrypted: dict[str, Any], engine: str = "nginx", **changes: Any) -> Cell:
    given: dict[str, Any] = {"regime": "capacity", "cores": {"server": "0", "agent": "1"}} | changes
    arms = {"plain": plain, "encrypted": encrypted}
    return Cell(
        engine,
        "1",
        "transit",
        "tls",
        "file",
        given.pop("clients", 4),
        given.pop("status", "ok"),
        given.pop("mode", "full"),
        arms=arms,
        **given,
    )


BUSY, IDLE = facts(98, 50), facts(40, 30)
DISK = {"host": {"disk_busy": {"mean": 97.0, "variance": 0.0, "cv": 0.0}}}
WRITES = {"write_bytes_per_op": 8192.0, "read_bytes_per_op": 0.0}
QUOTA = {"host": {"throttled": {"mean": 41.0, "variance": 0.0, "cv": 0.0}}}
WIRE = {"wire_bytes_per_op": 1216.0, "segments_per_op": 0.0}


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (cell(BUSY, BUSY), "limited by the server's core (98 % busy)"),
        (
            cell(facts(50, 97), BUSY),
            "plain arm: limited by the client's core (97 % busy); encrypted arm: limited by the server's core (98 % busy)",
        ),
        (
            cell(IDLE, BUSY),
            (
                "plain arm: no resource was saturated (the server's core 40 % busy, the client's core 30 % busy); "
                "encrypted arm: limited by the server's core (98 % busy)"
            ),
        ),
        # Four clients can use both cores, one client only one.
        (cell(facts(190, 50), facts(190, 50), cores={"server": "0,2", "agent": "1"}), "limited by the server's 2 cores (95 % busy)"),
        (
            cell(facts(90, 5), facts(90, 5), cores={"server": "0,2", "agent": "1"}, clients=1),
            "limited by the server's core (90 % busy)",
        ),
        (
            cell(BUSY, BUSY, disturbed=True),
            "limited by the server's core (98 % busy); other processes or the hypervisor took CPU time too, so a core may have been full",
        ),
        # One core for both.
        (cell(facts(60, 39), facts(60, 39), cores={"server": "0", "agent": "0"}), "limited by the shared core (99 % busy)"),
        # 1216 bytes × 10,000 a second fill 97 % of 100 Mb/s.
        (
            cell(IDLE | WIRE, IDLE | WIRE, conditions={"bandwidth": "100mbit"}),
            "limited by the link of 100 Mb/s (97 % used)",
        ),
        (cell(IDLE | DISK | WRITES, IDLE | DISK | WRITES), "limited by the disk (97 % busy)"),
        (
            cell(BUSY | DISK | WRITES, BUSY | DISK | WRITES),
            "limited by the server's core (98 % busy) and the disk (97 % busy)",
        ),
        # Others keep the disk busy; this server uses none.
        (cell(BUSY | DISK, BUSY | DISK), "limited by the server's core (98 % busy)"),
        # A quota keeps the cores from being full.
        (cell(IDLE | QUOTA, IDLE | QUOTA), "limited by the CPU quota (100 % used)"),
        # Disagreeing clocks don't give 103 %.
        (cell(facts(103, 50), facts(103, 50)), "limited by the server's core (100 % busy)"),
        # A server without measurements.
        (cell(facts(None, 95), facts(None, 95), cores={"server": "", "agent": "1"}), "limited by the client's core (95 % busy)"),
        (
            cell(facts(None, 95), facts(None, 95), engine="sqlite", embedded=True, cores={"server": "1", "agent": "1"}),
            "limited by the process's core (95 % busy)",
        ),
        # At a fixed rate the rate is the limit; a cell without numbers has none.
        (cell(BUSY, BUSY, regime="latency"), ""),
        (cell(BUSY, BUSY, status="failed"), ""),
        (cell(BUSY, {}), ""),
        (cell(BUSY, BUSY, mode="imported"), ""),
    ],
)  # fmt: skip
def test_the_limit_is_named(cell: Cell, words: str) -> None:
    assert bottleneck.line(cell) == words


def at_rest(plain: float | None, encrypted: float | None, layer: str = "rest") -> Cell:
    """A cell whose disk was so many per cent busy."""

    def arm(busy: float | None) -> dict[str, Any]:
        return IDLE | ({} if busy is None else {"host": {"disk_busy": {"mean": busy, "variance": 0.0, "cv": 0.0}}})

    return msgspec.structs.replace(cell(arm(plain), arm(encrypted)), layer=layer)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (at_rest(3.0, 4.0), True),
        (at_rest(84.0, 12.0), True),
        (at_rest(97.0, 97.0), False),
        # Where one arm's device was full, the cost is that of a device at its limit.
        (at_rest(70.0, 97.0), False),
        (at_rest(None, None), False),
        (at_rest(3.0, None), False),
        (at_rest(3.0, 4.0, "transit"), False),
    ],
)
def test_a_cell_at_rest_whose_disk_had_time_to_spare_says_that_a_full_one_may_cost_more(cell: Cell, said: bool) -> None:
    assert (bottleneck.UNSATURATED.format(bottleneck.BUSIER) in bottleneck.line(cell)) == said


def test_the_busiest_disk_counts_and_unknown_values_are_none() -> None:
    assert procfs.busiest((0, 100), (10, 700), 10**9) == pytest.approx(0.6)
    assert procfs.busiest((5,), (4,), 10**9) == 0.0
    assert procfs.busiest((0,), (2000,), 10**9) == 1.0
    assert procfs.busiest((), (), 10**9) is None
    assert procfs.busiest((1,), (1, 2), 10**9) is None


def test_the_sampler_records_how_busy_the_disks_were(tmp_path: Path) -> None:
    if not procfs.whole_disks():
        assert procfs.Sampler().end().disk_busy is None
        return
    sampler = procfs.Sampler()
    sampler.begin()
    with (tmp_path / "file").open("wb", buffering=0) as file:
        for _ in range(20):
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
    counters = sampler.end()
    sampler.close()
    assert counters.disk_busy is not None
    assert 0 <= counters.disk_busy <= 1


def test_a_slow_link_is_found_to_be_the_limit(tmp_path: Path, require_server: RequireServer) -> None:
    require_server("nginx")
    options = (
        "--bandwidth",
        "50mbit",
        "--quick",
        "--time",
        "6s",
        "--no-latency",
        "--no-progress",
        "--json",
        "out.json",
    )
    done = ciphercost("run", "nginx:tls", "--workload", "file", "--set", "size=100KB", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the link of 50 Mb/s (" in " ".join(done.stdout.split())
    assert all("disk_busy" in arm["host"] for arm in result_of(tmp_path)["cells"][0]["arms"].values())
