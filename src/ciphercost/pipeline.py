"""pipeline: spec ─► plan ─► provision ─► prove ─► drive ─► record ─► estimate ─► report, on one screen.

It is `ciphercost.run` to those who import the package; a file of that name would hide the function.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from ciphercost import conclude, guard, plan, prove, provision, sample
from ciphercost import spec as specs
from ciphercost.agent import Agent
from ciphercost.agent import find as find_agent
from ciphercost.drive import Drive, NoSteadyState
from ciphercost.errors import AgentError, CiphercostError, RunError, Unproven, UsageError
from ciphercost.model import FORMAT, Arm, CellFacts, Result, RunFacts, Spec, Warning_
from ciphercost.record import Record, directory_for, new_id
from ciphercost.watch import Watcher


def run(spec: Spec, directory: Path | None = None) -> Result:
    """Run every cell of a spec, silently. See `run_in`."""
    return run_in(spec, directory)[0]


def run_in(
    spec: Spec, directory: Path | None = None, watcher: Watcher | None = None, command: str = ""
) -> tuple[Result, Path]:
    """Run every cell of a spec. Returns the result and the directory that keeps it (`directory`, or ./runs/<id>).

    A cell that fails or can't be proven has no number and says why; the others go on. Raises UsageError before anything is started.
    """
    spec, watcher, run_id = specs.check(spec), watcher or Watcher(), new_id()
    find_agent()
    facts = RunFacts(
        format=FORMAT,
        id=run_id,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        tool=conclude.tool(),
        machine=sample.machine(),
        seed=spec.seed or secrets.randbits(32),
        spec=spec,
        cells=[CellFacts(spec=cell) for cell in spec.cells],
        command=command,
    )
    with Record(directory_for(run_id, directory), facts) as record, guard.Guard(run_id) as run_guard, watcher:
        scratch = guard.scratch(run_id, run_guard)
        loads = [plan.budget(spec, cell).total_s for cell in spec.cells]
        watcher.start([title(cell) for cell in facts.cells], loads, plan.time_estimate(spec))
        for number, cell in enumerate(facts.cells):
            measure(number, cell, record, run_guard, scratch, watcher)
            record.save_facts()
        facts.ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record.save_facts()
        result = conclude.conclude(record.directory)
        record.save_result(result)
    for problem in run_guard.problems:
        watcher.say(f"not undone: {problem}; `ciphercost clean` tries again")
    return result, record.directory


def measure(
    number: int, facts: CellFacts, record: Record, run_guard: guard.Guard, scratch: Path, watcher: Watcher
) -> None:
    """One cell, from finding its server to its last session; what went wrong is written into its facts."""
    try:
        with provision.bench(facts.spec, run_guard, scratch, record.logs, number) as bench:
            conclude.describe(facts, bench)
            drive = Drive(number, record.facts.spec, facts, record.facts.seed, record, watcher)
            session = 0
            while session < drive.budget.sessions + len(facts.void_sessions) and not drive.precise_enough():
                session += 1
                one_session(session, bench, drive, record)
                if drive.must_repeat(session):
                    watcher.say(
                        f"{title(facts)}: one arm's debt reached the other; the slices are now {facts.slice_seconds:g} s long"
                    )
            if not drive.estimator.blocks:
                raise RunError(
                    f"no operation ended within a slice of {facts.slice_seconds:g} s; give it longer with --time"
                )
        facts.status = "ok"
    except Unproven as error:
        facts.status, facts.reason = "unproven", str(error)
    except NoSteadyState as error:
        facts.status, facts.reason = "no-steady-state", str(error)
    except OSError as error:
        facts.status = "failed"
        facts.reason = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}; is the disk full?"
    except CiphercostError as error:
        if isinstance(error, UsageError) and len(record.facts.cells) == 1:
            raise
        facts.status, facts.reason = "failed", str(error)
    watcher.done(number, f"{facts.status}{': ' + facts.reason if facts.reason else ''}")


def one_session(session: int, bench: provision.Bench, drive: Drive, record: Record) -> None:
    """Fresh twins, proven, then driven."""
    facts, seed = drive.facts, record.facts.seed
    drive.watcher.phase(drive.number, session, "starting and proving")
    server_cpus, agent_cpus = (set(cpus) for cpus in plan.cores(session, available_cpus(), facts.spec.regime))
    with contextlib.ExitStack() as stack:
        twins = stack.enter_context(bench.session(session, server_cpus, agent_cpus))
        stack.enter_context(out_of_the_way(agent_cpus | server_cpus))
        agent = stack.enter_context(Agent(cpus=agent_cpus, log=record.logs / "agent.log"))
        proofs, connected = prove.prove(bench.engine, bench.mechanism, twins, agent, session)
        record.prove(drive.number, proofs)
        prove.require(proofs, bench.mechanism)
        bench.ready(twins)
        conclude.describe_session(facts, twins, connected)
        agent.program(bench.program)

        def open_arm(arm: Arm) -> None:
            fields = twins.connect[arm]
            answer = agent.connect(arm, **fields) | {"per_request": fields.get("per_request", False)}
            prove.load_connections(bench.engine, bench.mechanism, agent, arm, answer, connected)
            conclude.describe_version(facts, str(answer["server_version"]))

        for arm in twins.connect:
            open_arm(arm)
        if reason := prove.same_rows(twins, agent, bench.program, plan.slice_seed(seed, drive.number, session, 0, 0)):
            raise AgentError(f"the arms do not return the same rows: {reason}")
        server = twins.server
        sampler = stack.enter_context(
            contextlib.closing(
                sample.Sampler(agent.pid, embedded=True)
                if twins.embedded
                else sample.Sampler(server.pid if server else 0, server.cgroups if server else ())
            )
        )
        if not twins.embedded and server is None:
            unseen = Warning_(
                "server-not-seen", "the server's processes can't be seen from here: client-side figures only"
            )
            facts.warnings = [*(each for each in facts.warnings if each != unseen), unseen]
        drive.session(session, twins, agent, sampler, open_arm)


@contextlib.contextmanager
def out_of_the_way(measured: set[int]) -> Iterator[None]:
    """Keep the controller off the measured cores, where there are others."""
    before = os.sched_getaffinity(0)
    others = before - measured
    if others:
        os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def available_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def title(facts: CellFacts) -> str:
    """`postgresql:tls point-select`, as people read it."""
    cell = facts.spec
    version = f"@{cell.version}" if cell.version else ""
    return f"{cell.engine}{version}:{cell.mechanism} {Path(cell.sql).name if cell.sql else cell.workload}"
