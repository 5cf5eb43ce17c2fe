"""A run over several machines: deals out its cells, collects each machine's run, and computes what they have in common. I/O.

Each machine measures its part as an ordinary run (`runs.node_run`), both arms of a cell on the same machine. The controller keeps these
runs in RUN/machines/NAME, where every command can read them, and RUN/machines.json with the plan and the result over machines.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ciphercost.estimate import failures, results
from ciphercost.estimate import machines as estimates
from ciphercost.estimate.machines import OnMachine
from ciphercost.host.deferred_signals import Termination
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.units import minutes
from ciphercost.model import checked
from ciphercost.model.errors import CiphercostError, Interrupted, UsageError
from ciphercost.model.machines import MACHINES_FILE, MACHINES_FORMAT, CellOverMachines, Loss, Machine, MachinesRun
from ciphercost.model.result import Cell
from ciphercost.model.run_directory import LATEST, directory_for, new_id, open_locked, runs, write_whole
from ciphercost.model.spec import Spec
from ciphercost.plan import schedule
from ciphercost.plan.planned import Plan
from ciphercost.report import machines_added
from ciphercost.report.machines_types import Concluded
from ciphercost.report.words import cell_text, figure_text
from ciphercost.runs import html_page, node_run, own_records
from ciphercost.runs.node_run import Part

FILE, LOCK, PLACE = MACHINES_FILE, ".lock", "machines"
Say = Callable[[str], None]


class Node(NamedTuple):
    """A machine of the cluster that can measure."""

    node: str
    """Its name in the cluster."""
    host: str
    """What all nodes on the same host have in common; empty if unknown."""
    cpus: float = 1.0


class Lost(NamedTuple):
    """Why a machine's part did not arrive."""

    reason: str


class Nodes(Protocol):
    """The machines of a cluster. `runs.ray_tasks` has those of Ray."""

    def listed(self) -> list[Node]:
        """The machines that can measure now. Raises UsageError if there are none."""

    def measure(self, parts: Mapping[str, Part], known: Mapping[str, Node]) -> Iterator[tuple[str, bytes | Lost]]:
        """Measure parts, by the node that each is for, and yield (node, packed record) as they end.

        Never measures two parts on one host at the same time. Closing the iterator ends all parts.
        """


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def find(name: str) -> Path | None:
    """The directory of a run over machines with that name, here or below ./runs; None if there is none.

    `latest` is one only if no other run in ./runs is newer.
    """
    if name == LATEST and not Path(name).exists():
        every = [*(path / "plan.json" for path in runs()), *Path("runs").glob(f"*/{FILE}")]
        newest = max(every, key=lambda path: (path.stat().st_mtime_ns, path), default=None)
        return newest.parent if newest is not None and newest.name == FILE else None
    return next((path for path in (Path(name), Path("runs") / name) if (path / FILE).is_file()), None)


def deal(spec: Spec, nodes: int) -> list[list[int]]:
    """Cell numbers of each of `nodes` machines. Cells of one experiment stay together. Raises UsageError. Pure."""
    machines_per_group = spec.machines or nodes
    if machines_per_group > nodes:
        raise UsageError(
            f"--machines {machines_per_group}: the cluster has {nodes} machine{'s' * (nodes != 1)} that can measure; start more, or ask for {nodes}"
        )
    dealt: list[list[int]] = [[] for _ in range(nodes)]
    for number, cells in enumerate(schedule.groups(spec)):
        for turn in range(machines_per_group):
            dealt[(number * machines_per_group + turn) % nodes] += cells
    return dealt


def begin(plan: Plan, nodes: Nodes, directory: Path | None = None, command: str = "") -> Path:
    """Create the directory of a run over the machines that can measure now. Raises UsageError before anything starts."""
    spec = plan.spec
    available = sorted(nodes.listed(), key=lambda node: (node.host, node.node))
    dealt = deal(spec, len(available))
    for cells in dealt:  # a file that can't be read is found now
        node_run.part("", "", own_spec(spec, cells, 0))
    run_id = new_id()
    path = directory_for(run_id, directory)
    (path / "logs").rmdir()
    (path / PLACE).mkdir(mode=0o700)
    machines = [
        Machine(f"node-{number}", node.node, node.host, cells, node.cpus)
        for number, (node, cells) in enumerate(zip(available, dealt, strict=True), start=1)
        if cells
    ]
    seed = spec.seed or secrets.randbits(32)
    save(path, MachinesRun(MACHINES_FORMAT, run_id, now(), results.tool(), seed, spec, machines, command=command))
    own_records.mark(path, orders(path))
    return path


def orders(directory: Path) -> list[own_records.Orders]:
    """What the plan asks for. Raises UsageError if it is damaged."""
    return [own_records.Orders(read(directory).spec)]


def own_spec(spec: Spec, cells: Sequence[int], seed: int) -> Spec:
    """What one machine measures. Pure."""
    return msgspec.structs.replace(
        spec, cells=[spec.cells[number] for number in cells], seed=seed, cluster="", spread=False, machines=0
    )


def read(directory: Path) -> MachinesRun:
    """Read machines.json. Raises UsageError if it is damaged or of a newer format."""
    run = checked.whole(directory / FILE, MachinesRun, MACHINES_FORMAT)
    for machine in run.machines:
        if not machine.name.startswith("node-") or not machine.name.removeprefix("node-").isdecimal():
            raise checked.damaged(directory / FILE, f"`name` of a machine is {machine.name[:40]!r}, not node-NUMBER")
        if any(number >= len(run.spec.cells) for number in machine.cells):
            raise checked.damaged(directory / FILE, f"{machine.name} has a cell that the spec doesn't have")
    return run


def save(directory: Path, run: MachinesRun) -> None:
    write_whole(directory / FILE, msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def finished(directory: Path) -> bool:
    """Whether every machine's part has arrived."""
    run = read(directory)
    return bool(run.ended) and all(machine.state == "measured" for machine in run.machines)


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_remaining(directory: Path, nodes: Nodes, say: Say) -> Concluded:
    """Measure every part that has not arrived. A machine that is lost costs its cells there, not the run.

    Raises Interrupted on Ctrl-C, with what arrived kept, and UsageError if the run is active or finished.
    """
    with open_locked(directory, LOCK):
        run = read(directory)
        if run.tool != (tool := results.tool()):
            theirs, ours = (" ".join(versions.values()) for versions in (run.tool, tool))
            raise UsageError(f"{directory}: started by {theirs}, but this is {ours}; install {theirs} to resume it")
        run = _placed(run, nodes.listed(), say)
        waiting = {machine.node: machine for machine in run.machines if machine.state == "waiting"}
        parts = {
            machine.node: node_run.part(
                run.id,
                machine.name,
                own_spec(run.spec, machine.cells, run.seed + int(machine.name.removeprefix("node-"))),
            )
            for machine in waiting.values()
        }
        known = {name: Node(name, machine.host, machine.cpus) for name, machine in waiting.items()}
        _announce(run, waiting.values(), say)
        measuring = nodes.measure(parts, known)
        try:
            for node, arrived in measuring:
                run = _arrived(directory, run, waiting.pop(node), arrived)
                mine = next(machine for machine in run.machines if machine.node == node)
                say(
                    f"{mine.name}: {'measured' if mine.state == 'measured' else f'lost: {mine.reason}'}; {len(waiting)} left"
                )
        except KeyboardInterrupt:
            raise Interrupted(directory) from None
        finally:
            close = getattr(measuring, "close", None)
            if close is not None:
                close()
        concluded = conclude(directory, msgspec.structs.replace(run, ended=now()))
        save(directory, concluded.run)
        if html_page.wanted():
            with Supervisor(new_id()) as supervisor, Termination() as termination, termination.cuts():
                html_page.page(directory, supervisor, say)
    return concluded


def _placed(run: MachinesRun, nodes: Sequence[Node], say: Say) -> MachinesRun:
    """The run with a node for every part that is missing: its own node, or one that the run doesn't use yet. Pure but for `say`."""
    alive = {node.node: node for node in nodes}
    used = {machine.node for machine in run.machines if machine.state == "measured" or machine.node in alive}
    spare = [node for node in nodes if node.node not in used]
    machines: list[Machine] = []
    for machine in run.machines:
        if machine.state != "measured":
            if machine.node not in alive and spare:
                other = spare.pop(0)
                machine = msgspec.structs.replace(machine, node=other.node, host=other.host, cpus=other.cpus)
                say(f"{machine.name}: its node is gone; a new one takes its place")
            gone = machine.node not in alive
            machine = msgspec.structs.replace(
                machine, state="lost" if gone else "waiting", reason="its node is not in the cluster" if gone else ""
            )
        machines.append(machine)
    return msgspec.structs.replace(run, machines=machines)


def _announce(run: MachinesRun, machines: Collection[Machine], say: Say) -> None:
    by_host: dict[str, float] = {}
    for machine in machines:
        seconds = schedule.time_estimate(own_spec(run.spec, machine.cells, 0))
        by_host[machine.host or machine.name] = by_host.get(machine.host or machine.name, 0.0) + seconds
    if machines:
        say(f"{len(machines)} machines to measure, about {minutes(max(by_host.values()))}")
    if len(by_host) < len(machines):
        hosts = f"{len(by_host)} host{'s' * (len(by_host) != 1)}"
        say(f"these machines are nodes of {hosts}; nodes of one host measure one after the other")


def _arrived(directory: Path, run: MachinesRun, machine: Machine, arrived: bytes | Lost) -> MachinesRun:
    """Keep what a machine sent, and save the plan."""
    if isinstance(arrived, Lost):
        changed = msgspec.structs.replace(machine, state="lost", reason=arrived.reason)
    else:
        try:
            node_run.unpack(arrived, directory / PLACE / machine.name)
            changed = msgspec.structs.replace(machine, state="measured", reason="")
        except CiphercostError as error:
            changed = msgspec.structs.replace(machine, state="lost", reason=str(error))
    machines = [changed if other.name == machine.name else other for other in run.machines]
    run = msgspec.structs.replace(run, machines=machines)
    save(directory, run)
    return run


# ── the result ────────────────────────────────────────────────────────────────────────────────────────────────────────


def conclude(directory: Path, run: MachinesRun | None = None) -> Concluded:
    """The result over machines, from the machines' records. Raises UsageError if machines.json is damaged."""
    run = run or read(directory)
    machines: list[Machine] = []
    cells: list[dict[str, Cell]] = [{} for _ in run.spec.cells]
    values: list[list[OnMachine]] = [[] for _ in run.spec.cells]
    losses: list[list[Loss]] = [[] for _ in run.spec.cells]
    facts: dict[str, dict[str, Any]] = {}
    for machine in run.machines:
        place = directory / PLACE / machine.name
        try:
            if machine.state != "measured":
                raise UsageError(machine.reason or "not measured yet")
            result, intervals = results.with_intervals(place)
            if len(result.cells) != len(machine.cells):
                raise UsageError(f"{place}: has {len(result.cells)} cells instead of {len(machine.cells)}")
        except CiphercostError as error:
            for number in machine.cells:
                losses[number].append(Loss(machine.name, str(error)))
            machines.append(machine)
            continue
        cpu = str(result.machine.get("cpu", "unknown CPU"))
        machines.append(msgspec.structs.replace(machine, cpu=cpu))
        facts[machine.name] = result.machine
        for number, cell, cell_intervals in zip(machine.cells, result.cells, intervals, strict=True):
            cells[number][machine.name] = cell
            if cell.status == "ok" and cell.overhead:
                values[number].append(
                    OnMachine(machine.name, machine.host, cpu, cell_intervals, cell.overhead, cell.failures)
                )
            else:
                losses[number].append(Loss(machine.name, cell_text.without_number(cell)))
    with checked.computing(directory / FILE):
        over = _over(run, cells, values, losses)
    shown = [_shown(run, over_cell, by_machine) for over_cell, by_machine in zip(over, cells, strict=True)]
    return Concluded(
        str(directory), msgspec.structs.replace(run, machines=machines, cells=over), shown, cells, values, facts
    )


def _over(
    run: MachinesRun, cells: Sequence[dict[str, Cell]], values: Sequence[list[OnMachine]], losses: Sequence[list[Loss]]
) -> list[CellOverMachines]:
    mode = run.spec.mode
    firsts = [_first(by_machine, of) for by_machine, of in zip(cells, values, strict=True)]
    mains = [figure_text.main_metric(first) if first else "" for first in firsts]
    verdicts = estimates.verdicts(values, mains, mode, run.spec.margin)
    over_cells = []
    for number, (first, by_machine, of) in enumerate(zip(firsts, cells, values, strict=True)):
        asked = run.spec.cells[number]
        over_cells.append(
            CellOverMachines(
                cell=number,
                engine=asked.engine,
                versions=list(dict.fromkeys(by_machine[on_machine.machine].version for on_machine in of)),
                mechanism=asked.mechanism,
                workload=first.workload if first else asked.workload,
                title=cell_text.heading(first) if first else f"{asked.engine} · {asked.mechanism} · {asked.workload}",
                metric=figure_text.lead_metric(first) if first else "",
                machines=len(of),
                hosts=estimates.hosts(of),
                overhead=estimates.over_machines(of, mode),
                verdict=verdicts[number],
                lost=losses[number],
                added=machines_added.over(by_machine, of),
            )
        )
    return over_cells


def _first(cells: Mapping[str, Cell], values: Sequence[OnMachine]) -> Cell | None:
    """The first machine's cell that has a number, or any cell; None if no machine has it."""
    return next((cells[on_machine.machine] for on_machine in values), next(iter(cells.values()), None))


def _shown(run: MachinesRun, over: CellOverMachines, cells: Mapping[str, Cell]) -> Cell:
    """The cell as reports of one machine show it, with the costs over machines."""
    asked = run.spec.cells[over.cell]
    first = next((cells[on_machine.machine] for cost in over.overhead.values() for on_machine in cost.machines), None)
    if first is None:
        reason = over.lost[0].reason if over.lost else "no machine measured it"
        return Cell(
            asked.engine,
            asked.version,
            "",
            asked.mechanism,
            asked.workload,
            asked.clients,
            "failed",
            run.spec.mode,
            reason=reason,
        )
    overhead = {name: cost.overall for name, cost in over.overhead.items()}
    cell = msgspec.structs.replace(
        first,
        version=", ".join(over.versions),
        overhead=overhead,
        verdict=over.verdict,
        failures=failures.together([cell.failures for cell in cells.values()]),
        warnings=[],
        smallest_effect=None,
    )
    return machines_added.shown(cell, over.added)
