"""The noise floor of every metric, and how long a run must be for 1 %."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec

import results
from ciphercost.estimate import student_t
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.spec import Spec
from ciphercost.report import calibration
from test_real import ciphercost


def control(half: float, **more: object) -> Cell:
    """A cell of two plain arms with a log ratio known to ± `half`."""
    estimate = Estimate(1.0, math.exp(-half), math.exp(half), n=8, p_value=more.pop("p_value", 0.6))  # type: ignore[arg-type]
    known = {"layer": "control", "verdict": "unresolved", "overhead": {"throughput": estimate}, "proofs": []}
    return results.cell("null", "none", **known | more)


def calibration_text(cell: Cell, seconds: float = 45.0) -> str:
    result = results.result(cell)
    spec = msgspec.structs.replace(result.spec or Spec([]), time=seconds)
    return calibration.text(msgspec.structs.replace(result, spec=spec))


def test_the_noise_floor_is_the_half_width_of_the_interval() -> None:
    text = calibration_text(control(math.log(1.012)))
    assert calibration.share(calibration.floor(control(math.log(1.012)).overhead["throughput"])) == "1.2 %"
    assert re.search(r"operations per second +1\.2 %", text)
    assert "unresolved" not in text


def test_a_floor_of_a_doubling_or_more_is_a_factor() -> None:
    assert re.search(r"operations per second +2\.2 times ", calibration_text(control(math.log(2.2))))


def test_how_long_a_run_must_be_for_one_percent_is_the_length_at_which_its_interval_is_one_percent() -> None:
    half = 0.03
    match = re.search(r"1 % needs about --sessions (\d+) --time (\d+)s", calibration_text(control(half)))
    assert match is not None
    needed = int(match[1])
    spread = half * math.sqrt(8) / student_t.quantile(0.975, 7)
    assert student_t.quantile(0.975, needed - 1) * spread / math.sqrt(needed) <= math.log(1.01)
    assert student_t.quantile(0.975, needed - 2) * spread / math.sqrt(needed - 1) > math.log(1.01)
    assert int(match[2]) == math.ceil(45 / 8 * needed)
    assert "can detect 1 %" in calibration_text(control(0.009))


def test_one_session_states_what_its_floor_excludes() -> None:
    quick = control(0.02, mode="quick", sessions=1, blocks=20)
    text = " ".join(calibration_text(quick, 20).split())
    needed = math.ceil(20 * (0.02 / math.log(1.01)) ** 2)
    assert f"--time {needed}s" in calibration.longer(quick.overhead["throughput"], quick, 20)
    assert calibration.longer(quick.overhead["throughput"], quick, 20) in text
    assert "does not include the scatter between restarts" in text


def test_equal_arms_that_differ_are_a_warning() -> None:
    assert "the two equal arms differ" in " ".join(calibration_text(control(0.02, p_value=0.01)).split())


def test_the_command_prints_a_floor_and_no_verdict(tmp_path: Path) -> None:
    done = ciphercost(
        "calibrate", "null", "--quick", "--time", "4s", "--no-progress", "-o", "run", "--json", "out.json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "noise floor" in done.stdout
    assert "unresolved" not in done.stdout
    assert re.search(r"operations per second +([\d.]+ times|(under )?[\d.]+ %)", done.stdout), done.stdout
    assert (tmp_path / "out.json").is_file()
