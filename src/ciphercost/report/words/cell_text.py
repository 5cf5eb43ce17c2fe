"""Text on cells: headings, labels, proofs, protection and stored bytes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ciphercost.estimate.notation import interval, number, of_what, worded
from ciphercost.model.result import Cell, Result
from ciphercost.model.shares import in_percent
from ciphercost.model.slices import Finding, Proof, Severity
from ciphercost.model.spec import ARMS
from ciphercost.plan import conditions
from ciphercost.report.words import command_text, pair_text
from ciphercost.report.words.figure_text import (
    UNRESOLVED,
    bounds,
    cost,
    cost_metrics,
    growth,
    resolution,
    short,
)

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")


def standing(cell: Cell) -> str:
    """`UNPROVEN`, `FAILED`, … if the cell's status is not ok, with or without figures; otherwise empty."""
    return "" if cell.status == "ok" else cell.status.upper().replace("-", " ")


def no_number(cell: Cell, reasons_given: set[str]) -> str:
    """Why a cell has no number; a reason that the report has given already is not repeated.

    `reasons_given`: those; gets this one too.
    """
    if cell.reason in reasons_given:
        return f"{standing(cell)}{' for the reason given above' if cell.reason else ''}"
    reasons_given.add(cell.reason)
    return f"{standing(cell)}: {cell.reason}"


def places(result: Result, cells: Iterable[Cell]) -> set[int]:
    """Where these very cells stand in the result: their numbers, as fits name them."""
    ids = {id(cell) for cell in cells}
    return {number for number, cell in enumerate(result.cells) if id(cell) in ids}


def is_control(cell: Cell) -> bool:
    """Whether the cell is a control: it encrypts nothing, and its effect is known or absent."""
    return cell.layer == "control"


def on_and_off(cells: Sequence[Cell]) -> str:
    """`the same load ran with TLS and without`: how the arms of these cells differ."""
    if any(cell.pair for cell in cells):
        return "both arms were encrypted, each with its own setting"
    names = {cell.mechanism for cell in cells if not is_control(cell)}
    if len(names) != 1:
        return "the same load ran with encryption and without"
    (what,) = names
    return f"the same load ran with {'TLS' if what == 'tls' else what} and without"


def logged(cell: Cell) -> Iterator[str]:
    """The number of handshakes in the server's own log, and of requests that came before a handshake was complete."""
    full, resumed = cell.handshakes.get("full", 0), cell.handshakes.get("resumed", 0)
    if full + resumed:
        yield f"server's log: {full + resumed:,} handshakes under load, {resumed:,} resumed ({in_percent(resumed / (full + resumed))})"
    arm = cell.arms.get("encrypted", {})
    if early := arm.get("early", 0):
        connects = arm["connects"]
        yield f"0-RTT: the server took the first request early on {early:,} of {connects:,} connections ({in_percent(early / connects)})"


def retried(cell: Cell) -> Iterator[str]:
    """How many operations began again because they were in conflict with others."""
    counts = {arm: facts["retries"] for arm in ARMS if (facts := cell.arms.get(arm, {})).get("retries")}
    if not counts:
        return
    told = [
        f"{counts.get(arm, 0):,} times in {facts['operations']:,} operations of the {arm} arm"
        for arm in ARMS
        if (facts := cell.arms.get(arm, {})).get("operations")
    ]
    text = f"tried again after a serialization failure or a deadlock: {', '.join(told)}"
    yield text if cell.pair is None else cell.pair.worded(text)


def link(cell: Cell) -> Iterator[str]:
    """How many packets the link really lost."""
    if sent := cell.link.get("sent"):
        lost = cell.link["lost"]
        yield f"the link lost {lost:,} of {sent:,} packets ({in_percent(lost / sent, 2)})"


def hop(cell: Cell) -> Iterator[str]:
    """What stands between client and server, and the CPU time that it takes itself."""
    if not (title := cell.encryption.get("hop")):
        return
    plain, encrypted = (cell.arms.get(arm, {}).get("hop_cpu_us_per_op") for arm in ARMS)
    if encrypted is None:
        yield f"through {title}"
        return
    before = "" if plain is None else f"{number(plain)} → "
    text = f"through {title}, whose own CPU per operation is {before}{number(encrypted)} µs"
    if (added := cell.added.get("hop_cpu")) is not None:
        text += f" (added: {number(added.mean)} µs, {number(added.low)} to {number(added.high)})"
    yield text


def fleet(cell: Cell) -> Iterator[str]:
    """Which agents made the load, and how far apart they started, if there were several."""
    if (cell_fleet := cell.fleet) is None:
        return
    where = "near the server" if cell_fleet.placement == "near-server" else f"on {len(cell_fleet.nodes)} nodes"
    text = f"load from {cell_fleet.agents} agents {where}"
    if (skew := cell_fleet.start_skew) is not None:
        text += (
            f"; start skew p99 {number(skew.p99_ms)} ms over {cell_fleet.agents} agents (median {number(skew.p50_ms)}, maximum "
            f"{number(skew.max_ms)} ms, {skew.slices} slices)"
        )
    if others := [clock for clock in cell_fleet.clocks if clock.error_s]:
        text += f"; clocks known within {number(max(clock.error_s for clock in others) * 1e3)} ms"
    yield text


def stored(cell: Cell) -> Iterator[tuple[str, str, str]]:
    """Stored bytes of tables and indexes, if the server counts them: (`tables`, `49.3 % more`, `164 → 246 KB`)."""
    for key, what in (("table_bytes", "tables"), ("index_bytes", "indexes")):
        plain, encrypted = (cell.stored.get(arm, {}).get(key, 0) for arm in ARMS)
        if plain and encrypted:
            both = f"{number(plain / 1e3)} → {number(encrypted / 1e3)} KB"
            yield what, growth(encrypted / plain), both


def costs(cell: Cell) -> Iterator[str]:
    """The main figures of a cell as text. Unresolved ones are marked."""
    for key in cost_metrics(cell):
        doubt = UNRESOLVED * (resolution(cell, key) == "unresolved")
        yield of_what(cost(key, cell.overhead[key]), short(cell, key)) + doubt
    for what, words, _ in stored(cell):
        yield f"{words} stored, {what}"


OLD_WORDS = (
    "against data on the network: reading and changing it between",
    "data on the network from being read or changed between",
)
"""How records of an early version say what TLS protects, and how it is said now."""


def protection(cell: Cell) -> str:
    """What the mechanism protects, at rest against what."""
    return cell.protects.replace(*OLD_WORDS)


def protects(cell: Cell) -> Iterator[str]:
    """What the mechanism protects, then its findings by severity."""
    if cell.protects:
        yield protection(cell)
    for finding in by_severity(cell.findings):
        yield f"finding, {finding.severity}: {finding.code}"


STORAGE: tuple[tuple[str, str], ...] = (
    ("sequential_read", "sequential read"),
    ("random_read", "random read"),
    ("sequential_write", "sequential write"),
    ("random_write", "random write"),
    ("fsync_latency", "write and fsync"),
)


def storage(cell: Cell) -> Iterator[tuple[str, str, str, str]]:
    """fio's measurement of both directories, without a server: (`random read`, `3.1 % slower`, its interval, both levels)."""
    for key, label in STORAGE:
        if estimate := cell.storage.get(key):
            late = key == "fsync_latency"
            direction = ("higher", "lower") if late else ("faster", "slower")
            scale, unit = (1.0, "µs") if late else (1e6, "MB/s")
            both = [cell.arms.get(arm, {}).get("storage", {}).get(key, 0.0) / scale for arm in ARMS]
            change, ends = worded(estimate, *direction), interval(estimate, *direction)
            yield label, change, ends, f"{' → '.join(map(number, both))} {unit}"


def taken_apart(cell: Cell, everything: Sequence[Cell]) -> Iterator[str]:
    """`of which no sendfile: 12.0 % fewer (10.1–14.0 %); TLS itself: 30 % …`: the cost, split by its control."""
    for name, left in cell.beside.items():
        if cell.control is None or cell.control >= len(everything):
            continue
        control = everything[cell.control]
        if "throughput" not in control.overhead:
            continue
        without = control.overhead["throughput"]
        words = (
            f"of which {name.replace('-', ' ')}: {cost('throughput', without)} ({bounds('throughput', without)}); "
            f"{cell.mechanism.upper()} itself: {cost('throughput', left)} ({bounds('throughput', left)})"
        )
        arms, control_arms = cell.arms, control.arms
        cpu = [
            float(arm.get("server_cpu_us_per_op", 0))
            for arm in (arms["plain"], control_arms["encrypted"], arms["encrypted"])
        ]
        if all(cpu):
            words += f"; server CPU/op {' → '.join(map(number, cpu))} µs"
        yield words


def left_open(finding: Finding) -> str:
    """A finding and its fix."""
    return finding.text + (f". Fixed by: {finding.closes}" if finding.closes else "")


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: SEVERITIES.index(one.severity))


def server_name(cell: Cell) -> str:
    """`postgresql 18.4`; of the user's web site, its host."""
    return cell.place or f"{cell.engine} {cell.version}".strip()


def heading(cell: Cell, without: tuple[str, ...] = ()) -> str:
    """`postgresql 18.4 · tls · point-select · 4 clients · capacity`; `without`: the words to leave out."""
    return " · ".join(word for name, word in heading_words(cell).items() if word and name not in without)


def heading_words(cell: Cell, *, brief: bool = False) -> dict[str, str]:
    """The words of a heading, by name. `brief`: of a label, which does not explain its words."""
    return {
        "engine": server_name(cell),
        "mechanism": cell.mechanism,
        "arms": pair_text.arrow(cell.pair) if cell.pair else "",
        "workload": cell.workload,
        # An imported record may not give the number of clients, and a run that was cut off early does not know it yet.
        "clients": f"{cell.clients} client{'s' * (cell.clients != 1)}" if cell.clients else "",
        "regime": cell.regime,
        "client": cell.client,
        "conditions": conditions.worded(cell.conditions, brief=brief),
        # Only its factors distinguish an imported cell from others.
        "factors": " ".join(f"{name}={value}" for name, value in cell.factors.items()) if cell.imported else "",
    }


def imported_basis(cells: Iterable[Cell]) -> str:
    """`4 plain runs, 4 encrypted runs by pgbench 17.11`: the runs behind imported figures."""
    return "; ".join(dict.fromkeys(f"{runs_of(cell)} by {cell.imported.tool}" for cell in cells if cell.imported))


def runs_of(cell: Cell) -> str:
    """`3 plain runs, 1 encrypted run`."""
    counts = {arm: cell.arms[arm]["runs"] for arm in ARMS if arm in cell.arms}
    return ", ".join(f"{count} {arm} run{'s' * (count != 1)}" for arm, count in counts.items())


FIPS_MODES = {"server": ", in FIPS mode", "client": ", not in FIPS mode"}
"""What a cell with `fips=on` adds to the libraries of each end."""


def proof_line(cell: Cell) -> str:
    """`proven: TLSv1.3 TLS_AES_256_GCM_SHA384 …; plain arm unencrypted; witnesses: client, server, wire; OpenSSL …`."""
    if cell.mode == "imported":
        return "NOT PROVEN: no server report, packet capture or disk scan shows that only one arm was encrypted"
    if cell.status == "unproven":
        return command_text.NOT_SEEN
    witnesses = sorted({proof.witness for proof in cell.proofs if proof.passed})
    if cell.layer == "control":
        shown = f"witnesses: {', '.join(witnesses)}" if witnesses else "nothing to prove"
        return f"control: neither arm is encrypted; {shown}"
    modes = FIPS_MODES if cell.factors.get("fips") == "on" and cell.pair is None else {}
    libraries = [
        f"{cell.encryption[f'{end}_library']} ({end}{modes.get(end, '')})"
        for end in (("server", "client") if cell.layer != "rest" else ())
        if cell.encryption.get(f"{end}_library")
    ]
    between = ", " if cell.layer == "rest" else " "
    if cell.pair:
        both = (cell.pair.reference, cell.pair.compared)
        how = "; ".join(f"{arm.name}: {_negotiated(arm.encryption, between) or 'encrypted'}" for arm in both)
    else:
        how = f"{_negotiated(cell.encryption, between)}; plain arm unencrypted"
    return f"proven: {how}; witnesses: {', '.join(witnesses)}" + "; " * bool(libraries) + ", ".join(libraries)


VERIFIED_BY = {
    "password": " by the password",
    "channel binding": " by channel binding",
    "chain": " (its chain, not its name)",
}
"""How the client knew the server, where that is not by chain and name."""


def _negotiated(encryption: Mapping[str, str], between: str) -> str:
    """`TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 RSA 2048 peer verified`."""
    words = [
        encryption[name]
        for name in ("http", "protocol", "cipher", "group", "peer_key", "implementation")
        if encryption.get(name)
    ]
    if encryption.get("verified"):
        by = VERIFIED_BY.get(encryption.get("verified_by", ""), "")
        said = {"yes": f"peer verified{by}", "no": "peer NOT verified"}
        words.append(said.get(encryption["verified"], "peer perhaps not verified"))
    if encryption.get("client_certificate"):
        words.append(f"client certificate {encryption['client_certificate']}")
    return between.join(words)


def in_common(cells: Sequence[Cell]) -> str:
    """`postgresql 18.4 · tls · point-select`: the heading words that all cells share."""
    headings = _headings(cells, shared=True)
    first = headings[0] if headings else {}
    return " · ".join(value for name, value in first.items() if value and len({words[name] for words in headings}) == 1)


def _headings(cells: Sequence[Cell], *, shared: bool) -> list[dict[str, str]]:
    """Each cell's heading words, with only those conditions and factors that all cells share, or only the others."""

    def some(pairs: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        common = set.intersection(*(set(settings.items()) for settings in pairs)) if pairs else set()
        return [dict(pair for pair in settings.items() if (pair in common) == shared) for settings in pairs]

    triples = zip(cells, some([cell.conditions for cell in cells]), some([cell.factors for cell in cells]), strict=True)
    return [
        heading_words(msgspec.structs.replace(cell, conditions=conditions_, factors=factors), brief=True)
        for cell, conditions_, factors in triples
    ]


def names(cells: Sequence[Cell], without: Sequence[str] = ()) -> list[str]:
    """A label for each cell that distinguishes it from the others of its run: the words that differ, and its variant.

    Labels omit what all cells share, repetitions (`8 clients · clients=8`), and the words of `without`. Controls among other cells end in
    `(control)`.
    """
    if len(cells) == 1 and not without:
        (only,) = cells
        words = heading_words(only)
        parts = [words[name] for name in ("engine", "mechanism", "arms", "workload")]
        return [
            " · ".join(
                [*(part for part in parts if part and part not in only.variant.split()), *filter(None, [only.variant])]
            )
        ]
    headings = _headings(cells, shared=False)
    apart = [name for name in (headings[0] if headings else ()) if len({words[name] for words in headings}) > 1]
    tokens = [cell.variant.split() for cell in cells]
    common = set.intersection(*map(set, tokens)) if len(cells) > 1 else set()
    labels = []
    for cell, cell_words, cell_tokens in zip(cells, headings, tokens, strict=True):
        # A control's variant includes its mechanism, and a matrix's variant may repeat a word of the heading.
        parts = [
            cell_words[name]
            for name in apart
            if cell_words[name] and cell_words[name] not in cell_tokens and name not in without
        ]
        named_elsewhere = {cell.mechanism} if "mechanism" in without else set()
        variant = [
            token
            for token in cell_tokens
            if token not in common | named_elsewhere and not cell_words.get(token.partition("=")[0])
        ]
        label = " · ".join([*parts, *[" ".join(variant)] * bool(variant)])
        labels.append(label or "no other conditions" * ("conditions" in apart))
    if without:
        return labels
    mixed = len({is_control(cell) for cell in cells}) > 1
    return [
        f"{name} (control)" if mixed and is_control(cell) else name
        for cell, name in zip(cells, distinct(cells, labels), strict=True)
    ]


def against(cells: Sequence[Cell], cell: Cell) -> str:
    """What a cell that shares its sessions is compared with, by its own words: `cipher=aes256-gcm`."""
    group = [member for member in cells if member.group and member.group == cell.group] or list(cells)
    return reference_name(next((member for member in group if not is_control(member)), group[0]))


def reference_name(reference: Cell) -> str:
    """`cipher=aes256-gcm`: the first value of each option that an experiment varies."""
    return reference.variant or heading(reference)


def distinct(cells: Sequence[Cell], labels: list[str]) -> list[str]:
    """Unique labels: those that occur twice get the factors that differ, or else the cells' numbers."""
    alike: dict[str, list[Cell]] = {}
    for cell, name in zip(cells, labels, strict=True):
        alike.setdefault(name, []).append(cell)
    extended = []
    for cell, name, those in zip(cells, labels, [alike[name] for name in labels], strict=True):
        differing = [
            f"{factor}={value}"
            for factor, value in cell.factors.items()
            if value and len({twin.factors.get(factor) for twin in those}) > 1
        ]
        extended.append(" · ".join(word for word in (name, *differing) if word) or heading(cell))
    twice = {name for name, count in Counter(extended).items() if count > 1}
    return [f"{name} (cell {number})" if name in twice else name for number, name in enumerate(extended, start=1)]


def without_number(cell: Cell) -> str:
    """`failed: the disk is full`: why a cell has no number."""
    words = {"failed": "failed", "unproven": "was not proven", "no-steady-state": "never reached a steady state"}
    return f"{words.get(cell.status, cell.status)}{f': {cell.reason}' if cell.reason else ''}".rstrip(".")


def failed_proof(proof: Proof) -> str:
    """`FAILED server witness, encrypted arm: ssl is off`."""
    return f"FAILED {proof.witness} witness, {proof.arm} arm: {proof.detail}"
