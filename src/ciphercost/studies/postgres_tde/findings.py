"""findings: what the published figures contradict, and what their procedure could not have told. Counted from both. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING

from ciphercost.model import ARMS, Cell, StudyRecord, StudyRun
from ciphercost.studies.costs import bounds, change
from ciphercost.studies.postgres_tde import published

if TYPE_CHECKING:
    from ciphercost.studies import Study

Here = Mapping[tuple[str, str], StudyRun]
APART = 0.02
"""Share by which a rate and what its latency says of it may differ: seconds at both ends of a run."""
EDGE_SECONDS = 8
"""Of a run's beginning and end that are compared, as the study's first seconds were shown."""
LEAST_SECONDS = 3 * EDGE_SECONDS
ARM_WORDS = {published.TDE: "with TDE", published.PLAIN: "CYBERTEC without", published.OTHER: "EnterpriseDB without"}


def findings(study: Study, record: StudyRecord, here: Here, ours: Mapping[str, Cell]) -> list[str]:
    """Each a sentence or two; the figures in them are computed."""
    printed, claims = published.arms(study), published.claims(study)
    found = [
        loss(printed, claims),
        unequal_work(printed, claims),
        one_run_thrice(study, printed, claims),
        two_pairs(printed[published.OTHER], claims),
        littles_law(printed, claims, record, here),
        spread(printed, record, here),
        first_seconds(printed, claims, here),
        intervals(record, here, ours),
        UNPROVEN,
        on_the_disk(here),
        loads(claims),
        fio(ours),
    ]
    return [each for each in found if each]


UNPROVEN = (
    "Nothing showed that either arm was what its name says. Here the server is asked, and every file of both arms is searched "
    "for a word that was written, before each load."
)

# ── the published figures among themselves ────────────────────────────────────────────────────────────────────────────


def loss(printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float]) -> str:
    """What the text says is lost, beside what its own figures say."""
    tde, plain = printed[published.TDE], printed[published.PLAIN]
    return (
        f"The text says that TDE costs {claims['loss_percent_low']:.0f} to {claims['loss_percent_high']:.0f} %. Its own figures, "
        f"{plain.tps:,.1f} TPS without and {tde.tps:,.1f} with, differ by a factor of {plain.tps / tde.tps:.1f}: "
        f"{100 * (1 - tde.tps / plain.tps):.0f} % lost."
    )


def unequal_work(printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float]) -> str:
    """The arms were not given the same load, nor the same time."""
    tde, plain, other = (printed[name] for name in (published.TDE, published.PLAIN, published.OTHER))
    each = plain.transactions / claims["clients"]
    default = (
        f", {each:.0f} for each of {claims['clients']:.0f} clients, which is what pgbench runs where it is told no -T"
        if each == published.DEFAULT_TRANSACTIONS
        else ""
    )
    return (
        f"The arm with TDE is {tde.transactions:,.0f} transactions; those without are {plain.transactions:,.0f} (CYBERTEC) and "
        f"{other.transactions:,.0f} (EnterpriseDB){default}, and the text calls them SELECT-only. At the printed rates they were "
        f"over in {plain.seconds:.2f} s and {other.seconds:.2f} s, where the arm with TDE ran {tde.seconds:.0f} s: no checkpoint "
        "and hardly a page written fall into half a second. The two columns are not the same load, so their ratio is not the "
        "cost of TDE."
    )


def two_pairs(other: published.Arm, claims: Mapping[str, float]) -> str:
    """One server, several results."""
    return (
        f"For EnterpriseDB {claims['edb_pairs_of_figures']:.0f} different pairs of figures are printed; the one shown above is "
        f"{other.tps:,.1f} TPS and {other.latency_average_ms:.1f} ms."
    )


def loads(claims: Mapping[str, float]) -> str:
    """What was to vary, and did not."""
    return (
        f"It speaks of low and high load; every figure that it prints is of {claims['clients']:.0f} clients. That is what is run "
        "here; --clients asks for another number."
    )


def one_run_thrice(study: Study, printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float]) -> str:
    """The same figures for every size; and where these sizes come from."""
    if not published.alike(study):
        return ""
    rows = printed[published.TDE].rows
    text = f"The same figures are printed for {_listed([f'{each:,}' for each in rows])} rows, to the last digit."
    tables = {name: int(claims["scale"] * unit) for name, unit in published.TABLES.items()}
    if tuple(sorted(tables.values())) == tuple(sorted(rows)):
        text += (
            f" These are the rows of pgbench's tables at scale {claims['scale']:.0f} ({', '.join(tables)}): one run, not three sizes. "
            "What size does to the cost was not measured."
        )
    return text


def littles_law(
    printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float], record: StudyRecord, here: Here
) -> str:
    """Clients ÷ mean latency is the rate, where every client is busy all the time."""
    clients = claims["clients"]
    off = {name: arm.tps_of_latency(clients) / arm.tps - 1 for name, arm in printed.items()}
    wrong = [name for name, share in off.items() if abs(share) > APART]
    right = [name for name in off if name not in wrong]

    def said(names: list[tuple[str, str]]) -> str:
        return ", ".join(
            f"{ARM_WORDS[name]} {printed[name].tps_of_latency(clients):,.0f} by latency and {printed[name].tps:,.0f} printed"
            for name in names
        )

    text = f"{clients:.0f} clients that never rest do {clients:.0f} ÷ mean latency transactions a second."
    if right:
        text += f" That holds for: {said(right)}."
    if wrong:
        text += f" It does not for: {said(wrong)}; there clients stood idle, as they do once their few transactions are done."
    rates = [
        (record.settings["clients"] / run.series["latency_average_ms"][0] * 1000) / run.series["tps"][0] - 1
        for run in here.values()
        if run.series["latency_average_ms"][0]
    ]
    if rates:
        text += f" Here the two differ by {100 * max(map(abs, rates)):.1f} % at most."
    return text


def spread(printed: Mapping[tuple[str, str], published.Arm], record: StudyRecord, here: Here) -> str:
    """A standard deviation as large as the mean."""
    tde, plain = printed[published.TDE], printed[published.PLAIN]
    text = (
        f"With TDE the latency's standard deviation is {tde.latency_stddev_ms / tde.latency_average_ms:.2f} of its mean, without "
        f"{plain.latency_stddev_ms / plain.latency_average_ms:.2f}: the mean of the one is that of quick transactions and of stalls."
    )
    shares = [
        f"{name} "
        + " and ".join(
            f"{run.series['latency_stddev_ms'][0] / run.series['latency_average_ms'][0]:.2f} {spell(arm)}"
            for arm in ARMS
            if (run := here[name, arm])
        )
        for name in record.mechanisms
        if all((name, arm) in here for arm in ARMS)
    ]
    return f"{text} Here, where both arms ran alike: {'; '.join(shares)}." if shares else text


def first_seconds(printed: Mapping[tuple[str, str], published.Arm], claims: Mapping[str, float], here: Here) -> str:
    """A rate that falls while it is measured."""
    plain = printed[published.PLAIN]
    text = (
        f"Its progress lines, of one arm only, fall from {claims['tps_first_second']:,.0f} to {claims['tps_after_fall']:,.0f} TPS in "
        f"{claims['fall_s']:.0f} s: a disk whose cache fills, or a checkpoint."
    )
    if plain.seconds < claims["fall_s"]:
        text += " The arms without TDE were over by then, so by these figures it is the arm with TDE"
        if claims["tps_first_second"] >= plain.tps:
            text += (
                f": in its first second it was no slower than the arm without TDE in all of its time, {plain.tps:,.0f} TPS, and what "
                "came after the first second was measured in one arm alone"
            )
        text += "."
    said = [
        f"{name} {spell(arm)} {fmean(rates[:EDGE_SECONDS]):,.0f} and {fmean(rates[-EDGE_SECONDS:]):,.0f}"
        for (name, arm), run in here.items()
        if len(rates := run.series["progress_tps"]) >= LEAST_SECONDS
    ]
    if said:
        text += f" Here, TPS in the first and the last {EDGE_SECONDS} seconds: {'; '.join(said)}."
    return text


# ── beside what was measured here ─────────────────────────────────────────────────────────────────────────────────────


def intervals(record: StudyRecord, here: Here, ours: Mapping[str, Cell]) -> str:
    """One run of each arm, one after the other; what that gives here, and what our interval is."""
    text = (
        "One run an arm, one arm wholly after the other, and no interval: whatever changes meanwhile looks like TDE. Our method "
        "takes both arms in turns, in mirrored order."
    )
    said = []
    for name in record.mechanisms:
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
        f"{text} Run once as published, TPS change here by: {'; '.join(said)}. pgbench shares all cores with its server, as it did in "
        "the study; ours keeps server and client on cores of their own where there are two."
    )


def on_the_disk(here: Here) -> str:
    """Whether the servers here write as a server must."""
    runs = list(here.values())
    if not runs or "fsync" not in runs[0].load:
        return ""
    switches = [
        name for name in ("fsync", "synchronous_commit", "full_page_writes") if all(run.load[name] for run in runs)
    ]
    load = runs[0].load
    counts = "; ".join(f"{name} {spell(arm)} {run.series['checkpoints'][0]:.0f}" for (name, arm), run in here.items())
    return (
        f"Here, as the servers say themselves: {_listed(switches) or 'no switch'} on, a checkpoint every {load['checkpoint_timeout']:.0f} s "
        f"or {load['max_wal_size'] / 1024**2:,.0f} MB of log, {load['shared_buffers'] / 1024**2:,.0f} MB of shared buffers; "
        f"checkpoints in a run: {counts}. A run shorter than that time tells of no checkpoint that the clock asks for."
    )


def fio(ours: Mapping[str, Cell]) -> str:
    """It was to be measured, and never told."""
    text = "fio was to tell of the disk, and no figure of it was printed."
    return (
        text
        if any(getattr(cell, "storage", None) for cell in ours.values())
        else f"{text} Here neither: there is no fio."
    )


def spell(arm: str) -> str:
    return "encrypted" if arm == "encrypted" else "plain"


def _listed(words: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
