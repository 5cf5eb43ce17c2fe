"""A user's own server that drops, or stalls, its encrypted connections alone: the run says so first, and nothing passes it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

import steady
from ciphercost import engines
from ciphercost.estimate import failures, plausible
from ciphercost.model.result import Failures
from conftest import Require
from faulty_relay import relayed
from test_real import ciphercost, result_of
from userservers import UserServer, user_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Iterator[UserServer]:
    require(list(engines.get("postgresql").available()), "no postgresql here: `ciphercost install postgresql`")
    with user_server("postgresql", tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def measuring(tmp_path: Path) -> Iterator[Path]:
    """A file that exists once the run in this directory counts slices: what fails before that ends the run."""
    trigger, over = tmp_path / "measuring", Event()

    def look() -> None:
        while not over.wait(0.02):
            slices = list(tmp_path.glob("runs/*/slices.jsonl"))
            with contextlib.suppress(FileNotFoundError):  # a run without a steady state is removed, and tried again
                if trigger.exists() and not slices:
                    trigger.unlink()
                elif not trigger.exists() and any('"phase":"capacity"' in path.read_text() for path in slices):
                    trigger.touch()

    watching = Thread(target=look, daemon=True)
    watching.start()
    yield trigger
    over.set()
    watching.join()


def measured(
    tmp_path: Path, server: UserServer, port: int, *argv: str, slice_seconds: float = 0.0
) -> tuple[str, dict[str, Any]]:
    """What a run against the server behind this port prints, and its cell. `slice_seconds`: 0: as long as the run finds right."""
    url = server.url_for(str(server.fields.user), port)
    argv = (
        "run",
        "postgresql:tls",
        "--url",
        url,
        *server.by_ca,
        "--quick",
        *argv,
    )
    if slice_seconds:
        printed = ciphercost(*argv, "--print-spec", cwd=tmp_path, **server.environment).stdout
        spec = tmp_path / "spec.toml"
        spec.write_text(printed.replace("\ntime = ", f"\nslice_seconds = {slice_seconds}\ntime = ", 1))
        assert "slice_seconds" in spec.read_text()
        argv = ("run", spec.name)
    done = ciphercost(*argv, "--no-progress", "--json", "out.json", cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    return done.stdout, cell


def test_an_encrypted_arm_that_loses_connections_is_neither_equivalent_nor_within_a_budget(
    tmp_path: Path, server: UserServer, measuring: Path
) -> None:
    # Many short blocks: on a busy machine they last longer, and one without a drop counts.
    argv = ("--time", "14s", "--clients", "1", "--no-latency")
    with relayed(server.fields.port, measuring, drop=1.5) as port:
        for _ in range(steady.TRIES):  # on a busy machine there are fewer drops, and then they may be chance
            shutil.rmtree(tmp_path / "runs", ignore_errors=True)
            printed, cell = measured(tmp_path, server, port, *argv, slice_seconds=0.05)
            of = cell["failures"]
            if failures.slices_differ(msgspec.convert(of, Failures)):
                break
    assert measuring.exists()
    assert of["encrypted"] >= 5
    assert of["plain"] == 0
    assert cell["verdict"] != "equivalent"
    words = " ".join(printed.split())
    assert "THE ENCRYPTED ARM FAILS MORE OFTEN" in words.partition("postgresql 1")[0], "before any cost"
    text = next(warning["text"] for warning in cell["warnings"] if warning["code"] == "failed-slices")
    assert failures.counted(msgspec.convert(of, Failures)) in text
    gate = ciphercost(
        "compare", str(next((tmp_path / "runs").iterdir())), "--fail-over", "90%", "--strict", cwd=tmp_path
    )
    assert gate.returncode == 4, gate.stdout + gate.stderr
    # On a busy machine the encrypted arm may seem to be faster, and a gate has one reason.
    if plausible.FASTER not in {warning["code"] for warning in cell["warnings"]}:
        assert "failures may change the answer" in " ".join(gate.stdout.split())


def test_an_encrypted_arm_that_stalls_gets_no_cost_in_rate(tmp_path: Path, server: UserServer, measuring: Path) -> None:
    """It stands still for 200 ms every second: p90 ≤ 20 ms holds in most blocks, and of all requests it does not."""
    with relayed(server.fields.port, measuring, stall=0.2, every=1.0) as port:
        printed, cell = measured(tmp_path, server, port, "--time", "15s", "--clients", "4", "--objective", "p90=20ms")
    assert measuring.exists()
    # If the typical block has stalls too, their cost is known; nothing may say that there is none.
    if (cost := cell["overhead"].get("rate_at_objective")) is not None:
        assert cost["high"] < 1
    else:
        assert cell["objective"]["reason"]
        assert "p90=20ms no cost in rate" in " ".join(printed.split())
