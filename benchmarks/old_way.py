"""A/A on PostgreSQL for 20 s, 20 times: one arm after the other and two means, compared with blocks in equal time.

Both use the same server in the same minute, in random order. The true ratio is 1, so the root mean square of the log ratios is the error.
"""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path

import numpy as np

from ciphercost.host import supervisor
from ciphercost.load.agent import Agent
from ciphercost.measure import experiment
from ciphercost.model import run_directory
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule
from ciphercost.plan.resolve import resolve
from ciphercost.provision import server_pairs
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.runs import pipeline
from run import Row

REPEATS = 20
SECONDS = 20.0
AIM = 5.0


def rows() -> list[Row]:
    ours, theirs = [], []
    cell = CellSpec("postgresql", "none", regime="one-core")
    coin = random.Random(5)
    with tempfile.TemporaryDirectory() as place:
        for repeat in range(REPEATS):
            for who in coin.sample(["ours", "theirs"], 2):
                if who == "ours":
                    spec = Spec(cells=[cell], seed=repeat + 1, mode="quick", sessions=1, time=SECONDS, latency=False)
                    found = pipeline.run(spec, Path(place) / f"ours-{repeat}").cells[0]
                    assert found.status == "ok", found.reason
                    ours.append(math.log(found.overhead["throughput"].ratio))
                else:
                    theirs.append(one_after_the_other(cell, Path(place)))
            print(f"  {repeat + 1}: ours {ours[-1]:+.3%}, one after the other {theirs[-1]:+.3%}", flush=True)
    errors = {
        name: math.sqrt(float(np.mean(np.square(values)))) for name, values in (("ours", ours), ("theirs", theirs))
    }
    print(f"  root-mean-square error: ours {errors['ours']:.3%}, one after the other {errors['theirs']:.3%}")
    # F distribution: the ratio of two independent mean squares with REPEATS degrees of freedom each.
    from scipy.special import fdtri

    ratio = errors["theirs"] / errors["ours"]
    low, high = (ratio / math.sqrt(fdtri(REPEATS, REPEATS, q)) for q in (0.975, 0.025))
    name = f"error of one arm after the other ÷ ours, A/A, {SECONDS:g} s"
    return [{"bench": "old_way", "row": name, "ratio": ratio, "low": low, "high": high, "aim": AIM}]


def one_after_the_other(cell: CellSpec, place: Path) -> float:
    """Log ratio of two runs of half the time each; the first second of each is a discarded warm-up."""
    run_id = run_directory.new_id()
    (place / "logs").mkdir(exist_ok=True)
    with supervisor.Supervisor(run_id) as run_supervisor:
        scratch = supervisor.scratch(run_id, run_supervisor)
        shared = ExperimentResources(scratch / "secrets" / "group-0")
        cores = {schedule.cores(0, 1, experiment.available_cpus(), "one-core")[0][0]}
        with (
            server_pairs.bench(resolve(cell), run_supervisor, scratch, place / "logs", 0, shared) as bench,
            shared.session(),
            experiment.off_measured_cores(cores),
            Agent(cpus=cores) as agent,
        ):
            pair = server_pairs.start(bench, 1, cores, cores)
            agent.program(bench.program)
            rates = []
            for arm, fields in pair.connect.items():
                agent.connect(arm, fields)
                agent.slice(arm, 1.0, discard=0.0)
                answer = agent.slice(arm, SECONDS / 2 - 1.0, discard=0.0)
                rates.append(answer.operations / answer.seconds)
    return math.log(rates[1] / rates[0])
