"""A log is predicted from a real run, replayed on the real server, and both are set side by side."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import steady
import warm
from ciphercost.model import run_directory
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import matrix
from ciphercost.runs import pipeline
from conftest import RequireServer

SIZES = (300, 2000, 8000, 20_000, 90_000)
PER_CONNECTION = 4
REQUESTS = 4000


def log(path: Path) -> Path:
    """Each client sends four requests a second apart, and comes once: 3,600 requests in the first hour, the others in the second."""
    lines = []
    for place in range(REQUESTS):
        client, at = divmod(place, PER_CONNECTION)
        size = SIZES[place % len(SIZES)]
        time = f"{place // 3600:02}:{place % 3600 // 60:02}:{place % 60:02}"
        lines.append(
            f"198.{client >> 8}.51.{client & 255} - - [01/Jul/1995:{time} +0000] "
            f'"GET /{at} HTTP/1.1" 200 {size} "-" "-"\n'
        )
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, require_server: RequireServer) -> Path:
    """A directory with a log, the workload made of it, and the runs `split` and `replay`."""
    require_server("nginx", "1.26")
    place = tmp_path_factory.mktemp("measured")
    made = warm.run(["workload", log(place / "access.log"), "-o", "mine.toml"], cwd=place)
    assert made.returncode == 0, made.stderr
    nginx = CellSpec("nginx", "tls", version="1.26")
    replay = CellSpec("nginx", "tls", version="1.26", workload=str(place / "mine.toml"))
    for name, cells in (("split", matrix.split(nginx)), ("replay", [replay])):
        spec = Spec(cells, mode="quick", sessions=1, time=1.0, latency=False, slice_seconds=0.05)
        result, directory = steady.measured(partial(pipeline.run, spec), place / f"{name}-runs")
        assert [(cell.status, cell.reason) for cell in result.cells] == [("ok", "")] * len(cells)
        (place / name).symlink_to(directory)
    return place


def predicted(measured: Path, *argv: str) -> dict[str, Any]:
    done = warm.run(["predict", *argv, "--from", "split", "--format", "json"], cwd=measured)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_a_log_has_the_prediction_of_its_own_counts(measured: Path) -> None:
    answer = predicted(measured, "access.log")
    counts = answer["whole"]["counts"]
    assert (counts["operations"], counts["connections"]) == (REQUESTS, REQUESTS / PER_CONNECTION)
    assert counts["bytes"] == REQUESTS / len(SIZES) * sum(SIZES)
    assert [hour["counts"]["operations"] for hour in answer["hours"]] == [3600, 400]
    assert answer["busiest"] == 0, "400 s are less than ten minutes"
    assert answer["plain_from"] == "run"
    assert answer["whole"]["cpu_seconds"]["value"] > 0


def test_the_workload_file_of_a_log_gives_the_same_prediction(measured: Path) -> None:
    of_log, of_file = (predicted(measured, name) for name in ("access.log", "mine.toml"))
    assert of_file["hours"] == of_log["hours"]
    assert of_file["whole"] == of_log["whole"]


def test_a_measured_replay_stands_beside_the_prediction(measured: Path) -> None:
    """A run of a second on a busy machine does not tell how well they agree."""
    answer = predicted(measured, "mine.toml", "--against", "replay")
    (replayed,) = answer["replays"]
    assert replayed["log_connections"] == pytest.approx(1 / PER_CONNECTION)
    (cell,) = json.loads((measured / "replay" / "result.json").read_text())["cells"]
    arm = cell["arms"]["plain"]
    assert replayed["replay_connections"] == pytest.approx(arm["connects"] / arm["operations"])
    assert replayed["replay_bytes"] == pytest.approx(arm["wire_bytes_per_op"])
    for one in run_directory.read_slices(measured / "replay"):
        if one.agent and one.position > 0:
            # At both ends of a slice, each client has begun a connection's requests.
            assert abs(one.agent.connects - one.agent.operations / PER_CONNECTION) <= 2 * cell["clients"]
    halves = [(replayed[name]["high"] - replayed[name]["low"]) / 2 for name in ("measured_us", "predicted_us")]
    apart = abs(replayed["measured_us"]["value"] - replayed["predicted_us"]["value"])
    assert replayed["agree"] == (apart <= math.hypot(*halves))


def test_the_answer_in_words(measured: Path) -> None:
    argv = ["predict", "mine.toml", "--from", "split", "--against", "replay", "--cpu", "300us", "--cores", "4"]
    done = warm.run(argv, cwd=measured)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert text.startswith("4 cores at ")
    assert "measured" in text
    assert "predicted from the log" in text
    assert "agree" in text
    markdown = warm.run([*argv, "--format", "md"], cwd=measured)
    assert markdown.stdout.startswith("### 4 cores at ")
