"""What a reader with ten seconds must see of a run: the answer, what it means elsewhere, what it protects and what limits it. Pure.

Terminal, Markdown and page render it before anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ciphercost.estimate import plausible, unit_prediction
from ciphercost.model.constrained_types import BY_SOCKET
from ciphercost.model.result import Cell, Part, Result
from ciphercost.report import disturbed
from ciphercost.report.words import (
    added_sentences,
    added_text,
    cell_text,
    connection_text,
    operation_text,
    pair_text,
    replication_text,
    rotation_text,
    unit_cost_text,
    verdict_text,
)

LIMITING = {
    BY_SOCKET: "the cost{} is that of TCP and TLS together",
    "paced": "large answers{} may cost more",
    "link-overflowed": "the cost{} is that of a link that loses more packets",
    "server-closes": "the cost{} contains new connections",
    "not-resumed": "the cost{} is that of full handshakes",
    "not-early": "the cost{} is that without early requests",
    "groups-differ": "the cost{} contains another key exchange",
    "connections-refused": "the new connections{} that failed have no time",
    "storms-failed": "some storms{} have no figures",
    "storms-nothing-done": "the parts{} of storms in which nothing was done are left out",
    "replica-falls-behind": "the lag{} depends on how long it was measured",
    "replication-failed": "some figures of replicas{} have fewer blocks",
    "rows-differ": "the cost{} compares different work",
    "cost-changed": "the cost{} is less certain than its interval",
    "aes-hidden": "the cost{} is that without the CPU's AES instructions",
    "cpu-crypto-unproven": "the cost{} may be that with the CPU's AES instructions",
    "server-not-verified": "the cost{} stands, but the protection is weaker",
    "security-level-lowered": "the cost{} stands, but the protection is weaker",
}
"""Warnings that can change the conclusion, the gravest first, and which figure each changes: `{}` is ` of` its cells. The others say how
precise a figure is."""
MOST_NAMED = 2
"""Cells that a limit names at most."""
PREDICT = "ciphercost predict latest --rate 2000/s --cpu 2ms"
MOST_PROTECTIONS = 2


class Further(NamedTuple):
    """A command, and what it is for: `with your figures`."""

    words: str
    command: str

    @property
    def line(self) -> str:
        return f"Next, {self.words}: {self.command}"


class FirstScreen(NamedTuple):
    """Sentences, in reading order."""

    disturbed: str
    """Set if other processes disturbed the run."""
    answer: list[str]
    """The first is the answer; for several mechanisms each has its own."""
    elsewhere: str
    """Whether it is worth worrying about: what the same addition means for operations of other lengths. Empty where that is unknown."""
    behind: int
    """After how many of the answers it stands: behind that which it explains, or behind all."""
    protects: list[str]
    basis: str
    """Whether it can be trusted: what was proven, and what the intervals contain."""
    limits: list[str]
    further: Further | None
    """What answers the reader's next question."""
    machine: str
    """Where it was measured: another CPU may add several times more or less. Empty: unknown."""


def in_order(screen: FirstScreen) -> list[str]:
    """The answers, with what the first of them about TLS means elsewhere in its paragraph, then what each mechanism protects."""
    *first, lead = screen.answer[: screen.behind]
    explained = " ".join(filter(None, (lead, screen.elsewhere)))
    return [*first, explained, *screen.answer[screen.behind :], *screen.protects]


def of(result: Result) -> FirstScreen:
    """The first screen of a run."""
    added = carried(result)
    answer = verdict_text.sentences(result)
    parts = next(
        (
            mechanism_parts
            for mechanism_parts in result.parts
            if mechanism_parts.end == "server" and mechanism_parts.request_us == added
        ),
        None,
    )
    # What it means elsewhere also says what bytes and connections cost, so the sentence before it does not.
    full = added_sentences.by_parts(parts) if parts is not None else ""
    lead = next((place for place, text in enumerate(answer) if full and full in text), None)
    if parts is not None and lead is not None:
        answer[lead] = answer[lead].replace(full, added_sentences.by_request(parts))
    elif added is not None:
        lead = next((place for place, text in enumerate(answer) if _about(result, text)), None)
    screen = FirstScreen(
        disturbed=disturbed.warning(result.cells),
        answer=[
            *answer,
            *(text for of in (connection_text, replication_text, rotation_text) for text in of.sentences(result.cells)),
        ],
        behind=len(answer) if lead is None else lead + 1,
        elsewhere=elsewhere(result) if added is None else added_sentences.elsewhere(added, word(result), parts),
        protects=list(protects(result.cells)),
        basis=basis(result.cells),
        limits=list(limits(result.cells)),
        further=Further("with your figures", PREDICT) if added is not None else further(result),
        machine=measured_on(result),
    )
    return pair_text.worded(screen, pair_text.of(result.cells))


def _about(result: Result, text: str) -> bool:
    """Whether the sentence says what encryption in transit adds to the operations of a cell."""
    costs = [added_text.of(cell) for cell in result.cells if cell.layer == "transit"]
    return any(added_text.adds(cost) in text for cost in costs if cost is not None)


def elsewhere(result: Result) -> str:
    """Whether it is worth worrying about where no addition carries over to every operation; empty: nothing was measured."""
    if by_units := added_sentences.by_the_second(result.costs):
        return by_units
    costs = [
        (cell, cost)
        for cell in result.cells
        if cell.imported is None and not cell.of_link and (cost := added_text.of(cell))
    ]
    layers = {cell.layer for cell, _ in costs}
    if layers == {"transit"} and len({(cell.engine, cell.mechanism) for cell, _ in costs}) == 1:
        light = [(cell, cost) for cell, cost in costs if cost.to != operation_text.OPERATION]
        light = [
            cell_and_cost
            for cell_and_cost in light
            if added_sentences.light(cell_and_cost[0]) and cell_and_cost[1].added.high > 0
        ]
        if not light:
            return ""
        cell, least = min(light, key=lambda cell_and_cost: cell_and_cost[0].arms["plain"].get("wire_bytes_per_op", 0.0))
        text = added_sentences.elsewhere(added_text.part(least.added), least.to)
        return f"By {_label(result.cells, cell)}: {text[0].lower()}{text[1:]}"
    if layers == {"rest"} and all("duration" in cell.overhead for cell, _ in costs):
        return TASK_DEPENDS  # an operator's task, whose operation is the whole of it
    return " ".join(DEPENDS[layer] for layer in ("rest", "column") if layer in layers)


DEPENDS = {
    "rest": "Whether it is worth worrying about depends on how many pages your operations read and write.",
    "column": "Whether it is worth worrying about depends on how many values your operations encrypt and decrypt.",
}
TASK_DEPENDS = "Whether it is worth worrying about depends on how large your data are, and how often you do this."


def _label(cells: Sequence[Cell], cell: Cell) -> str:
    """The workload if no other cell has it, else what the cell is called beside the others."""
    if sum(candidate.workload == cell.workload for candidate in cells) == 1:
        return cell.workload
    return cell_text.names(cells)[[candidate is cell for candidate in cells].index(True)]


def word(result: Result) -> str:
    """What an operation in transit is called: `query`; of several workloads, what a round trip is."""
    in_transit = [cell for cell in result.cells if cell.layer == "transit"]
    if len(in_transit) == 1:
        return operation_text.of(in_transit[0])
    return operation_text.of_engine(in_transit[0].engine) if in_transit else operation_text.OPERATION


def measured_on(result: Result) -> str:
    """`Measured on AMD EPYC 7B13, 2 cores. Another CPU may add several times more or less.`"""
    cpu, cores = result.machine.get("cpu"), result.machine.get("cores")
    if not cpu or not any(cell.overhead and cell.imported is None for cell in result.cells):
        return ""
    of_cores = f", {cores} core{'s' * (cores != 1)}" if cores else ""
    return f"Measured on {cpu}{of_cores}. Another CPU may add several times more or less."


def further(result: Result) -> Further | None:
    """What to do next where no addition carries over to every operation; None: nothing was measured."""
    for cost in result.costs:
        if unit_cost_text.sure(cost) and (options := unit_prediction.asks(cost.unit)):
            return Further("with your figures", f"{PREDICT} {options[0]} 100/s")
    for cell in result.cells:
        if "duration" in cell.overhead:
            continue  # a task of its operator has no queries
        if cell.of_link:
            continue  # nothing carries over to other operations than commits
        if cell.overhead and cell.imported is None and not cell_text.is_control(cell):
            target = f"ciphercost run {cell.engine}:{cell.mechanism}"
            if cell.engine == "url" or cell.pair:
                return None
            if cell.layer == "transit":
                return Further("what carries over to your server", f"{target} --split")
            if cell.layer == "column":  # --sql uses tables as they are, without a second copy that is encrypted
                if added_text.by_client(cell):  # an application that encrypts can't make the rows of --split
                    continue
                return Further("what each value costs", f"{target} --split")
            operation = operation_text.of_engine(cell.engine)
            whose = "statements" if operation == operation_text.OPERATION else operation_text.many(operation)
            return Further(f"with your own {whose}", f"{target} --sql FILE")
    return None


def carried(result: Result) -> Part | None:
    """What encryption in transit adds to each operation, µs, whatever the operation costs; None: unknown, or surely below 0.

    At rest and in columns it depends on the pages and values that an operation handles, so it does not carry over to other operations.
    """
    if len({(cell.engine, cell.mechanism) for cell in result.cells if cell.layer == "transit"}) != 1:
        return None
    if any(cell.pair or cell.of_link for cell in result.cells):
        return None  # it is a difference between two settings, or of commits only
    for parts in result.parts:
        if parts.end == "server" and added_sentences.carry_over(parts, result.cells):
            return parts.request_us
    costs = [cost for cell in result.cells if cell.layer == "transit" and (cost := added_text.of(cell))]
    return added_text.part(costs[0].added) if len(costs) == 1 and costs[0].added.high > 0 else None


def protects(cells: Sequence[Cell]) -> Iterator[str]:
    """`tls protects data on the network from being read or changed …`; of several mechanisms without what they don't protect."""
    by_mechanism: dict[str, str] = {}
    for cell in cells:
        if cell.overhead and cell.protects and cell.imported is None and not cell_text.is_control(cell):
            by_mechanism.setdefault(cell.mechanism, cell_text.protection(cell))
    if 1 <= len(by_mechanism) <= MOST_PROTECTIONS:
        texts = (
            by_mechanism.items()
            if len(by_mechanism) == 1
            else [(name, text.partition(";")[0]) for name, text in by_mechanism.items()]
        )
        yield f"{'; '.join(f'{mechanism} protects {text}' for mechanism, text in texts)}."
    elif by_mechanism:
        yield f"What each of the {len(by_mechanism)} mechanisms protects is in a table below."


def basis(cells: Sequence[Cell], where: str = "below") -> str:
    """Whether the answer can be trusted: what was proven and by whom, what the intervals contain, and whether a warning changes it.

    `where` the warnings are.
    """
    known = [cell for cell in cells if cell.overhead]
    if not known:
        return ""
    if any(cell.imported for cell in known):
        return f"Not proven: {cell_text.imported_basis(known)}. Nothing shows that only one arm was encrypted, and the runs are not paired."
    if any(cell.status == "unproven" for cell in known):
        proven = f"NOT PROVEN that {cell_text.on_and_off(known)}."
    elif all(cell.layer == "control" for cell in known):
        proven = "Nothing to prove: these are controls, so neither arm is encrypted."
    else:
        proven = f"Proven: {cell_text.on_and_off(known)}{_agree(known)}."
        if disturbed.warning(cells):
            proven += " But other processes disturbed the run."
        elif any(map(plausible.is_no_cost, known)):
            proven += " But some figures are not its cost: see above."
    return " ".join(filter(None, (proven, _covered(known), _counted(cells, where))))


def _agree(cells: Sequence[Cell]) -> str:
    """` (client, server, captured bytes agree)`."""
    seen = {proof.witness for cell in cells for proof in cell.proofs if proof.passed and cell.layer != "control"}
    witnesses = [words for name, words in WITNESSES.items() if name in seen]
    if len(witnesses) < 2:
        return f" (seen by {witnesses[0]})" if witnesses else ""
    return f" ({', '.join(witnesses)} agree)"


WITNESSES = {
    "client": "client",
    "server": "server",
    "wire": "captured bytes",
    "disk": "files",
    "process": "loaded libraries",
}
"""What each witness is called where nobody has read what a witness is."""


def _covered(cells: Sequence[Cell]) -> str:
    """What the intervals contain, and what they do not."""
    sessions = max(cell.sessions for cell in cells)
    if any(warning.code == "not-restarted" for cell in cells for warning in cell.warnings):
        return "Your server was not restarted, so the interval does not say what a restart changes."
    if any(cell.mode == "quick" for cell in cells) and sessions == 1:
        what = "opening" if all(cell.embedded for cell in cells) else "start of the server"
        return f"This is one {what}; more without --quick."
    return f"The intervals cover {sessions} starts of the server."


def _counted(cells: Sequence[Cell], where: str) -> str:
    """How many warnings there are, if none of them limits the answer."""
    count = sum(len(cell.warnings) for cell in cells)
    if not count or next(limits(cells), ""):
        return ""
    return (
        f"The warning {where} does not change this."
        if count == 1
        else f"None of the {count} warnings {where} changes this."
    )


def limits(cells: Sequence[Cell]) -> Iterator[str]:
    """The gravest warning that can change the conclusion, with the figure that it changes, and how many more there are."""
    texts: dict[str, str] = {}
    hit: dict[str, list[int]] = {}
    for number, cell in enumerate(cells):
        for warning in cell.warnings:
            if warning.code in LIMITING:
                texts.setdefault(warning.code, warning.text)
                hit.setdefault(warning.code, []).append(number)
    codes = [code for code in LIMITING if code in texts]
    further = f" (+{len(codes) - 1} below)" if len(codes) > 1 else ""
    if codes:
        gravest = codes[0]
        of_cells = _which(cells, hit[gravest])
        bracketed = f" ({of_cells})" if of_cells else ""
        figure = LIMITING[gravest].format(bracketed if gravest == "paced" else f" of {of_cells}" if of_cells else "")
        yield f"{figure}: {re.split('[;:] ', texts[gravest])[0]}{further}"


def _which(cells: Sequence[Cell], hit: Sequence[int]) -> str:
    """`bulk-read`, or `3 of 12 cells`; empty: all that have figures."""
    if len(hit) == sum(bool(cell.overhead) for cell in cells) or len(cells) == 1:
        return ""
    if len(hit) > MOST_NAMED:
        return f"{len(hit)} of {len(cells)} cells"
    return " and ".join(_label(cells, cells[number]) for number in hit)
