"""`trend`'s change points beside Apache Otava's, on the 17 series with known answers of `otava-test-data`: precision and recall, as one table.

    python benchmarks/change_points.py OTAVA_PYTHON [SEEDS] [LENGTH]

OTAVA_PYTHON is the Python of an environment with `pip install apache-otava otava-test-data`, which makes the series and Otava's answers
at two settings: its own (window 50, p 0.001), and those of the visualizer in `otava-test-data` (window 30, p 0.05). Each series has the
visualizer's parameters, LENGTH values [default: 200, as there], and SEEDS seeds from 42 on [default: 1, as there].

A detection is right if it lies within 5 values of a change that no other detection claimed, as `otava-test-data` counts; its single outliers
are no changes there. Changes of variance or phase leave the level as it was: `of level` counts them neither as found nor as missed.

`trend` has one value of each run and nothing about its own error here, so only the runs' scatter counts.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ciphercost.estimate import correlated_runs, history
from ciphercost.estimate.statistics import ALPHA

TOLERANCE = 5
"""Values by which a detection may miss its change."""
MARGIN = math.log1p(0.01)
"""The smallest change that counts, as in `trend`."""
OF_LEVEL = {"step", "regression_start", "regression_end"}
WHO = ("trend", "otava", "otava (0.05)")
OTAVAS = """
import contextlib, io, json, sys
import numpy as np
from otava.analysis import compute_change_points
from otava_test_data.generators import advanced, basic
clean = {"sigma": 0.0}
SERIES = {
    "constant": (basic.constant, {}), "noise_normal": (basic.noise_normal, {"mean": 100.0, "sigma": 5.0}),
    "noise_uniform": (basic.noise_uniform, {}), "outlier": (basic.outlier, {"sigma": 5.0}),
    "step_function": (basic.step_function, {"sigma": 5.0}),
    "regression_fix": (basic.regression_fix, {"regression_duration": 20, "sigma": 5.0}),
    "banding": (advanced.banding, {"sigma": 2.0}), "variance_change": (advanced.variance_change, {}),
    "phase_change": (advanced.phase_change, {"sigma": 2.0}), "multiple_changes": (advanced.multiple_changes, {"sigma": 5.0}),
    "multiple_outliers": (advanced.multiple_outliers, {"n_outliers": 5, "sigma": 5.0}),
    "multiple_variance_changes": (advanced.multiple_variance_changes, {}),
    "step_function_clean": (basic.step_function, clean), "multiple_changes_clean": (advanced.multiple_changes, clean),
    "regression_fix_clean": (basic.regression_fix, {"regression_duration": 20, **clean}),
    "banding_clean": (advanced.banding, {"value2": 110.0, **clean}), "outlier_clean": (basic.outlier, clean),
}
found = []
for seed in range(42, 42 + int(sys.argv[1])):
    for name, (make, given) in SERIES.items():
        series = make(length=int(sys.argv[2]), seed=seed, **given)
        of = {"name": name, "values": series.data.tolist(), "changes": [[int(c.index), c.change_type] for c in series.change_points]}
        for settings, (window, p_value) in {"own": (50, 0.001), "data": (30, 0.05)}.items():
            with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
                answer = compute_change_points(series.data.tolist(), window_len=window, max_pvalue=p_value, min_magnitude=0.0)
            of[settings] = [int(point.index) for point in answer[0]]
        found.append(of)
print(json.dumps(found))
"""


class Score(NamedTuple):
    """Detections that are right, all detections, and all changes."""

    right: int = 0
    detected: int = 0
    changes: int = 0

    def plus(self, other: Score) -> Score:
        return Score(*(a + b for a, b in zip(self, other, strict=True)))

    def text(self) -> str:
        return f"{_share(self.right, self.detected)} {_share(self.right, self.changes)}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:>9.3f}" if whole else f"{'–':>9}"


def score(detected: Iterable[int], changes: Sequence[int], ignored: Sequence[int] = ()) -> Score:
    """Match each detection with the first unclaimed change near it. Detections near `ignored` changes don't count."""
    claimed: set[int] = set()
    right = counted = 0
    for at in sorted(detected):
        near = next((change for change in changes if change not in claimed and abs(at - change) <= TOLERANCE), None)
        if near is None and any(abs(at - change) <= TOLERANCE for change in ignored):
            continue
        counted += 1
        if near is not None:
            claimed.add(near)
            right += 1
    return Score(right, counted, len(changes))


def ours(values: Sequence[float]) -> list[int]:
    """The changes that `trend` would report of one cell whose runs have these costs."""
    series = history.Series(np.log(np.array(values)), np.zeros(len(values)), np.full(len(values), 1e6))
    whole = history.one_level(series)
    if whole.p_value >= ALPHA:
        return []
    levels = history.certain(series, history.changes(series, whole), MARGIN)
    if len(levels.edges) > 2 and correlated_runs.test(series, levels.edges).p_value >= ALPHA:
        return []
    return levels.edges[1:-1]


def main(python: str, seeds: int = 1, length: int = 200) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    answer = subprocess.run(
        [python, "-c", OTAVAS, str(seeds), str(length)], check=False, capture_output=True, text=True, env=environment
    )
    if answer.returncode:
        sys.exit(f"{python} can't run Otava:\n{answer.stderr}")
    by_name: dict[str, dict[str, Score]] = {}
    for series in json.loads(answer.stdout):
        level = [at for at, kind in series["changes"] if kind in OF_LEVEL]
        other = [at for at, kind in series["changes"] if kind not in OF_LEVEL | {"outlier"}]
        answers = {"trend": ours(series["values"]), "otava": series["own"], "otava (0.05)": series["data"]}
        for who, found in answers.items():
            for what, scored in (("all", score(found, sorted(level + other))), ("level", score(found, level, other))):
                kept = by_name.setdefault(series["name"], {})
                key = f"{who} {what}"
                kept[key] = kept.get(key, Score()).plus(scored)
    print(table(by_name, f"{seeds} seeds, {length} values each"))


def table(by_name: dict[str, dict[str, Score]], which: str) -> str:
    """One row for each series: changes, detections right and wrong of both, then precision and recall over all of them."""
    heads = "".join(f"{who + ': right':>20} {'wrong':>5}" for who in WHO)
    lines = [f"{'series':<28} {'changes':>7}{heads}"]
    for name, scores in by_name.items():
        every = [scores[f"{who} all"] for who in WHO]
        columns = "".join(f"{own.right:>20} {own.detected - own.right:>5}" for own in every)
        lines.append(f"{name:<28} {every[0].changes:>7}{columns}")
    lines += ["", f"{which:<34} {'precision':>9} {'recall':>9}"]
    for what, words in (("all", "all changes"), ("level", "changes of level")):
        for who in WHO:
            total = Score()
            for scores in by_name.values():
                total = total.plus(scores[f"{who} {what}"])
            lines.append(f"{who + ', ' + words:<34} {total.text()}")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
