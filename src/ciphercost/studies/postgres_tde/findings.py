"""What the published figures contradict, and what their procedure could not show, computed from both. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.postgres_tde import grid, published

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str], StudyRun]
APART = 0.02
"""Share by which a rate and the rate computed from its latency may differ: seconds at both ends of a run."""
EDGE_SECONDS = 8
"""Seconds compared at the beginning and end of a run, like the study's first seconds."""
LEAST_SECONDS = 3 * EDGE_SECONDS
FALL = 0.5
"""A progress line below this share of the first rate counts as fallen."""


class Measurements(NamedTuple):
    """What was measured here."""

    here: Here
    """The published procedure at the study's own point."""
    ours: Mapping[str, Cell]
    """Our method at that point, by pair."""
    runs: Mapping[grid.Point, Here]
    """The published procedure at every point."""


def findings(study: Study, record: StudyRecord, seen: Measurements) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    printed, claims = published.arms(study), published.claims(study)
    pairs = published.edb_pairs(study)
    found = [
        loss(printed, claims),
        falling(study, printed, seen.here),
        unequal_work(printed, claims),
        select_only(seen.runs),
        same_latency_for_every_size(printed, claims),
        two_pairs(pairs),
        littles_law(printed, claims, record, seen.here),
        spread(printed, seen.here),
        contradictions(study, printed),
        intervals(seen.here, seen.ours),
        UNPROVEN,
        on_the_disk(seen.here),
        loads(pairs, record),
        fio(seen.ours),
        elsewhere(study),
    ]
    return [each for each in found if each]


UNPROVEN = (
    "Nothing showed that either arm was what its name says. Here, before each load, witnesses query the server and search every file of both "
    "arms for a word that was written."
)

# ── the published figures among themselves ────────────────────────────────────────────────────────────────────────────


def loss(printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float]) -> str:
    """The loss that the text states, beside the loss in its own figures."""
    tde, plain = printed[published.TDE], printed[published.PLAIN]
    return (
        f"The text states that TDE costs {claims['loss_percent_low']:.0f} to {claims['loss_percent_high']:.0f} %. Its own figures, "
        f"{plain.tps:,.1f} TPS without and {tde.tps:,.1f} with, differ by a factor of {plain.tps / tde.tps:.1f}: "
        f"{100 * (1 - tde.tps / plain.tps):.0f} % lost."
    )


def unequal_work(printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float]) -> str:
    """The arms had neither the same load nor the same time."""
    tde, plain, other = (printed[name] for name in (published.TDE, published.PLAIN, published.OTHER))
    each = plain.transactions / claims["clients"]
    default = (
        f", {each:.0f} for each of {claims['clients']:.0f} clients, which is pgbench's default without -T"
        if each == published.DEFAULT_TRANSACTIONS
        else ""
    )
    return (
        f"The arm with TDE ran {tde.transactions:,.0f} transactions; those without ran {plain.transactions:,.0f} (CYBERTEC) and "
        f"{other.transactions:,.0f} (EnterpriseDB){default}, and the text calls them SELECT-only. At the printed rates they "
        f"ended after {plain.seconds:.2f} s and {other.seconds:.2f} s, but the arm with TDE ran {tde.seconds:.0f} s. We infer that "
        "half a second contained no checkpoint and few page writes. The two columns have different loads, so their ratio is not "
        "the cost of TDE."
    )


def select_only(runs: Mapping[grid.Point, Here]) -> str:
    """The factor that different statements alone cause, if both kinds ran here."""
    said = []
    for point, here in runs.items():
        other = runs.get(point._replace(operation=grid.SELECT), {})
        if point.operation != grid.TPCB or not other:
            continue
        for name in dict.fromkeys(name for name, _ in here):
            encrypted, plain = here.get((name, "encrypted")), here.get((name, "plain"))
            select = other.get((name, "plain"))
            if encrypted and plain and select:
                tps = [run.series["tps"][0] for run in (select, encrypted, plain)]
                said.append(
                    f"{name}, {point.rows:,} rows, {point.clients} clients: {tps[0]:,.0f} TPS SELECT-only without encryption, "
                    f"{tps[1]:,.0f} TPC-B-like with it, a factor of {tps[0] / tps[1]:.1f}; TPC-B-like without it {tps[2]:,.0f}, "
                    f"a factor of {tps[2] / tps[1]:.2f}"
                )
    if not said:
        return ""
    return f"The effect of different statements alone, here: {'; '.join(said)}."


def two_pairs(pairs: Sequence[published.EdbPair]) -> str:
    """One server with two results: the second has a different load."""
    first, second = pairs
    return (
        f"The study prints {len(pairs)} pairs of figures for EnterpriseDB: {first.tps:,.1f} TPS with {first.latency_average_ms:.3f} ms, and in "
        f"the conclusion {second.tps:,.4f} TPS with {second.latency_average_ms:.3f} ms. The second has {second.clients} clients: "
        f"{second.clients} ÷ {second.latency_average_ms / 1000:.6f} s = {second.clients / second.latency_average_ms * 1000:,.3f} TPS. "
        f"That number of clients is computed, not printed. The first has {first.clients}."
    )


def loads(pairs: Sequence[published.EdbPair], record: StudyRecord) -> str:
    """Low and high load: only one pair of figures exists for low load."""
    first, second = pairs
    run = sorted({point.clients for point in grid.of_record(record)})
    return (
        f"The study speaks of low and high load. Its figures for low load, {second.clients} clients, are one pair of one server without "
        f"TDE; all others have {first.clients} clients. So the cost of TDE under low load was not published. "
        f"Run here: {_listed([str(each) for each in run])} clients."
    )


def same_latency_for_every_size(printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float]) -> str:
    """The same mean latency for every size, and the origin of these sizes."""
    if any(len(set(arm.latencies)) > 1 for arm in printed.values()):
        return ""
    rows = printed[published.TDE].rows
    text = (
        f"The same mean latency is printed for {_listed([f'{each:,}' for each in rows])} rows, to the last digit. Each server has only one value "
        "of each other figure."
    )
    tables = {name: int(claims["scale"] * unit) for name, unit in published.TABLES.items()}
    if tuple(sorted(tables.values())) == tuple(sorted(rows)):
        text += (
            f" {_listed([f'{each:,}' for each in rows])} are the rows of pgbench's tables at scale {claims['scale']:.0f} "
            f"({', '.join(tables)}). We infer one run, not three sizes: how the cost depends on size was not measured."
        )
    return text


def littles_law(
    printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float], record: StudyRecord, here: Here
) -> str:
    """Clients ÷ mean latency is the rate if every client is busy all the time."""
    clients = claims["clients"]
    off = {name: arm.tps_of_latency(clients) / arm.tps - 1 for name, arm in printed.items()}
    wrong = [name for name, share in off.items() if abs(share) > APART]
    right = [name for name in off if name not in wrong]

    def said(names: list[tuple[str, str]]) -> str:
        return ", ".join(
            f"{published.ARM_WORDS[name]} {printed[name].tps_of_latency(clients):,.0f} by latency and {printed[name].tps:,.0f} printed"
            for name in names
        )

    text = f"{clients:.0f} clients that never wait complete {clients:.0f} ÷ mean latency transactions per second."
    if right:
        text += f" That holds for: {said(right)}."
    if wrong:
        text += (
            f" It does not hold for: {said(wrong)}; clients were idle there, as they are after their few transactions."
        )
    rates = [
        (record.settings["clients"] / run.series["latency_average_ms"][0] * 1000) / run.series["tps"][0] - 1
        for run in here.values()
        if run.series["latency_average_ms"][0]
    ]
    if rates:
        text += f" Here the two differ by at most {100 * max(map(abs, rates)):.1f} %."
    return text


def spread(printed: Mapping[tuple[str, str], published.Arm], here: Here) -> str:
    """A standard deviation as large as the mean."""
    tde, plain = printed[published.TDE], printed[published.PLAIN]
    text = (
        f"With TDE the latency's standard deviation is {tde.latency_stddev_ms / tde.latency_average_ms:.2f} of its mean, without "
        f"{plain.latency_stddev_ms / plain.latency_average_ms:.2f}: the mean with TDE mixes quick transactions and stalls."
    )
    shares = [
        f"{name} "
        + " and ".join(
            f"{run.series['latency_stddev_ms'][0] / run.series['latency_average_ms'][0]:.2f} {spell(arm)}"
            for arm in ARMS
            if (run := here[name, arm])
        )
        for name in dict.fromkeys(name for name, _ in here)
        if all((name, arm) in here for arm in ARMS)
    ]
    return f"{text} Here, where both arms ran alike: {'; '.join(shares)}." if shares else text


def falling(study: Study, printed: Mapping[tuple[str, str], published.Arm], here: Here) -> str:
    """Falling progress lines and the run that they belong to. Two readings; each is an inference."""
    lines, last = published.progress(study, published.OTHER_FIGURE), published.progress(study, published.TDES_FIGURE)
    tde, plain = printed[published.TDE], printed[published.PLAIN]
    fallen = next(number for number, line in enumerate(lines) if line.tps < FALL * lines[0].tps)
    after = [line.tps for line in lines[fallen:]]
    shown = [lines[0], *lines[fallen - 1 : fallen + 2], lines[-1]]
    ends = [line.tps for line in last]
    text = (
        f"Figure {published.OTHER_FIGURE} shows progress lines, {', '.join(f'{each.tps:,.1f} TPS at {each.at} s' for each in shown)}. Its "
        f"caption says non-TDE and names a run of 600 s (-c 50 -j 50 -P 1 -T 600). Figure {published.TDES_FIGURE} shows the last "
        f"{len(last)} lines with TDE: {min(ends):.0f} to {max(ends):.0f} TPS. "
        f"By the caption these lines belong to the server without TDE, in a run whose totals were not printed. Within "
        f"{float(shown[-2].at):.0f} s it fell to about the rate at which TDE ends: {fmean(after):.0f} TPS on average from then on, and TDE has "
        f"{tde.tps:.0f} over its {tde.seconds:.0f} s. We infer that the published factor of {plain.tps / tde.tps:.1f} may come from a disk "
        f"cache that fills, or a checkpoint, and not from encryption: the printed figures without TDE cover {plain.seconds:.2f} s, before "
        f"any such fall. The other reading contradicts the caption: the printed run without TDE, {plain.transactions:,.0f} transactions, "
        "is too short for these lines, so they may belong to the arm with TDE. "
    )
    if lines[0].tps >= plain.tps:
        text += f"Then TDE began at {lines[0].tps:,.0f} TPS, no slower than {plain.tps:,.0f} without, and the rest was measured in one arm alone. "
    text += (
        "Caption and command support the first reading; without that run's totals the publication does not decide between the two. In "
        "either reading, the factor does not show what TDE costs."
    )
    said = [
        f"{name} {spell(arm)} {fmean(rates[:EDGE_SECONDS]):,.0f} and {fmean(rates[-EDGE_SECONDS:]):,.0f}"
        for (name, arm), run in here.items()
        if len(rates := run.series["progress_tps"]) >= LEAST_SECONDS
    ]
    if said:
        text += f" Here, TPS in the first and the last {EDGE_SECONDS} seconds: {'; '.join(said)}."
    return text


def contradictions(study: Study, printed: Mapping[tuple[str, str], published.Arm]) -> str:
    """Where the text differs from the program's output."""
    plain, other = printed[published.PLAIN], printed[published.OTHER]
    differ = "; ".join(
        f"{each.name}: {each.printed} in pgbench's output, {each.in_text} in the text"
        for each in published.contradictions(study)
    )
    text = f"The text contradicts the printed output. {differ}."
    if other.latency_stddev_ms < plain.latency_stddev_ms:
        text += (
            f" EnterpriseDB's standard deviation, {other.latency_stddev_ms:.3f} ms, is called higher than CYBERTEC's without TDE, "
            f"{plain.latency_stddev_ms:.3f} ms; it is lower."
        )
    return text


def elsewhere(study: Study) -> str:
    """Costs of other systems that the study quotes; measured neither by it nor here."""
    said = [f"{each['system']}: {each['percent']} % ({each['figure']})" for each in published.elsewhere(study)]
    return f"Costs of other systems that the study quotes, measured neither by it nor here: {'; '.join(said)}."


# ── beside what was measured here ─────────────────────────────────────────────────────────────────────────────────────


def intervals(here: Here, ours: Mapping[str, Cell]) -> str:
    """One run per arm, one after the other: the result of that here, and our interval."""
    text = (
        "One run per arm, one arm completely before the other, and no interval: whatever changes meanwhile looks like TDE. Our method "
        "interleaves the arms in mirrored order."
    )
    said = []
    for name in dict.fromkeys(name for name, _ in here):
        rate = ours[name].overhead.get("throughput") if name in ours else None
        if rate is None or any((name, arm) not in here for arm in ARMS):
            continue
        plain, encrypted = (here[name, arm].series["tps"][0] for arm in ARMS)
        ratio = encrypted / plain
        inside = "inside" if rate.low <= ratio <= rate.high else "outside"
        said.append(f"{name} {change(ratio, 'TPS')}, {inside} our {bounds(rate.low, rate.high, 'TPS')}")
    if not said:
        return text
    return (
        f"{text} Run once as published, TPS change here by: {'; '.join(said)}. pgbench shares all cores with its server, as in "
        "the study; our method keeps server and client on separate cores if there are two."
    )


def on_the_disk(here: Here) -> str:
    """Whether the servers here write durably."""
    runs = list(here.values())
    if not runs or "fsync" not in runs[0].load:
        return ""
    switches = [
        name for name in ("fsync", "synchronous_commit", "full_page_writes") if all(run.load[name] for run in runs)
    ]
    load = runs[0].load
    counts = "; ".join(f"{name} {spell(arm)} {run.series['checkpoints'][0]:.0f}" for (name, arm), run in here.items())
    return (
        f"Here, by the servers' own settings: {_listed(switches) or 'no switch'} on, a checkpoint every {load['checkpoint_timeout']:.0f} s "
        f"or {load['max_wal_size'] / 1024**2:,.0f} MB of log, {load['shared_buffers'] / 1024**2:,.0f} MB of shared buffers; "
        f"checkpoints in a run: {counts}. A run shorter than that time shows no timed checkpoint."
    )


def fio(ours: Mapping[str, Cell]) -> str:
    """fio: the study names it as a tool and prints no figure of it."""
    text = "The study names fio as its tool for I/O but prints no figure of it."
    return (
        text
        if any(getattr(cell, "storage", None) for cell in ours.values())
        else f"{text} Here fio did not run either: it is not installed, the cells were too short, or the server itself encrypts on one file system."
    )


def spell(arm: str) -> str:
    return "encrypted" if arm == "encrypted" else "plain"


def _listed(words: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
