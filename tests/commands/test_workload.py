"""`ciphercost workload`: what its options refuse, and that nothing is written then."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost.load import workload_file
from test_real import ciphercost

SAMPLE = Path(__file__).parents[1] / "importers" / "log_samples" / "apache_combined.log"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("none.log",), "none.log: can't be read"),
        ((str(SAMPLE), "-o", "mine.txt"), "must end with .toml"),
        ((str(SAMPLE), "--speed", "0"), "--speed 0: must be above 0"),
        ((str(SAMPLE), "--keep-alive", "soon"), "--keep-alive: 'soon' is not a duration"),
        ((str(SAMPLE), "--writes"), "--writes is for logs of databases"),
        ((str(SAMPLE), "--format", "haproxi"), "unknown log format 'haproxi': did you mean 'haproxy'"),
        ((str(SAMPLE), "--format", "haproxy"), "has the format haproxy"),
        ((str(SAMPLE), "-o", "no/such/mine.toml"), "can't write no/such/mine.toml"),
        ((str(SAMPLE), str(SAMPLE)), "is the same file"),
    ],
)
def test_what_can_not_be_done_is_refused_in_one_message(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    done = ciphercost("workload", *argv, cwd=tmp_path)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_faster_replay_has_a_higher_rate(tmp_path: Path) -> None:
    for speed, name in (("1", "one.toml"), ("3", "three.toml")):
        done = ciphercost("workload", str(SAMPLE), "--speed", speed, "-o", name, "--no-progress", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    rates = [
        float(line.partition("=")[2])
        for name in ("one.toml", "three.toml")
        for line in (tmp_path / name).read_text().splitlines()
        if line.startswith("rate = ")
    ]
    assert rates[1] == pytest.approx(3 * rates[0], rel=0.02)
    one, three = (workload_file.read(tmp_path / name) for name in ("one.toml", "three.toml"))
    assert one.arrivals == "logged"
    assert one.arrived == three.arrived, "the log's time passes faster; what came when stays the same"
    assert one.arrived is not None
    assert one.arrived.rate == pytest.approx(one.rate, abs=1e-3)


def test_a_slow_logs_rate_is_not_rounded_before_it_is_multiplied(tmp_path: Path) -> None:
    log = tmp_path / "postgresql.log"
    log.write_text(
        "".join(f"2026-01-01 10:{minute}:00.500 UTC [7] LOG:  statement: SELECT 1\n" for minute in ("00", "50"))
    )
    done = ciphercost("workload", str(log), "--speed", "1000", "-o", "mine.toml", "--no-progress", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert workload_file.read(tmp_path / "mine.toml").rate == pytest.approx(1000 * 2 / 3000, abs=1e-3)
