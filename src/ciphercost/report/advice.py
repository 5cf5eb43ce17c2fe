"""The cheapest proven mechanism that meets your requirements, and the reasons why the others don't. Pure.

Only witnessed facts count: the layer, what the sessions negotiated (`encryption`), and the `findings`. A mechanism that was not proven, or
that has a finding of high severity, meets no requirement. Mechanisms are alternatives if they were measured on the same server, with the
same operation, clients and conditions. Each such set gets its own answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ciphercost.estimate import disturbance, failures, notation, plausible
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.report import cost_gate, match_cells
from ciphercost.report.words import cell_text, figure_text, verdict_text

Outcome = Literal["meets", "over", "unresolved", "fails"]
DONE, NONE, UNRESOLVED = 0, 3, 4
AUTHENTICATES = re.compile("GCM|SIV|CCM|POLY1305|HMAC", re.IGNORECASE)


def _layer(name: str) -> Callable[[Cell], str]:
    reasons = {
        "transit": "it doesn't encrypt connections",
        "rest": "it doesn't encrypt files",
        "column": "it doesn't encrypt columns",
    }

    def check(cell: Cell) -> str:
        if cell.layer != name:
            return reasons[name]
        if cell.factors.get("share", "all") != "all":
            return f"it encrypts only some requests (share={cell.factors['share']})"
        return ""

    return check


def _protocol(least: str) -> Callable[[Cell], str]:
    def check(cell: Cell) -> str:
        if reason := _layer("transit")(cell):
            return reason
        spoken = cell.encryption.get("protocol", "")
        version = spoken.removeprefix("TLSv")
        if version == spoken:
            return f"it uses {spoken or 'an unknown protocol'}, not TLS"
        return "" if version >= least else f"its protocol is {spoken}"

    return check


def _verified(cell: Cell) -> str:
    return "" if cell.encryption.get("verified") == "yes" else "the client did not verify the server"


def _authenticated(cell: Cell) -> str:
    """Why changed data may go undetected; empty if it is always detected.

    TLS always detects a change (RFC 8446, RFC 5246: AEAD or HMAC). In columns, every cell was tested with a changed value. At rest, every
    cipher that the mechanism names must authenticate, or have a MAC beside it.
    """
    if cell.layer == "transit":
        spoken = cell.encryption.get("protocol", "")
        return (
            "" if spoken.startswith("TLS") else f"changes to data in transit go undetected ({spoken or cell.mechanism})"
        )
    if cell.layer == "column":
        open_ = any(finding.code == "unauthenticated" for finding in cell.findings)
        return "a changed stored value decrypts without an error" if open_ else ""
    ciphers = [cipher for cipher in re.split(r", (?![^(]*\))", cell.encryption.get("cipher", "")) if cipher]
    bare = [cipher for cipher in ciphers if not AUTHENTICATES.search(cipher)]
    if not ciphers or bare:
        return f"changes to stored data go undetected ({', '.join(bare) or 'unknown cipher'})"
    return ""


def _forward(cell: Cell) -> str:
    """Why there is no forward secrecy; empty if there is. All of TLS 1.3 has it; in TLS 1.2 the suite's name shows it.

    Not every client reports its group.
    """
    encryption = cell.encryption
    if encryption.get("group") or encryption.get("protocol") == "TLSv1.3" or "DHE" in encryption.get("cipher", ""):
        return ""
    return "no ephemeral key exchange was seen: anyone who gets the key later can read everything"


def _post_quantum(cell: Cell) -> str:
    group = cell.encryption.get("group", "")
    return "" if "MLKEM" in group.upper() else f"its key exchange is {group or 'unknown'}"


def _nothing_in_clear(cell: Cell) -> str:
    codes = sorted(
        {f.code for f in cell.findings if f.code.endswith("-in-clear") or f.code == "engine-never-encrypted"}
    )
    return f"found unencrypted: {', '.join(codes)}" if codes else ""


def _key_off_server(cell: Cell) -> str:
    return "" if cell.encryption.get("implementation") == "by the client" else "the server has the key"


NEEDS: dict[str, tuple[str, str, Callable[[Cell], str]]] = {
    "in-transit": ("transit", "the whole connection is encrypted", _layer("transit")),
    "tls1.2": ("transit", "TLS 1.2 or newer was negotiated", _protocol("1.2")),
    "tls1.3": ("transit", "TLS 1.3 or newer was negotiated", _protocol("1.3")),
    "verified": ("transit", "the client checked the server's certificate", _verified),
    "forward-secrecy": ("transit", "each connection has keys of its own (ECDHE)", _forward),
    "post-quantum": ("transit", "the key exchange used a group with ML-KEM", _post_quantum),
    "at-rest": ("rest", "the server's files are encrypted", _layer("rest")),
    "nothing-in-clear": ("rest", "no file, log or temporary data was found unencrypted", _nothing_in_clear),
    "column": ("column", "values are encrypted in columns", _layer("column")),
    "key-off-server": ("column", "the application encrypts, and the server has no key", _key_off_server),
    "authenticated": ("", "changed data is rejected", _authenticated),
}
"""By requirement of --need: its layer (empty: any), its meaning, and a function that gives the reason why a cell fails it (empty: it meets it)."""
LAYERS = {"transit": "in-transit", "rest": "at-rest", "column": "column"}


class Candidate(msgspec.Struct, frozen=True):
    """One cell, and whether it meets the requirements."""

    cell: int
    name: str
    outcome: Outcome
    metric: str
    estimate: Estimate | None
    reasons: list[str]
    """Why it does not meet the requirements, or why that is unresolved."""
    protects: str = ""


class Advice(msgspec.Struct, frozen=True):
    """Alternatives on one server under one load, and the one that is advised."""

    title: str
    """What they have in common."""
    chosen: int | None
    """Number of the cell; None: none meets it for sure."""
    as_cheap: list[int]
    """Others that meet the requirements and whose intervals overlap the chosen one's: this run can't rank them."""
    candidates: list[Candidate]
    """The cheapest first; those that fail last."""


class Report(msgspec.Struct, frozen=True):
    """What `report --need --max-cost` says."""

    need: list[str]
    limit: float | None
    answers: list[Advice]
    exit_status: int


def needs(text: str) -> list[str]:
    """The words of `tls1.3,verified`. Raises UsageError naming the words that there are, and where two layers are asked of one mechanism."""
    requirements = [word.strip().lower() for word in text.split(",") if word.strip()]
    if not requirements:
        raise UsageError(f"--need is empty: {nearest('', NEEDS)}")
    for requirement in requirements:
        if requirement not in NEEDS:
            raise UsageError(f"--need: unknown requirement '{requirement}': {nearest(requirement, NEEDS)}")
    layers = list(dict.fromkeys(NEEDS[requirement][0] for requirement in requirements if NEEDS[requirement][0]))
    if len(layers) > 1:
        layer_names = " and ".join(LAYERS[layer] for layer in layers)
        raise UsageError(f"--need {text}: no mechanism provides both {layer_names}; ask for each separately")
    return requirements


def advise(result: Result, need: Sequence[str] = (), limit: float | None = None) -> Report:
    """The advice for each set of alternatives. `limit`: the highest acceptable cost, as a share (0.05: 5 %)."""
    layer = next((NEEDS[requirement][0] for requirement in need if NEEDS[requirement][0]), "")
    # A requirement on one layer implies that layer: `verified` requires an encrypted connection.
    wanted = list(dict.fromkeys([*([LAYERS[layer]] if layer else []), *need]))
    sets: dict[str, list[int]] = {}
    for number, cell in enumerate(result.cells):
        if not cell_text.is_control(cell) and cell.pair is None:
            sets.setdefault(_alike(cell), []).append(number)
    if layer:  # A set without a cell of that layer has no answer.
        sets = {
            like: those for like, those in sets.items() if any(result.cells[number].layer == layer for number in those)
        }
    answers = [_advice(result, numbers, wanted, limit) for numbers in sets.values()]
    return Report(list(need), limit, answers, _status(answers))


def _status(answers: Sequence[Advice]) -> int:
    if answers and all(answer.chosen is not None for answer in answers):
        return DONE
    open_ = [answer for answer in answers if answer.chosen is None]
    may = [any(one.outcome == "unresolved" for one in answer.candidates) for answer in open_]
    return UNRESOLVED if may and all(may) else NONE


def _alike(cell: Cell) -> str:
    """What alternatives have in common: everything but the mechanism and its own settings."""
    mechanism_factors = cell.mechanism_factors
    load = {
        name: value
        for name, value in cell.factors.items()
        if name not in mechanism_factors and name not in match_cells.SEEDED
    }
    # A cell that failed early may have no factors; it belongs to the set of its workload.
    return repr(
        (cell.engine, cell.workload, cell.regime, cell.client, cell.conditions, sorted(load.items()), cell.clients)
    )


def _advice(result: Result, numbers: Sequence[int], need: Sequence[str], limit: float | None) -> Advice:
    cells = [result.cells[number] for number in numbers]
    candidates = [
        _candidate(number, name, cell, need, limit)
        for number, name, cell in zip(numbers, _names(cells), cells, strict=True)
    ]
    ranks: tuple[Outcome, ...] = ("meets", "unresolved", "over", "fails")
    candidates.sort(key=lambda candidate: (ranks.index(candidate.outcome), _dear(candidate)))
    meets = [candidate for candidate in candidates if candidate.outcome == "meets"]
    chosen = meets[0] if meets else None
    return Advice(
        title=" · ".join(word for word in _title(cells) if word),
        chosen=chosen.cell if chosen else None,
        as_cheap=[candidate.cell for candidate in meets[1:] if chosen and _overlap(chosen, candidate)],
        candidates=candidates,
    )


def _title(cells: Sequence[Cell]) -> list[str]:
    headings = [cell_text.heading_words(cell) for cell in cells]
    return [
        headings[0][name]
        for name in headings[0]
        if name != "mechanism" and len({heading[name] for heading in headings}) == 1
    ]


def _names(cells: Sequence[Cell]) -> list[str]:
    """Each cell's mechanism, and its factors that differ among the alternatives."""
    names = []
    for cell in cells:
        alike = [alternative for alternative in cells if alternative.mechanism == cell.mechanism]
        factors = [
            f"{name}={value}"
            for name, value in cell.factors.items()
            if value and len({alternative.factors.get(name) for alternative in alike}) > 1
        ]
        version = [cell.version] if len({alternative.version for alternative in cells}) > 1 else []
        names.append(" ".join([cell.mechanism, *factors, *version]))
    return names


def _candidate(number: int, name: str, cell: Cell, need: Sequence[str], limit: float | None) -> Candidate:
    metric = figure_text.main_metric(cell)
    estimate = cell.overhead.get(metric)

    def judged_as(outcome: Outcome, reasons: list[str]) -> Candidate:
        return Candidate(number, name, outcome, metric, estimate, reasons, cell.protects)

    if cell.status != "ok" or estimate is None:
        return judged_as("fails", [f"{cell.status}: {cell.reason}" if cell.reason else cell.status])
    reasons = [reason for requirement in need if (reason := NEEDS[requirement][2](cell))]
    reasons += [f"finding of high severity: {finding.text}" for finding in cell.findings if finding.severity == "high"]
    if reasons:
        return judged_as("fails", list(dict.fromkeys(reasons)))
    if plausible.is_no_cost(cell):
        return judged_as("unresolved", [verdict_text.doubt(cell)])
    if disturbance.state(cell) == "uneven" and limit is not None:
        return judged_as("unresolved", [cost_gate.UNEVEN.format(disturbance.counted(cell.disturbance))])
    if failures.differ(cell.failures) and limit is None:
        return judged_as("unresolved", [verdict_text.failing(cell)])
    if limit is None:
        return judged_as("meets", [])
    passed = cost_gate.passed(metric, estimate, limit)
    judged = cost_gate.with_failures(metric, cell, limit)
    if judged != passed:
        return judged_as("over" if judged == "fail" else "unresolved", [verdict_text.failing(cell)])
    if passed == "pass":
        return judged_as("meets", [])
    budget = f"{limit * 100:.10g} %"
    if passed != cost_gate.robustly(metric, estimate, limit) or cost_gate.differ(cell):
        return judged_as("over" if passed == "fail" else "unresolved", [cost_gate.hidden(metric, estimate)])
    if passed == "fail":
        return judged_as("over", [f"its whole interval is above {budget}"])
    return judged_as("unresolved", [f"its interval includes {budget}"])


def _dear(candidate: Candidate) -> float:
    if candidate.estimate is None:
        return 0.0
    return -candidate.estimate.ratio if candidate.metric == "throughput" else candidate.estimate.ratio


def _overlap(one: Candidate, other: Candidate) -> bool:
    a, b = one.estimate, other.estimate
    return a is not None and b is not None and one.metric == other.metric and a.low <= b.high and b.low <= a.high


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines(report: Report, result: Result) -> list[str]:
    """The advice as unwrapped lines of text. An indented line belongs to the line above it."""
    asked = [*report.need, *([f"at most {report.limit * 100:.10g} %"] if report.limit is not None else [])]
    text_lines = [f"required: {', '.join(asked)}"]
    for answer in report.answers:
        text_lines += ["", answer.title, *(f"  {line}" for line in _lines(answer, result))]
    if not report.answers:
        text_lines.append(
            "this run has no cell of that layer" if report.need else "this run has no cell with encryption"
        )
    return text_lines


def _lines(advice: Advice, result: Result) -> list[str]:
    by_number = {candidate.cell: candidate for candidate in advice.candidates}
    text_lines = []
    if advice.chosen is not None:
        best = by_number[advice.chosen]
        text_lines.append(f"{best.name}: {_cost(best)}")
        text_lines.append(f"  {cell_text.proof_line(result.cells[best.cell])}")
        if best.protects:
            text_lines.append(
                f"  protects {best.protects}" if best.protects.startswith("against") else f"  protects: {best.protects}"
            )
        if advice.as_cheap:
            names = ", ".join(f"{by_number[number].name} ({_cost(by_number[number])})" for number in advice.as_cheap)
            text_lines.append(f"  no difference in cost resolved from: {names}")
    elif any(candidate.outcome == "unresolved" for candidate in advice.candidates):
        text_lines.append(
            "no mechanism is certain to meet the requirements; a longer --time may resolve those that may"
        )
    else:
        text_lines.append("no measured mechanism meets the requirements")
    for candidate in advice.candidates:
        if candidate.cell == advice.chosen or candidate.cell in advice.as_cheap:
            continue
        cost = f"{_cost(candidate)}; " if candidate.estimate else ""
        head = {
            "meets": "costs more",
            "unresolved": "may meet the requirements",
            "over": "over budget",
            "fails": "does not meet the requirements",
        }[candidate.outcome]
        text_lines.append(f"{head}: {candidate.name}: {cost}{'; '.join(candidate.reasons)}".removesuffix("; "))
    return text_lines


def _cost(candidate: Candidate) -> str:
    assert candidate.estimate is not None
    changed = notation.of_what(
        figure_text.cost(candidate.metric, candidate.estimate),
        figure_text.SHORT.get(candidate.metric, figure_text.LABELS[candidate.metric]),
    )
    return f"{changed} ({figure_text.bounds(candidate.metric, candidate.estimate)})"
