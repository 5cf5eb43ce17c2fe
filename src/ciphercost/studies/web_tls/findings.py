"""What the published procedure could not show, computed from its own figures and from its repetition here. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ciphercost.estimate import limit
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.study import StudyFigure, StudyRecord
from ciphercost.studies.costs import bounds, change, with_interval
from ciphercost.studies.web_tls import changes, measured, procedure, published
from ciphercost.studies.web_tls.counters import SERVER
from ciphercost.studies.web_tls.published import CV, DISK, MEAN, MEMORY, NETWORK, PROCESSOR, VARIANCE, Tables

Levels = Mapping[Arm, float] | Mapping[str, float]
"""One level per arm."""
TWO_ERRORS = 2.0
"""Standard errors below which a difference of means is not significant."""


def findings(
    printed: Tables,
    printed_changes: Sequence[changes.Change],
    record: StudyRecord,
    here: measured.Here,
    figures: Sequence[StudyFigure],
) -> list[str]:
    """Findings of a few sentences each, with computed figures."""
    found = [
        window(printed, here),
        busy_share(printed, here),
        pace(printed, record, here, figures),
        limited(record, here),
        dilution(printed, here),
        others(here),
        few_samples(printed),
        changes.finding(printed_changes),
        memory(printed, here),
        disk(printed, here),
        once(here, record),
        threads(here),
        sendfile(figures),
        not_asked(figures),
    ]
    return [each for each in found if each]


def sizes_here(here: measured.Here) -> list[int]:
    """Files that both arms have fetched."""
    return sorted({size for size, _ in here if all((size, arm) in here for arm in ARMS)})


# ── idle time ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def window(printed: Tables, here: measured.Here) -> str:
    """Bytes a second × a fixed window = the file."""
    lines = {arm: published.window(printed, arm) for arm in ARMS}
    said = [
        f"{line.window:.1f} s and {line.background / 1e3:.1f} KB/s of other traffic {spell(arm)} (no row is further off than {100 * line.worst:.1f} %)"
        for arm, line in lines.items()
        if line
    ]
    text = (
        f"Bytes a second were averaged over a fixed window, including idle time: all rows of Table {printed[NETWORK, MEAN].number} are the file's size ÷ "
        f"{' and ÷ '.join(said)}. Whatever TLS does to the speed of a fetch, file ÷ window does not change: "
        f'"no impact on bytes/s" was inevitable ({change_range(printed, NETWORK)}).'
    )
    scatter = printed[NETWORK, CV].rows
    shortest = min(scatter)
    if line := lines["plain"]:
        fill = sorted(published.share_of(scatter[shortest][arm]) * line.window for arm in ARMS)
        text += (
            f" The study prints neither this window nor the sampling interval: both are inferred. By their scatter (see below) the {shortest} MB fetches fill "
            f"{fill[0]:.1f} to {fill[1]:.1f} s of the window, but the link needs only {shortest * published.MEGABYTE * 8 / published.LINK_BITS:.2f} s: "
            f"so the samples were about {published.INTERVAL:g} s long."
        )
    products = [
        measured.whole(run, NETWORK)[MEAN] * measured.window(run) / run.load["bytes"]
        for (size, arm), run in here.items()
    ]
    if products:
        text += (
            f" Here bytes a second × window ÷ file is {min(products):.3f} to {max(products):.3f} in the {len(products)} fetches, "
            "including headers and acknowledgements."
        )
    return text


def busy_share(printed: Tables, here: measured.Here) -> str:
    """The coefficients of variation contain how long the fetches took."""
    scatter, mean = printed[NETWORK, CV].rows, printed[NETWORK, MEAN].rows
    first, last = min(scatter), max(scatter)
    shares = {size: {arm: published.share_of(scatter[size][arm]) for arm in ARMS} for size in scatter}
    speeds = {size: {arm: mean[size][arm] / shares[size][arm] for arm in ARMS} for size in scatter}
    line = published.window(printed, "plain")
    length = line.window if line else published.WINDOW
    text = (
        "The study discarded how long a fetch took, but the coefficient of variation contains it: "
        "at a steady pace for a share p of the window CV² = (1 − p)/p. "
        f"So {first} MB took {100 * shares[first]['plain']:.1f} % of the window and "
        f"{last} MB {100 * shares[last]['plain']:.0f} % ({shares[last]['plain'] * length:.0f} s) "
        "(a fetch shorter than a sample looks as long as one). "
        f"{100 * (1 - shares[last]['plain']):.0f} % to {100 * (1 - shares[first]['plain']):.1f} % of every average is idle time. "
        f"While it was busy, {last} MB went at "
        f"{arrow(speeds[last], 1e6)} MB/s, {percent(speeds[last])}; the table says {percent(mean[last])}."
    )
    sizes = sizes_here(here)
    if sizes:
        size = sizes[-1]
        of_window = {arm: measured.whole(here[size, arm], NETWORK)[MEAN] for arm in ARMS}
        within = {arm: measured.busy(here[size, arm], NETWORK)[MEAN] for arm in ARMS}
        text += (
            f" Here {size} MB take {arrow({arm: measured.busy_share(here[size, arm]) for arm in ARMS}, 0.01)} % of the window; bytes/s: "
            f"{percent(of_window)} over the window, {percent(within)} while busy."
        )
    return text


def pace(printed: Tables, record: StudyRecord, here: measured.Here, figures: Sequence[StudyFigure]) -> str:
    """A link that is slower than the server hides what encryption does to its speed."""
    mean, scatter = printed[NETWORK, MEAN].rows, printed[NETWORK, CV].rows
    last = max(mean)
    of_link = {arm: mean[last][arm] / published.share_of(scatter[last][arm]) * 8 / published.LINK_BITS for arm in ARMS}
    text = (
        f"A link of {published.LINK_BITS / 1e6:.0f} Mb/s hides the rest: while busy, {last} MB filled {arrow(of_link, 0.01)} % of it, and a server that "
        "waits for its link delivers as much with TLS as without, as long as its CPU suffices."
    )
    sizes = sizes_here(here)
    if sizes and record.settings["link_bits"]:
        filled = {
            arm: measured.busy(here[sizes[-1], arm], NETWORK)[MEAN] * 8 / record.settings["link_bits"] for arm in ARMS
        }
        seconds = {arm: measured.server_seconds(here[sizes[-1], arm]) for arm in ARMS}
        text += f" Here {sizes[-1]} MB fill {arrow(filled, 0.01)} % of the link, at {arrow(seconds)} s of the server's CPU time."
    if rows := [each for each in of(figures, measured.RATE) if each.operation == f"{last}MB"]:
        text += f" On loopback, which has no such limit, {last} MB files a second: {with_interval(rows[0])}."
    return text


def limited(record: StudyRecord, here: measured.Here) -> str:
    """What limited the smallest and the largest fetch here. One connection can use one core at each end."""
    said = []
    for size in sorted({*sizes_here(here)[:1], *sizes_here(here)[-1:]}):
        for arm in ARMS:
            run = here[size, arm]
            seconds = measured.busy_seconds(run)
            used = [
                limit.Use("the server's core", "server", measured.server_seconds(run) / seconds),
                limit.Use("the client's core", "client", run.series["client_cpu_s"][0] / seconds),
            ]
            if bits := record.settings["link_bits"]:
                filled = measured.busy(run, NETWORK)[MEAN] * 8 / bits
                used.append(limit.Use(f"the link of {bits / 1e6:,.0f} Mb/s", "link", filled, "used"))
            if disk_share := run.series.get(procedure.DISK_BUSY):
                used.append(limit.Use("the disk", "disk", disk_share[0]))
            said.append(f"{size} MB {spell(arm)}: {limit.said(used)}")
    if not said:
        return ""
    return f"The four counters do not show which device was the bottleneck. Here, while a fetch was busy: {'; '.join(said)}."


def dilution(printed: Tables, here: measured.Here) -> str:
    """Processor time over the window against processor time while there was work."""
    mean, scatter = printed[PROCESSOR, MEAN].rows, printed[NETWORK, CV].rows
    last = max(mean)
    while_busy = {arm: mean[last][arm] / published.share_of(scatter[last][arm]) for arm in ARMS}
    text = (
        f"Idle time also dilutes processor time: the largest file's {arrow(mean[last])} % are {arrow(while_busy)} % of the time in "
        "which bytes moved, if the rest was idle; a smaller file only seems to cost less because more of its window is idle."
    )
    rows = []
    for size in sizes_here(here):
        over = {arm: measured.whole(here[size, arm], SERVER)[MEAN] for arm in ARMS}
        within = {arm: measured.busy(here[size, arm], SERVER)[MEAN] for arm in ARMS}
        if over["encrypted"] > 0:
            rows.append((size, over, within))
    if rows:
        said = "; ".join(
            f"{size} MB {arrow(over)} % over the window, {arrow(within)} % while busy"
            for size, over, within in (rows if len(rows) < 3 else [rows[0], rows[-1]])
        )
        factors = [within["encrypted"] / over["encrypted"] for _, over, within in rows]
        text += f" Here, for the server's own processes: {said}; over HTTPS that is {min(factors):.1f} to {max(factors):.0f} times what the window shows."
    return text


def others(here: measured.Here) -> str:
    """What a counter of the whole machine includes besides the server."""
    shares = [measured.whole(run, PROCESSOR)[MEAN] - measured.whole(run, SERVER)[MEAN] for run in here.values()]
    if not shares:
        return ""
    own = [measured.whole(run, SERVER)[MEAN] for run in here.values()]
    return (
        f"A counter of the whole machine includes all of its other work: here {min(shares):.3g} to {max(shares):.3g} % of processor time in a window "
        f"belongs to no server process, and {min(own):.3g} to {max(own):.3g} % does. The study's figures also include whatever its machine did besides serving."
    )


def few_samples(printed: Tables) -> str:
    """Which of the published differences exceed their own scatter."""
    line = published.window(printed, "plain")
    samples = (line.window if line else published.WINDOW) / published.INTERVAL
    mean = printed[PROCESSOR, MEAN].rows
    distance = {size: published.apart(printed, PROCESSOR, size, samples) for size in mean}
    lost = [size for size, errors in distance.items() if abs(errors) < TWO_ERRORS]
    changes = ", ".join(f"{size} MB {percent(mean[size])}" for size in mean)
    text = f"Processor time comes from one fetch in each row ({changes}), without an interval."
    if lost:
        text += (
            f" Even if its {samples:.0f} samples of {published.INTERVAL:g} s (both inferred) were independent, "
            f"{len(lost)} of the {len(mean)} differences would be less than "
            f"two standard errors by the study's own variances: {listed(lost)} MB."
        )
    first = min(mean)
    return f"{text} {first} MB: {percent(mean[first])}, {distance[first]:+.1f} standard errors."


# ── the other counters ────────────────────────────────────────────────────────────────────────────────────────────────


def memory(printed: Tables, here: measured.Here) -> str:
    """The direction of memory, against the table's heading."""
    mean, scatter = printed[MEMORY, MEAN].rows, printed[MEMORY, VARIANCE].rows
    rose = [size for size in mean if mean[size]["encrypted"] > mean[size]["plain"]]
    between_files = max(row["plain"] for row in mean.values()) - min(row["plain"] for row in mean.values())
    changes = [(mean[size]["encrypted"] - mean[size]["plain"]) / 1e6 for size in mean]
    widest = max(row[arm] for row in scatter.values() for arm in ARMS)
    text = (
        f"According to the study available memory decreases with TLS; in its table it is higher with TLS in {len(rose)} of {len(mean)} rows, by "
        f"{min(changes):+.2f} to {max(changes):+.2f} MB. Between two files of the same arm it differs by up to {between_files / 1e6:.1f} MB, a "
        f"difference that the variance within a window (a standard deviation of at most {widest**0.5 / 1e6:.2f} MB) does not show."
    )
    sizes = sizes_here(here)
    if sizes:
        levels = {size: {arm: measured.whole(here[size, arm], MEMORY)[MEAN] for arm in ARMS} for size in sizes}
        more = sum(row["encrypted"] > row["plain"] for row in levels.values())
        text += f" Here it is higher with TLS in {more} of {len(sizes)}."
    return text


def disk(printed: Tables, here: measured.Here) -> str:
    """A difference in a counter that encryption in transit can't affect."""
    text = (
        f'The disk queue is called "no impact" at {change_range(printed, DISK)}, and processor time an impact from {percent(first_row(printed))}: '
        "the study does not define how large a change counts as an impact. The server reads the same file from the same disk in both arms."
    )
    sizes = [size for size in sizes_here(here) if all(measured.whole(here[size, arm], DISK)[MEAN] > 0 for arm in ARMS)]
    if sizes:
        changes = [
            measured.whole(here[size, "encrypted"], DISK)[MEAN] / measured.whole(here[size, "plain"], DISK)[MEAN]
            for size in sizes
        ]
        text += (
            f" Here its mean with TLS is {min(changes):.2g} to {max(changes):.3g} times that without, in {len(sizes)} files, each read from the disk; "
            "this includes whatever else uses the disk."
        )
    return text


def first_row(printed: Tables) -> Levels:
    rows = printed[PROCESSOR, MEAN].rows
    return rows[min(rows)]


def once(here: measured.Here, record: StudyRecord) -> str:
    """One arm after the other, each file once, nothing proven."""
    text = (
        "Each file was fetched once, one arm after the other, so any change on the machine meanwhile looks like an effect of TLS. Nothing showed "
        "that either arm was what its name says, or which version and cipher were used."
    )
    if not here:
        return text
    negotiated = " ".join(record.encryption.get(each, "") for each in ("protocol", "cipher")).strip()
    return f"{text} Here both were proven, and the server's log confirms each of {len(here)} fetches ({negotiated})."


def threads(here: measured.Here) -> str:
    """Total, user and kernel time of each server thread for the largest file."""
    sizes = sizes_here(here)
    if not sizes:
        return ""
    size, said = sizes[-1], []
    for arm in ARMS:
        found = measured.threads(here[size, arm])
        shown = [
            f"{name} {seconds:.3f} s (user {user:.2f}, kernel {system:.2f})"
            for name, (seconds, user, system) in list(found.items())[:2]
        ]
        more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        said.append(f"{spell(arm)} {listed(shown) or 'nothing'}{more}")
    return f"The study names CPU time by thread and mode as future work. Here, for {size} MB: {'; '.join(said)}."


# ── what was not asked ────────────────────────────────────────────────────────────────────────────────────────────────


def sendfile(figures: Sequence[StudyFigure]) -> str:
    """How the cost splits, if there is a control."""
    rows = []
    for each in of(figures, measured.RATE):
        parts = {name: of(figures, name, each.operation) for name in (measured.WITHOUT_SENDFILE, measured.TLS_ITSELF)}
        if all(parts.values()):
            without, itself = (parts[name][0] for name in parts)
            rows.append(
                f"{each.operation} {with_interval(each)}, of it {with_interval(without)} and {with_interval(itself)}"
            )
    if not rows:
        return ""
    return (
        "TLS in the server's own memory can't use sendfile, so part of its cost is not cryptography. Files a second with TLS, and of that HTTP without "
        f"sendfile and TLS itself: {'; '.join(rows)}."
    )


def not_asked(figures: Sequence[StudyFigure]) -> str:
    """Handshakes, concurrency, small files."""
    text = "One client and large files involve almost no handshakes, no concurrency and no small files, which make up most of a web server's requests."
    rows = [
        each for each in figures if (each.figure, each.arm, each.workload) == (measured.RATE, "cost", measured.MANY)
    ]
    if not rows:
        return text
    said = "; ".join(
        f"{published.bytes_in_words(int(each.operation))} to {each.load:.0f} {with_interval(each)}"
        for each in rows
        if each.load is not None
    )
    return f"{text} By our method, files a second: {said}."


def of(figures: Sequence[StudyFigure], name: str, operation: str = "") -> list[StudyFigure]:
    """Costs by our method for one client."""
    return [
        each
        for each in figures
        if (each.figure, each.arm, each.workload) == (name, "cost", "") and operation in ("", each.operation)
    ]


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def change_range(printed: Tables, counter: str) -> str:
    """`14 % less to 27 % more`: from the smallest to the largest change of a counter's means."""
    changes = [row["encrypted"] / row["plain"] for row in printed[counter, MEAN].rows.values()]
    return bounds(min(changes), max(changes))


def percent(both: Levels) -> str:
    """`5.0 % more`, from two arms' levels."""
    return change(both["encrypted"] / both["plain"]) if both["plain"] else "-"


def arrow(both: Levels, scale: float = 1.0) -> str:
    return " → ".join(f"{both[arm] / scale:.3g}" for arm in ARMS)


def listed(names: Iterable[object]) -> str:
    """`3, 13 and 24`."""
    words = [str(each) for each in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def spell(arm: str) -> str:
    return "over HTTPS" if arm == "encrypted" else "over HTTP"
