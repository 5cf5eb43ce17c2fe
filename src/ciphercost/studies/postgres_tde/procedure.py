"""Run the study as published: `pgbench -i -s N`, then `pgbench -c 50 -j 50 -P 1 -T 600`, on one server and then on the other. I/O.

A size that pgbench can't create is cut from the next larger one; pgbench then runs its own statements from a file that draws from the remaining rows.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ciphercost.host.run_ownership import hand_over
from ciphercost.measure.pause import Pause
from ciphercost.model.study import StudyRun
from ciphercost.studies import Stage, pgbench, pgbench_runs, tde_pairs
from ciphercost.studies.postgres_tde import grid

SCRIPTS = {
    grid.TPCB: """\\set aid random(1, {rows})
\\set bid random(1, {scale})
\\set tid random(1, 10 * {scale})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
""",
    grid.SELECT: "\\set aid random(1, {rows})\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
}
"""The TPC-B-like and the SELECT-only transaction of pgbench's documentation, on this many accounts."""


def run(stage: Stage) -> None:
    """Run every size under every load on the first arm, then on the second. Raises RunError, MissingServer."""
    program, stage.record.tools["pgbench"] = pgbench_runs.find(stage.bench.installation)
    stage.record.versions[pgbench_runs.pair_of(stage)] = stage.bench.installation.version
    wanted = grid.of_record(stage.record)
    began = time.monotonic()
    # As published, one server was up at a time: the other one is paused.
    with contextlib.closing(Pause(stage.pair.by_arm)) as pause:
        for arm in stage.record.arms:
            pause.only(arm)  # type: ignore[arg-type]
            for rows in dict.fromkeys(point.rows for point in wanted):
                same_size = [point for point in wanted if point.rows == rows]
                load(stage, program, arm, same_size[0])
                for point in same_size:
                    stage.keep(one(stage, program, arm, point, time.monotonic() - began))


def load(stage: Stage, program: Path, arm: str, point: grid.Point) -> None:
    """Let pgbench recreate its own tables."""
    pgbench_runs.load(stage, program, arm, point.scale, f"load-{point.rows}")
    if point.cut:
        seconds = pgbench_runs.load_limit(point.scale)
        pgbench_runs.query(stage, arm, f"DELETE FROM pgbench_accounts WHERE aid > {point.rows}", seconds)
        pgbench_runs.query(stage, arm, "VACUUM (FULL, ANALYZE) pgbench_accounts", seconds)


def one(stage: Stage, program: Path, arm: str, point: grid.Point, started: float) -> StudyRun:
    """Run pgbench once on one arm."""
    name, length = pgbench_runs.pair_of(stage), stage.record.settings["duration_s"]
    under = ["-c", f"{point.clients}", "-j", f"{point.clients}", "-P", "1", "-T", f"{length:.0f}"]
    file = [str(_script(stage, point))] if point.cut else []
    under += ["-f"] if point.cut else ["-S"] if point.operation == grid.SELECT else []
    shown = " ".join([*under, *(["FILE"] if file else [])])
    stage.say(f"as published: {name}, {arm}, {point.rows:,} rows: pgbench {shown}")
    asked, before = pgbench_runs.ask(stage, arm), pgbench_runs.checkpoints(stage, arm)
    what = f"{point.operation}-{point.rows}-{point.clients}"
    report = pgbench.parse(pgbench_runs.run(stage, program, arm, what, under + file, length + pgbench_runs.END_SECONDS))
    series = pgbench_runs.series(report) | {"checkpoints": [pgbench_runs.checkpoints(stage, arm) - before]}
    cell = stage.bench.cell
    given = stage.record.settings | point.load | asked | tde_pairs.asked_bits(cell.mechanism, cell.factors)
    return StudyRun(
        point.operation, arm, round(started, 3), given, series, mechanism=cell.mechanism, server=cell.variant
    )


def _script(stage: Stage, point: grid.Point) -> Path:
    """pgbench's transaction on the existing rows, in a file that the servers' user can read."""
    path = stage.bench.directory / f"pgbench-{point.operation}-{point.rows}.sql"
    path.write_text(SCRIPTS[point.operation].format(rows=point.rows, scale=point.scale))
    hand_over(path)
    return path
