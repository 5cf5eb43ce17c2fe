"""Warnings about what imported runs can't show. Pure."""

from __future__ import annotations

from typing import Literal

from ciphercost.estimate.imported_copies import printed
from ciphercost.estimate.imported_costs import compared
from ciphercost.estimate.statistics import Interval
from ciphercost.model.imported import Reading
from ciphercost.model.result import Cell, ImportedCost, Warning_
from ciphercost.model.shares import in_percent
from ciphercost.model.spec import ARMS, Arm

LEAST_FALL = 1.25
"""A run is steady if last third ÷ first third is at most this, and at least its inverse."""
UNEQUAL = 0.2
"""Relative difference above which the lengths of the arms' runs differ."""
ALIKE = 0.002
"""Throughput looks like a set rate if its spread, and its distance from a round number, are below this share."""
Order = Literal["unknown", "plain first", "encrypted first", "by turns"]
UNSAID = {
    "pgbench": "pgbench does not report whether its connections were encrypted; by default (sslmode=prefer) it uses TLS wherever the "
    "server offers it, in the plain arm too",
    "mysqlslap": "mysqlslap does not report whether its connections were encrypted; MySQL's uses TLS by default (--ssl-mode=PREFERRED) "
    "wherever the server offers it, in the plain arm too",
    "sysbench": "sysbench does not report whether its connections were encrypted; with PostgreSQL it uses TLS wherever the server "
    "offers it (sslmode=prefer), with MySQL only with --mysql-ssl",
    "wrk": "wrk does not report what was negotiated, checks no certificate, and resumes TLS sessions silently",
    "h2load": "h2load reports the TLS version it used but checks no certificate; no server report or packet capture confirms it",
    "ab": "ab reports the TLS version it used but checks no certificate; no server report or packet capture confirms it",
    "redis-benchmark": "redis-benchmark does not report whether its connections were encrypted; they are only with --tls",
    "memtier_benchmark": "memtier_benchmark does not report whether its connections were encrypted; they are only with --tls",
    "kafka-producer-perf-test": "kafka-producer-perf-test does not report whether its connections were encrypted; they are only with "
    "security.protocol=SSL or SASL_SSL",
    "kafka-consumer-perf-test": "kafka-consumer-perf-test does not report whether its connections were encrypted; they are only with "
    "security.protocol=SSL or SASL_SSL",
    "rabbitmq-perf-test": "PerfTest does not report whether its connections were encrypted; they are only with amqps://, and it checks no "
    "certificate without --use-default-ssl-context",
    "nats": "nats bench does not report whether its connections were encrypted; they are with tls:// or --tlsca, and wherever the server "
    "requires it",
    "etcd-benchmark": "etcd's benchmark does not report whether its connections were encrypted; they are only with https:// or --cacert",
    "hey": "hey prints neither its address nor what was negotiated, and checks no certificate",
    "oha": "oha prints neither its address nor what was negotiated",
    "k6": "k6 does not report its address or what was negotiated; its request times leave out connections and handshakes",
    "vegeta": "vegeta prints neither its address nor what was negotiated",
    "fortio": "fortio does not report what was negotiated; no server report or packet capture confirms its address",
    "siege": "siege does not report what was negotiated, and checks no certificate by default",
    "autocannon": "autocannon does not report what was negotiated, and checks no certificate",
    "jmeter": "JMeter does not report what was negotiated; by default it accepts every certificate",
    "locust": "Locust does not report what was negotiated; users that wait between requests set the rate themselves",
    "gatling": "Gatling does not report what was negotiated, and an injection profile may have set the rate; by default it accepts every "
    "certificate",
    "go-tpc": "go-tpc does not report whether its connections were encrypted; they are only with the driver's own parameters (--conn-params)",
    "hammerdb": "HammerDB does not report whether its connections were encrypted; with PostgreSQL it uses TLS wherever the server offers it "
    "(sslmode=prefer)",
    "benchbase": "BenchBase does not report whether its connections were encrypted; the JDBC driver's own default decides where the address "
    "says nothing",
    "ycsb": "YCSB does not report whether its connections were encrypted; that depends on the binding's own properties",
    "cassandra-stress": "cassandra-stress prints its TLS settings but not what was negotiated",
    "fio": "fio does not know whether the file system or the disk below it encrypts",
    "jmh": "JMH does not know whether its benchmarks used encryption",
    "go-test": "Go's benchmarks do not report whether they used encryption",
    "criterion": "criterion does not know whether its benchmarks used encryption",
    "hyperfine": "hyperfine does not know whether its commands used encryption",
    "script": "a script's times do not show what was measured: they may include the start of a program and its connection",
    "csv": "a table does not show how its figures were measured",
    "cpu": "shares of a machine's CPU do not show what the CPU worked on",
}


def follow(name: str, interval: Interval) -> list[Warning_]:
    """The warning that runs are not independent, if the interval was widened for it."""
    if len(interval.errors) == 1:
        return []
    text = (
        f"{name}: each run is similar to the one before it, so these runs are not independent; the interval is widened (long-run "
        "variance). If they are parts of one run, they don't show how runs differ: import one figure per run"
    )
    return [Warning_("runs-follow", text)]


def same_rate(by_arm: dict[Arm, list[Reading]]) -> list[Warning_]:
    """The warning that all runs of both arms have the same round throughput, which was probably a set rate."""
    rates = [run.figures["throughput"] for arm in ARMS for run in by_arm[arm] if run.figures.get("throughput", 0.0) > 0]
    if len(rates) < 2 or not all(by_arm.values()) or max(rates) > min(rates) * (1 + ALIKE):
        return []
    middle = sum(rates) / len(rates)
    rounded = float(f"{middle:.1e}")
    if abs(middle / rounded - 1) > ALIKE or len({printed(run) for arm in ARMS for run in by_arm[arm]}) < 2:
        return []
    text = (
        f"all {len(rates)} runs of both arms have a throughput within {in_percent(ALIKE)} of {rounded:,.0f} per second: if the tool was set to "
        "that rate, throughput shows no cost here; compare latency"
    )
    return [Warning_("rate-alike", text)]


def order_of(by_arm: dict[Arm, list[Reading]]) -> Order:
    """The order of the arms' runs, if every run has a time by the same kind of clock."""
    runs = [run for arm in ARMS for run in by_arm[arm]]
    if not all(by_arm.values()) or any(run.started is None for run in runs) or len({run.clock for run in runs}) != 1:
        return "unknown"
    began = {arm: [run.started or 0.0 for run in by_arm[arm]] for arm in ARMS}
    if max(began["plain"]) < min(began["encrypted"]):
        return "plain first"
    return "encrypted first" if max(began["encrypted"]) < min(began["plain"]) else "by turns"


def warnings(
    readings: list[Reading],
    by_arm: dict[Arm, list[Reading]],
    costs: dict[str, ImportedCost],
    order: Order,
    tools: list[str],
) -> list[Warning_]:
    """All warnings, the most serious first."""
    warnings = [Warning_("imported", "imported: not paired, not proven; read these warnings before the figures")]
    tool = "cpu" if readings[0].kind == "cpu" else readings[0].tool.split()[0]
    warnings.append(Warning_("not-proven", UNSAID[tool]))
    schemes = {arm: {run.scheme for run in by_arm[arm]} for arm in ARMS}
    if all(by_arm.values()) and schemes["plain"] == schemes["encrypted"] != {""} and len(schemes["plain"]) == 1:
        scheme = next(iter(schemes["plain"]))
        warnings.append(
            Warning_("same-scheme", f"both arms used {scheme}: these figures don't include the cost of TLS")
        )
    if all(by_arm.values()):
        warnings += ordered(order)
        warnings += few(by_arm, costs)
        warnings += unequal(by_arm)
    warnings += zeros(readings)
    if len(tools) > 1:
        warnings.append(
            Warning_(
                "tool-differs",
                f"these runs come from several versions of the tool ({', '.join(tools)}): the difference includes that change",
            )
        )
    if falling := [run for run in readings if not steady(run)]:
        arms = " and ".join(arm for arm in ARMS if any(run.arm == arm for run in falling))
        ends = sorted(third(run) for run in falling)
        text = (
            f"{len(falling)} of {len(readings)} runs ({arms}) are not steady: throughput in the last third is "
            f"{in_percent(ends[0], 0)}{f' to {in_percent(ends[-1], 0)}' if len(ends) > 1 else ''} of the first "
            "(a cache that fills, or a checkpoint); the mean depends on the run's length"
        )
        warnings.append(Warning_("not-steady", text))
    seen: dict[tuple[str, str], list[str]] = {}
    for run in readings:
        for note in run.notes:
            seen.setdefault((note.code, note.text), []).append(run.file)
    for (code, text), where in seen.items():
        files = list(dict.fromkeys(where))
        shown = files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        warnings.append(Warning_(code, f"{shown}: {text}"))
    return warnings


def ordered(order: Order) -> list[Warning_]:
    if order == "unknown":
        text = "these files don't show when each run took place: if one arm ran entirely before the other, the difference includes the machine's drift"
        return [Warning_("order-unknown", text)]
    if order == "by turns":
        return []
    first, second = ("plain", "encrypted") if order == "plain first" else ("encrypted", "plain")
    text = f"every {first} run began before the first {second} run: the difference includes whatever changed on the machine in between"
    return [Warning_("one-after-other", text)]


def few(by_arm: dict[Arm, list[Reading]], costs: dict[str, ImportedCost]) -> list[Warning_]:
    """Warnings about single runs, and about runs that are all alike."""
    warnings = []
    counts = {arm: len(by_arm[arm]) for arm in ARMS}
    if min(counts.values()) == 1:
        arms = "each arm" if set(counts.values()) == {1} else f"the {min(counts, key=lambda arm: counts[arm])} arm"
        text = (
            f"one run of {arms}: there is no second run to compare it with, so there is no interval, and a cost can't be "
            "distinguished from chance; give at least two runs of each arm, and five or more for most questions"
        )
        warnings.append(Warning_("one-run", text))
    for name, cost in costs.items():
        if min(cost.plain_runs, cost.encrypted_runs) >= 2 and cost.low is None:
            warnings.append(
                Warning_(
                    "all-alike",
                    f"{name}: all runs agree to the last printed digit: are they copies of one run?",
                )
            )
    return warnings


def zeros(readings: list[Reading]) -> list[Warning_]:
    """Warnings about figures of 0, which have no ratio."""
    warnings = []
    for name in dict.fromkeys(name for run in readings for name in run.figures if compared(name)):
        figures = [run.figures[name] for run in readings if name in run.figures]
        if out := sum(1 for value in figures if not value > 0):
            text = f"{name} is 0 in {out} of {len(figures)} runs; a ratio can't include a 0, so this figure uses only the other runs"
            warnings.append(Warning_("zero-figures", text))
    return warnings


def unequal(by_arm: dict[Arm, list[Reading]]) -> list[Warning_]:
    """The warning that the arms' runs differ in length, unless a fixed amount of work ended them."""
    warnings = []
    lengths = {arm: sum(run.seconds for run in by_arm[arm]) / len(by_arm[arm]) for arm in ARMS}
    work = {arm: sum(run.operations for run in by_arm[arm]) / len(by_arm[arm]) for arm in ARMS}
    as_long = abs(lengths["plain"] - lengths["encrypted"]) <= UNEQUAL * max(lengths.values())
    as_much = abs(work["plain"] - work["encrypted"]) <= UNEQUAL * max(work.values())
    if not as_long and not as_much and min(lengths.values()) > 0:
        text = f"the arms' runs differ both in length ({lengths['plain']:.3g} and {lengths['encrypted']:.3g} s) and in number of operations"
        warnings.append(Warning_("unequal", text))
    return warnings


def third(run: Reading) -> float:
    """Throughput in the last third of the run ÷ the first third; 1 if there are too few values."""
    series = run.series.get("throughput", [])
    size = len(series) // 3
    first, last = sum(series[:size]), sum(series[len(series) - size :])
    return last / first if size >= 3 and first > 0 else 1.0


def steady(run: Reading) -> bool:
    return 1 / LEAST_FALL <= third(run) <= LEAST_FALL


def alone(cell: Cell, everything: list[Cell]) -> list[Warning_]:
    """For a cell with one arm: the warning that the other arm's runs are a different test."""
    if len(cell.arms) != 1:
        return []
    arm = next(iter(cell.arms))
    others = [
        candidate
        for candidate in everything
        if candidate is not cell
        and len(candidate.arms) == 1
        and arm not in candidate.arms
        and candidate.engine == cell.engine
    ]
    if not others:
        return []
    other = next(iter(others[0].arms))
    text = (
        f"the {arm} runs ({cell.workload}, {cell.clients} clients) and the {other} runs ({others[0].workload}, {others[0].clients} clients) "
        "are different tests, so they were not compared"
    )
    return [Warning_("not-the-same-test", text)]
