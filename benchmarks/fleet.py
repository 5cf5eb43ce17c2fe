"""What load from many agents costs the controller: slice, merge, record and report for 1, 2, 5, 10, 50 and 200 agents.

The agents are fake: objects in this process that answer at once, with histograms like real ones. What is timed is the
controller's own CPU time. Orders to real Ray actors are timed too, for as many as this machine has memory for. For each cost
a power law is fitted (log–log): n agents cost a·n^exponent. Prints what follows for 1,000 load machines and what breaks first,
and writes benchmarks/fleet.json.

    python benchmarks/fleet.py [--slices 1000] [--actors 20]
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

KEPT = Path(__file__).parent / "fleet.json"
AGENTS = (1, 2, 5, 10, 50, 200)
ACTORS = (1, 2, 5, 10, 20)
MANY = 1000
OPERATIONS = 1000
"""Of each agent in a slice: with 200 agents that are half a million in a second, all on one server."""
SLICE_S = 0.5
BAR_MEMORY_MB, BAR_MERGE_S = 1024.0, 10.0
NOTHING_S = 3e-6
ROUNDS = 30
"""Slices of which the median is a cost, other than those of the whole run."""


class Limit(NamedTuple):
    """From where on a cost is too high."""

    what: str
    cost: str
    most: float
    why: str


LIMITS = (
    Limit(
        "orders of a slice",
        "dispatch_s",
        0.125,
        "a slice begins at most 0.25 s after its orders are sent, twice what the slowest takes",
    ),
    Limit(
        "merging", "merge_s", 0.1 * SLICE_S, f"a tenth of a slice of {SLICE_S:g} s, during which nothing is measured"
    ),
    Limit(
        "a slice's other work",
        "slice_s",
        0.1 * SLICE_S,
        f"a tenth of a slice of {SLICE_S:g} s, during which nothing is measured",
    ),
    Limit("the clocks", "clocks_s", 0.75, "a twentieth of the 15 s after which they are measured again"),
    Limit("memory", "memory_mb", BAR_MEMORY_MB, "the bar for the controller"),
)


# ── fake agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def answers(count: int, seed: int = 1) -> list[Any]:
    """Answers of agents with realistic histograms: log-normal latencies around 0.5 ms, a few hundred cells."""
    from ciphercost.model.histogram import Histogram, Layout, encode
    from ciphercost.model.slices import AgentSlice

    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        latencies = random.lognormal(math.log(5e5), 0.5, OPERATIONS).astype(np.int64)
        octave = np.maximum(0, np.floor(np.log2(latencies)).astype(np.int64) - 10)
        cells, counts = np.unique((octave << 10) + (latencies >> octave), return_counts=True)
        text = encode(Histogram(Layout(0, 10), cells, counts.astype(np.int64)))
        found.append(
            AgentSlice(
                arm="plain", seconds=0.8 * SLICE_S, operations=OPERATIONS, errors=0, rows=OPERATIONS,
                checksum=f"{number + 1:016x}", cpu_user_ns=10**8, cpu_system_ns=10**8, bytes_sent=10**6, bytes_received=10**6,
                segments_sent=10**4, segments_received=10**4, connects=0, resumed=0, late=0, threads=1, histogram=text,
                work=float(OPERATIONS),
            )
        )  # fmt: skip
    return found


class FakeMember:
    """Answers at once; see `Remote`."""

    def __init__(self, number: int, answer: Any) -> None:
        self.name = f"10.0.{number // 256}.{number % 256}/{number:06x}"
        self._answer = answer

    def start(self, method: str, *arguments: Any) -> Any:
        from ciphercost.load.fleet.messages import SliceReport

        if method == "slice_at":
            order = arguments[0]
            window = order.at + order.discard * order.seconds
            return SliceReport(self._answer, 1.0, window + 1e-4, window, None)
        return {"clock": time.monotonic(), "end": ""}.get(method)


class FakeCluster:
    def collect(self, calls: Sequence[Any], timeout: float) -> list[Any]:  # noqa: ARG002
        return list(calls)

    def dismiss(self, remote: Any) -> None: ...


class NoAgent:
    """In place of the controller's own agent."""

    pid = 0

    def close(self) -> None: ...


def fleet_of(count: int, logs: Path) -> tuple[Any, Any]:
    """A fleet of fake members and its facts."""
    from ciphercost.load.fleet import fleet
    from ciphercost.load.fleet.agent_pool import AgentPool, Seat
    from ciphercost.load.fleet.messages import NodeDescription, Start
    from ciphercost.model.fleet import FleetFacts

    machine = {
        "cpu": "a CPU",
        "cores": 8,
        "aes": True,
        "kernel": "6.1",
        "agent": "0.1.0",
        "tls_library": "OpenSSL 3.5.0",
    }
    fleet.LEAST_LEAD = 0.0
    seats = [
        Seat(FakeMember(number, answer), NodeDescription("host", f"boot-{number}", "net", machine))
        for number, answer in enumerate(answers(count))
    ]
    facts = FleetFacts(agents=count, least=max(1, count - 1), nodes=fleet.described(seats, "here"))
    crew = AgentPool(FakeCluster(), seats, "here", 1, facts, lambda: None)
    made = fleet.Fleet(NoAgent(), crew, facts, Start(None, {}, ""), logs, lambda: None)  # type: ignore[arg-type]
    return made, facts


# ── costs with fake agents, in a process of its own ───────────────────────────────────────────────────────────────────────


def one(count: int, slices: int) -> dict[str, float]:
    """Costs with `count` agents: seconds of CPU for each slice, and what a whole run of `slices` takes."""
    from ciphercost.load.fleet import fleet as module
    from ciphercost.load.fleet.merge import merge
    from ciphercost.model.constrained_types import PLAN_FORMAT
    from ciphercost.model.facts import CellFacts, RunFacts
    from ciphercost.model.run_directory import Record
    from ciphercost.model.slices import Block, SliceRecord
    from ciphercost.model.spec import CellSpec, Spec
    from ciphercost.plan import registry_facts
    from ciphercost.plan.resolve import resolve
    from ciphercost.report.formats import terminal
    from ciphercost.runs import conclude

    with tempfile.TemporaryDirectory() as place:
        logs = Path(place)
        fleet, facts = fleet_of(count, logs)
        spec = Spec(
            [CellSpec("postgresql", "none", clients=count)],
            seed=1,
            mode="quick",
            sessions=1,
            cluster="auto",
            agents=count,
        )
        cell = msgspec.structs.replace(
            registry_facts.planned([resolve(each) for each in spec.cells])[0],
            clients=count,
            fleet=facts,
            slice_seconds=SLICE_S,
        )
        assert isinstance(cell, CellFacts)
        run = RunFacts(
            PLAN_FORMAT, "id", "2026-01-01T00:00:00Z", {}, {"cpu": "a CPU", "cores": 8, "aes": True}, 1, spec, [cell]
        )
        given = answers(count)
        record_s = 0.0
        merged_s: list[float] = []
        whole = time.process_time()
        (logs / "run").mkdir()
        with Record(logs / "run", run) as record:
            for number in range(slices):
                block, position = divmod(number, 5)
                arm = Block(block, "ABBA").arms[position]
                answer = fleet.slice("plain", 1e-6, discard=0.0, seed=number)
                if number < ROUNDS:
                    began = time.process_time()
                    merge(given)
                    merged_s.append(time.process_time() - began)
                began = time.process_time()
                answer = msgspec.structs.replace(answer, arm=arm)
                record.append(
                    SliceRecord(
                        0, 1, "capacity", block, "ABBA", position, arm, number * SLICE_S, SLICE_S, 0.0, answer,
                        start_skew=fleet.start_skew,
                    )
                )  # fmt: skip
                record_s += time.process_time() - began
            whole = time.process_time() - whole
            slice_s = []
            setattr(module, "merge", lambda given: given[0])  # noqa: B010 - the name is not the module's own
            for number in range(ROUNDS):
                began = time.process_time()
                fleet.slice("plain", 1e-6, discard=0.0, seed=number)
                slice_s.append(time.process_time() - began)
            began = time.process_time()
            fleet._crew._facts = facts
            for seat in fleet._crew.seats:
                seat.measured = float("-inf")
            fleet._crew.measure_clocks()
            clocks_s = time.process_time() - began
        began = time.process_time()
        text = terminal.render(conclude.result_of(logs / "run"))
        report_s = time.process_time() - began
        assert f"over {count} agents" in text, text
    merge_s = statistics.median(merged_s)
    return {
        "merge_s": merge_s,
        "slice_s": statistics.median(slice_s),
        "record_s": record_s / slices,
        "report_s": report_s,
        "clocks_s": clocks_s,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "merge_of_run_s": merge_s * slices,
        "run_s": whole,
    }


# ── real actors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def real(counts: Sequence[int]) -> dict[int, float]:
    """Seconds until orders to that many Ray actors have arrived: from before the first is sent until the last is there."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
    import ray_nodes

    if not ray_nodes.INSTALLED:
        return {}
    with ray_nodes.nodes(1) as cluster:
        program = [sys.executable, __file__, "--dispatch", cluster.address, *map(str, counts)]
        told = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        return {int(count): seconds for count, seconds in told.items()}


def dispatch(address: str, counts: Sequence[int]) -> dict[int, float]:
    import ray

    ray.init(address=address, log_to_driver=False, configure_logging=False)

    class Clock:
        def arrived(self, order: Any) -> float:  # noqa: ARG002
            return time.monotonic()

    made = ray.remote(num_cpus=0)(Clock)
    order = {"arm": "plain", "at": 1.0, "seconds": 0.5, "discard": 0.2, "seed": 2**52, "rate": 0.0, "operations": 0}
    actors: list[Any] = []
    found = {}
    for count in counts:
        actors += [made.remote() for _ in range(count - len(actors))]
        ray.get([each.arrived.remote(order) for each in actors])
        took = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            arrived = ray.get([each.arrived.remote(order) for each in actors])
            took.append(max(arrived) - began)
            time.sleep(0.05)
        found[count] = statistics.median(took)
    ray.shutdown()
    return found


# ── what follows ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def exponent(points: dict[int, float], least: int = 1) -> float:
    """The slope of log cost against log n, by least squares, for n of at least `least`.

    Costs below a microsecond are left out: a single agent's answer is not merged.
    """
    pairs = [(math.log(n), math.log(cost)) for n, cost in sorted(points.items()) if n >= least and cost > NOTHING_S]
    xs, ys = zip(*pairs, strict=True)
    return float(np.polyfit(xs, ys, 1)[0])


def at(points: dict[int, float], count: int) -> float:
    """The cost with `count` agents, by the power law of the three largest measured numbers, from the largest one on."""
    last = max(points)
    slope = exponent(points, sorted(points)[-3])
    return float(points[last] * (count / last) ** slope)


def breaks_at(points: dict[int, float], most: float) -> float:
    """The number of agents with which the cost reaches `most`; infinite if it does not grow."""
    last = max(points)
    slope = exponent(points, sorted(points)[-3])
    return float(last * (most / points[last]) ** (1 / slope)) if slope > 0.02 else math.inf


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=1000)
    parser.add_argument("--actors", type=int, default=max(ACTORS))
    parser.add_argument("--one", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--dispatch", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.one:
        print(json.dumps(one(given.one, given.slices)))
        return 0
    if given.dispatch:
        print(json.dumps(dispatch(given.dispatch[0], [int(each) for each in given.dispatch[1:]])))
        return 0
    costs: dict[str, dict[int, float]] = {}
    for count in AGENTS:
        program = [sys.executable, __file__, "--one", str(count), "--slices", str(given.slices)]
        found = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        for name, value in found.items():
            costs.setdefault(name, {})[count] = value
        print(f"{count:>4} agents: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()), flush=True)
    if actors := real([each for each in ACTORS if each <= given.actors]):
        costs["dispatch_s"] = actors
        print("orders to Ray actors: " + ", ".join(f"{n}: {1e3 * s:.2f} ms" for n, s in actors.items()))
    exponents = {name: exponent(points) for name, points in costs.items()}
    tails = {name: exponent(points, sorted(points)[-3]) for name, points in costs.items()}
    print(f"\n{'cost':<16}{'exponent':>10}{'at the end':>12}{f'with {MANY:,}':>14}")
    for name, points in costs.items():
        print(f"{name:<16}{exponents[name]:>10.2f}{tails[name]:>12.2f}{at(points, MANY):>14.4g}")
    broken = sorted((breaks_at(costs[each.cost], each.most), each) for each in LIMITS if each.cost in costs)
    print()
    for reached, limit in broken:
        many = "never" if math.isinf(reached) else f"with about {reached:,.0f} agents"
        print(f"{limit.what}: too much {many} ({limit.cost} above {limit.most:g}: {limit.why})")
    print(f"breaks first: {broken[0][1].what}")
    largest = max(AGENTS)
    passed = costs["memory_mb"][largest] <= BAR_MEMORY_MB and costs["merge_of_run_s"][largest] <= BAR_MERGE_S
    print(
        f"\n{largest} agents × {given.slices:,} slices: {costs['memory_mb'][largest]:.0f} MB (bar {BAR_MEMORY_MB:.0f}), merging "
        f"{costs['merge_of_run_s'][largest]:.1f} s of CPU (bar {BAR_MERGE_S:.0f}): {'within' if passed else 'ABOVE'} the bars"
    )
    KEPT.write_text(
        json.dumps(
            {
                "slices": given.slices,
                "operations_of_an_agent": OPERATIONS,
                "costs": {name: {str(n): value for n, value in points.items()} for name, points in costs.items()},
                "exponents": exponents,
                "exponents_at_the_end": tails,
                f"with_{MANY}": {name: at(points, MANY) for name, points in costs.items()},
                "breaks": [
                    {"what": limit.what, "agents": None if math.isinf(reached) else round(reached), "why": limit.why}
                    for reached, limit in broken
                ],
                "passed": passed,
            },
            indent=1,
        )
        + "\n"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
