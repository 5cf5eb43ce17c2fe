"""What the published table can and can't show, computed from its own figures and from the repetition's scatter. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ciphercost.model.result import Cell
from ciphercost.model.spec import ARMS
from ciphercost.model.study import StudyRun
from ciphercost.studies.costs import bounds
from ciphercost.studies.cybertec_tde_cost import procedure, published, resolution

if TYPE_CHECKING:
    from ciphercost.studies import Study

LARGE = 99.5
Here = Mapping[tuple[str, str], StudyRun]
SPREAD = (
    'The runs are averaged and their number ("a few"), spread and order are not printed, although the post says that single runs scatter a lot. So no '
    "reader can tell noise from cost, and whatever changed on the machine between two cells of the table is in their difference."
)
CLUSTERS = (
    "Each key length is a cluster of its own, created by initdb. What distinguishes two clusters for no reason, such as where their files and memory lie, "
    "stays however long they run: more minutes don't help, more clusters do. Our method starts new servers in every session."
)
UNPROVEN = (
    "Nothing in the post shows that a cluster was encrypted, or with which key length. Here witnesses query the server and search every file of both "
    "arms for a word that was written, before any load."
)
STAND_IN = (
    "The small buffers make TDE decrypt a page each time it comes back from the page cache. A file system that encrypts has done so before the page is "
    "in that cache, so what stands in here can't repeat that part; --bindir with PGEE, or with pg_tde, can."
)


def findings(study: Study, here: Here, ours: Mapping[str, Cell], names: Sequence[str]) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    found = [
        answer(study),
        answer_here(here, names),
        all_cells(study),
        contradictions(study),
        SPREAD,
        CLUSTERS,
        waiting(study, ours),
        UNPROVEN,
        STAND_IN,
    ]
    return [each for each in found if each]


def published_groups(study: Study) -> tuple[list[float], list[float]]:
    """Logarithms of the cells with TDE, and of those without."""
    rows = published.rows(study)
    with_tde, without = ([math.log(each.tps) for each in rows if bool(each.bits) is tde] for tde in (True, False))
    return with_tde, without


def answer(study: Study) -> str:
    """What one comparison of two published averages can show, by the table's own scatter."""
    of = resolution.spread(published_groups(study))
    assert of is not None
    own = resolution.resolution(of)
    largest = max(abs(100 - each.percent) for each in published.rows(study))
    return (
        "Can this design show half a per cent? By the published table's own scatter, hardly: cells with TDE differ among themselves, and so do those "
        f"without, by {100 * of.sd:.2f} % (standard deviation, {of.freedom} degrees of freedom). If neither key length nor checksums mattered, a "
        f"difference of two cells would be known to ±{_percent(own)}. The largest published cost is {largest:.2f} %."
    )


def answer_here(here: Here, names: Sequence[str]) -> str:
    """The same from the scatter of the runs here."""
    said = []
    for name in names:
        groups = [
            [math.log(each) for each in here[name, arm].series[procedure.TPS]] for arm in ARMS if (name, arm) in here
        ]
        if (of := resolution.spread(groups)) is None:
            continue
        runs = min(map(len, groups))
        own = resolution.resolution(of, runs)
        needed = [resolution.runs_needed(sd) for sd in (of.sd, of.low, of.high)]
        said.append(
            f"{name}: runs of the same arm differ by {digits(100 * of.sd)} % (standard deviation), so averages of {runs} show no difference below "
            f"{_percent(own)}; for half a per cent {needed[0]:,} runs of each arm are needed ({needed[1]:,} to {needed[2]:,})"
        )
    if not said:
        return ""
    verdict = "; ".join(said)
    return f"On this machine, with 95 % intervals: {verdict}. That holds for runs that are independent; drift from one arm to the other comes on top."


def _percent(own: resolution.Resolution) -> str:
    """`0.55 % (0.36–1.2 %)`."""
    value, low, high = (digits(100 * math.expm1(each)) for each in own)
    return f"{value} % ({low}–{high} %)"


def digits(value: float) -> str:
    """Two digits, or a whole number from 100 on."""
    return f"{value:.2g}" if value < LARGE else f"{value:,.0f}"


def all_cells(study: Study) -> str:
    """All eight cells together."""
    with_tde, without = published_groups(study)
    found = resolution.difference(with_tde, without)
    assert found is not None
    cost, least, most = (100 * -math.expm1(each) for each in (found.value, found.high, found.low))
    sure = "excludes no change" if least > 0 else "includes no change"
    return (
        f"All {len(with_tde)} cells with TDE against the {len(without)} without, whatever their checksums: {cost:.2f} % fewer TPS (95 % interval "
        f"{least:.2f} to {most:.2f} %), which {sure}. So the table as a whole says more than any two of its cells, if each is an independent "
        "measurement of one and the same cost; nothing in the post shows that they are."
    )


def contradictions(study: Study) -> str:
    """Cells in the wrong order, which only noise explains."""
    tps = {(each.bits, each.checksums): each.tps for each in published.rows(study)}
    faster = [
        f"{bits} bits ({tps[bits, False]:,.1f} → {tps[bits, True]:,.1f} TPS)"
        for bits in (128, 192, 256)
        if tps[bits, True] > tps[bits, False]
    ]
    claims = published.claims(study)
    return (
        f"Checksums make {' and '.join(faster)} faster, and 256-bit keys beat 192-bit ones ({tps[192, False]:,.1f} → {tps[256, False]:,.1f} TPS): both are "
        f"noise, as the post says of the first. From the same cells it takes {claims['cost_of_checksums_percent']:g} % for checksums and "
        f"{claims['cost_of_both_percent']:g} % for both."
    )


def waiting(study: Study, ours: Mapping[str, Cell]) -> str:
    """What three clients wait for."""
    each = 1000 * published.CLIENTS / published.tps(study, 0)
    text = (
        f"{published.CLIENTS} clients at {published.tps(study, 0):,.0f} TPS have {each:.2f} ms for a transaction. If most of that is a commit waiting for the "
        "disk, CPU time that decryption adds is hidden in it. No CPU time was printed."
    )
    said = [
        f"{name} {bounds(cost.low, cost.high)}"
        for name, cell in ours.items()
        if (cost := cell.overhead.get("server_cpu_per_op"))
    ]
    return f"{text} The server's CPU time of a transaction here (95 %): {', '.join(said)}." if said else text
