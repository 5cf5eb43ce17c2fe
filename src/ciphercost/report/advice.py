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
    said = {
        "transit": "it doesn't encrypt connections",
        "rest": "it doesn't encrypt files",
        "column": "it doesn't encrypt columns",
    }

    def check(cell: Cell) -> str:
        if cell.layer != name:
            return said[name]
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
        open_ = any(each.code == "unauthenticated" for each in cell.findings)
        return "a changed stored value decrypts without an error" if open_ else ""
    ciphers = [each for each in re.split(r", (?![^(]*\))", cell.encryption.get("cipher", "")) if each]
    bare = [each for each in ciphers if not AUTHENTICATES.search(each)]
    if not ciphers or bare:
        return f"changes to stored data go undetected ({', '.join(bare) or 'unknown cipher'})"
    return ""


def _forward(cell: Cell) -> str:
    """Why there is no forward secrecy; empty if there is. All of TLS 1.3 has it; in TLS 1.2 the suite's name shows it.

    Not every client reports its group.
    """
    said = cell.encryption
    if said.get("group") or said.get("protocol") == "TLSv1.3" or "DHE" in said.get("cipher", ""):
        return ""
    return "no ephemeral key exchange was seen: anyone who gets the key later can read everything"


def _post_quantum(cell: Cell) -> str:
    group = cell.encryption.get("group", "")
    return "" if "MLKEM" in group.upper() else f"its key exchange is {group or 'unknown'}"


def _nothing_in_clear(cell: Cell) -> str:
    found = sorted(
        {f.code for f in cell.findings if f.code.endswith("-in-clear") or f.code == "engine-never-encrypted"}
    )
    return f"found unencrypted: {', '.join(found)}" if found else ""


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
    found = [each.strip().lower() for each in text.split(",") if each.strip()]
    if not found:
        raise UsageError(f"--need is empty: {nearest('', NEEDS)}")
    for each in found:
        if each not in NEEDS:
            raise UsageError(f"--need: unknown requirement '{each}': {nearest(each, NEEDS)}")
    layers = list(dict.fromkeys(NEEDS[each][0] for each in found if NEEDS[each][0]))
    if len(layers) > 1:
        said = " and ".join(LAYERS[each] for each in layers)
        raise UsageError(f"--need {text}: no mechanism provides both {said}; ask for each separately")
    return found


def advise(result: Result, need: Sequence[str] = (), limit: float | None = None) -> Report:
    """The advice for each set of alternatives. `limit`: the highest acceptable cost, as a share (0.05: 5 %)."""
    layer = next((NEEDS[each][0] for each in need if NEEDS[each][0]), "")
    # A requirement on one layer implies that layer: `verified` requires an encrypted connection.
    wanted = list(dict.fromkeys([*([LAYERS[layer]] if layer else []), *need]))
    sets: dict[str, list[int]] = {}
    for number, cell in enumerate(result.cells):
        if not cell_text.is_control(cell) and cell.pair is None:
            sets.setdefault(_alike(cell), []).append(number)
    if layer:  # A set without a cell of that layer has no answer.
        sets = {like: those for like, those in sets.items() if any(result.cells[each].layer == layer for each in those)}
    answers = [_advice(result, numbers, wanted, limit) for numbers in sets.values()]
    return Report(list(need), limit, answers, _status(answers))


def _status(answers: Sequence[Advice]) -> int:
    if answers and all(each.chosen is not None for each in answers):
        return DONE
    open_ = [each for each in answers if each.chosen is None]
    may = [any(one.outcome == "unresolved" for one in each.candidates) for each in open_]
    return UNRESOLVED if may and all(may) else NONE


def _alike(cell: Cell) -> str:
    """What alternatives have in common: everything but the mechanism and its own settings."""
    own = cell.mechanism_factors
    load = {name: value for name, value in cell.factors.items() if name not in own and name not in match_cells.SEEDED}
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
    candidates.sort(key=lambda each: (ranks.index(each.outcome), _dear(each)))
    meets = [each for each in candidates if each.outcome == "meets"]
    chosen = meets[0] if meets else None
    return Advice(
        title=" · ".join(word for word in _title(cells) if word),
        chosen=chosen.cell if chosen else None,
        as_cheap=[each.cell for each in meets[1:] if chosen and _overlap(chosen, each)],
        candidates=candidates,
    )


def _title(cells: Sequence[Cell]) -> list[str]:
    said = [cell_text.heading_words(cell) for cell in cells]
    return [said[0][name] for name in said[0] if name != "mechanism" and len({each[name] for each in said}) == 1]


def _names(cells: Sequence[Cell]) -> list[str]:
    """Each cell's mechanism, and its factors that differ among the alternatives."""
    names = []
    for cell in cells:
        alike = [each for each in cells if each.mechanism == cell.mechanism]
        factors = [
            f"{name}={value}"
            for name, value in cell.factors.items()
            if value and len({each.factors.get(name) for each in alike}) > 1
        ]
        version = [cell.version] if len({each.version for each in cells}) > 1 else []
        names.append(" ".join([cell.mechanism, *factors, *version]))
    return names


def _candidate(number: int, name: str, cell: Cell, need: Sequence[str], limit: float | None) -> Candidate:
    metric = figure_text.main_metric(cell)
    estimate = cell.overhead.get(metric)

    def said(outcome: Outcome, reasons: list[str]) -> Candidate:
        return Candidate(number, name, outcome, metric, estimate, reasons, cell.protects)

    if cell.status != "ok" or estimate is None:
        return said("fails", [f"{cell.status}: {cell.reason}" if cell.reason else cell.status])
    reasons = [reason for each in need if (reason := NEEDS[each][2](cell))]
    reasons += [f"finding of high severity: {each.text}" for each in cell.findings if each.severity == "high"]
    if reasons:
        return said("fails", list(dict.fromkeys(reasons)))
    if plausible.is_no_cost(cell):
        return said("unresolved", [verdict_text.doubt(cell)])
    if disturbance.state(cell) == "uneven" and limit is not None:
        return said("unresolved", [cost_gate.UNEVEN.format(disturbance.counted(cell.disturbance))])
    if failures.differ(cell.failures) and limit is None:
        return said("unresolved", [verdict_text.failing(cell)])
    if limit is None:
        return said("meets", [])
    passed = cost_gate.passed(metric, estimate, limit)
    judged = cost_gate.with_failures(metric, cell, limit)
    if judged != passed:
        return said("over" if judged == "fail" else "unresolved", [verdict_text.failing(cell)])
    if passed == "pass":
        return said("meets", [])
    budget = f"{limit * 100:.10g} %"
    if passed != cost_gate.robustly(metric, estimate, limit) or cost_gate.differ(cell):
        return said("over" if passed == "fail" else "unresolved", [cost_gate.hidden(metric, estimate)])
    if passed == "fail":
        return said("over", [f"its whole interval is above {budget}"])
    return said("unresolved", [f"its interval includes {budget}"])


def _dear(each: Candidate) -> float:
    if each.estimate is None:
        return 0.0
    return -each.estimate.ratio if each.metric == "throughput" else each.estimate.ratio


def _overlap(one: Candidate, other: Candidate) -> bool:
    a, b = one.estimate, other.estimate
    return a is not None and b is not None and one.metric == other.metric and a.low <= b.high and b.low <= a.high


# ── in words ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines(report: Report, result: Result) -> list[str]:
    """The advice as unwrapped lines of text. An indented line belongs to the line above it."""
    asked = [*report.need, *([f"at most {report.limit * 100:.10g} %"] if report.limit is not None else [])]
    said = [f"required: {', '.join(asked)}"]
    for each in report.answers:
        said += ["", each.title, *(f"  {line}" for line in _lines(each, result))]
    if not report.answers:
        said.append("this run has no cell of that layer" if report.need else "this run has no cell with encryption")
    return said


def _lines(advice: Advice, result: Result) -> list[str]:
    by_number = {each.cell: each for each in advice.candidates}
    said = []
    if advice.chosen is not None:
        best = by_number[advice.chosen]
        said.append(f"{best.name}: {_cost(best)}")
        said.append(f"  {cell_text.proof_line(result.cells[best.cell])}")
        if best.protects:
            said.append(
                f"  protects {best.protects}" if best.protects.startswith("against") else f"  protects: {best.protects}"
            )
        if advice.as_cheap:
            names = ", ".join(f"{by_number[number].name} ({_cost(by_number[number])})" for number in advice.as_cheap)
            said.append(f"  no difference in cost resolved from: {names}")
    elif any(each.outcome == "unresolved" for each in advice.candidates):
        said.append("no mechanism is certain to meet the requirements; a longer --time may resolve those that may")
    else:
        said.append("no measured mechanism meets the requirements")
    for each in advice.candidates:
        if each.cell == advice.chosen or each.cell in advice.as_cheap:
            continue
        cost = f"{_cost(each)}; " if each.estimate else ""
        head = {
            "meets": "costs more",
            "unresolved": "may meet the requirements",
            "over": "over budget",
            "fails": "does not meet the requirements",
        }[each.outcome]
        said.append(f"{head}: {each.name}: {cost}{'; '.join(each.reasons)}".removesuffix("; "))
    return said


def _cost(each: Candidate) -> str:
    assert each.estimate is not None
    changed = notation.of_what(
        figure_text.cost(each.metric, each.estimate),
        figure_text.SHORT.get(each.metric, figure_text.LABELS[each.metric]),
    )
    return f"{changed} ({figure_text.bounds(each.metric, each.estimate)})"
