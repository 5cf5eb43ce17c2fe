"""Repeat a published study: first its own procedure, then its operations by ciphercost's method, in one run. I/O."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ciphercost import studies
from ciphercost.host import idle, memory
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.load.driver_agent import DriverAgent
from ciphercost.measure.experiment import off_measured_cores
from ciphercost.measure.progress import Display
from ciphercost.model import system_error
from ciphercost.model.errors import CiphercostError, MissingServer, RunError, Unproven, UsageError
from ciphercost.model.result import Result
from ciphercost.model.run_directory import Record
from ciphercost.model.spec import Spec
from ciphercost.model.study import StudyRecord, StudyRun
from ciphercost.plan import schedule
from ciphercost.plan.resolve import resolve
from ciphercost.plan.specs import plan
from ciphercost.prove import aes_mask, client_witness, witnesses
from ciphercost.provision import server_pairs
from ciphercost.provision.experiment_resources import ExperimentResources
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair
from ciphercost.provision.servers import Servers
from ciphercost.runs import pipeline
from ciphercost.studies import Stage, Study, pairs


def chosen(name: str, given: Mapping[str, Any] | None = None) -> list[Study]:
    """The study of that name with these options, or for `all` every study with the options it has. Raises UsageError with the nearest name."""
    given = given or {}
    if name != "all":
        return [studies.get(name).configured(given)]
    every = [studies.get(study_name) for study_name in studies.names()]
    if unknown := [option for option in given if not any(option in study.options for study in every)]:
        every[0].configured(dict.fromkeys(unknown))
    return [study.configured({key: given[key] for key in given if key in study.options}) for study in every]


def spec_of(study: Study, engine: str, seconds: float, seed: int) -> Spec:
    """The study's cells by ciphercost's method. `engine`: as the user wrote it, `mariadb@11.8`. Raises UsageError."""
    servers, versions = studies.named(engine)
    spec = study.spec(servers, seconds, seed)
    return msgspec.structs.replace(spec, cells=studies.at_versions(study, spec.cells, versions))


def quick(spec: Spec) -> Spec:
    """The spec with one session for each cell. Pure."""
    return msgspec.structs.replace(spec, mode="quick", sessions=1)


def before(study: Study, spec: Spec) -> pipeline.Before:
    """The published procedure, which a run of the study does first."""
    return partial(as_published, study, study.procedure_seconds(spec.time))


def run_in(
    study: Study,
    spec: Spec,
    directory: Path | None = None,
    display: Display | None = None,
    command: str = "",
    options: Mapping[str, Any] | None = None,
) -> tuple[Result, Path]:
    """Run the study as published and then `spec`, its operations by ciphercost's method. Raises UsageError before anything starts.

    `options`: those with which the study was `configured`, recorded so that the run can be resumed.
    """
    name_and_options = (study.name, dict(options or {}))
    return pipeline.run_in(plan(spec), directory, display, command, before=before(study, spec), study=name_and_options)


def as_published(
    study: Study, seconds: float, record: Record, run_supervisor: Supervisor, scratch: Path, display: Display
) -> None:
    """Run the published procedure, on arms that are proven first (the study's own were not). Records a failure's reason."""
    kept = study.begin(",".join(dict.fromkeys(cell.spec.engine for cell in record.facts.cells)))
    kept.settings["cell_seconds"] = record.facts.spec.time
    kept.witnesses = pairs.witnesses_of(kept, study.procedure_cells(kept.engine))
    record.save_study(kept)
    wish = next((cell.spec.idle for cell in record.facts.cells), "")
    with (
        display.aside(f"{study.name} as published", seconds),
        idle.all_awake(run_supervisor, wish) as kept.idle,
    ):
        _pairs(study, kept, seconds, record, run_supervisor, scratch, display)
    if kept.reason:
        display.say(f"{study.name} as published: {kept.reason}")


def _pairs(
    study: Study,
    kept: StudyRecord,
    seconds: float,
    record: Record,
    run_supervisor: Supervisor,
    scratch: Path,
    display: Display,
) -> None:
    """Run every pair of arms of the procedure, one after the other."""
    versions = {cell.spec.engine: cell.spec.version for cell in record.facts.cells if cell.spec.version}
    cells = studies.at_versions(study, study.procedure_cells(kept.engine), versions)
    reasons = []
    began = time.monotonic()
    with ExitStack() as benches:
        # Pairs that start with the same data load it only once.
        shared, servers = ExperimentResources(scratch / "secrets" / "study"), Servers()
        for number, cell in enumerate(cells, start=1):
            name = f"{cell.engine}:{cell.mechanism}" if kept.engines else f"{cell.variant} {cell.mechanism}".strip()
            # Time that one pair does not use goes to the next pairs.
            share = max(0.0, seconds - (time.monotonic() - began)) / (len(cells) - number + 1)
            place = len(record.facts.cells) + number - 1
            try:
                bench = benches.enter_context(
                    server_pairs.bench(
                        resolve(cell),
                        run_supervisor,
                        scratch,
                        record.logs,
                        place,
                        shared,
                        servers=servers,
                        say=display.say,
                    )
                )
                _pair(study, bench, number, _Progress(record, kept, display.say, share))
            except UsageError as error:
                if len(cells) == 1:
                    raise
                reasons.append((name, str(error)))
            except Unproven as error:
                reasons.append((name, f"not proven: {error}"))
            except OSError as error:
                reasons.append((name, system_error.words(error)))
            except CiphercostError as error:
                reasons.append((name, str(error)))
            kept.reason = "; ".join(f"{name}: {reason}" if len(cells) > 1 else reason for name, reason in reasons)
            record.save_study(kept)
    kept.complete = not reasons
    record.save_study(kept)


class _Progress(NamedTuple):
    """Where a pair of arms reports its progress and results, and how long it may take."""

    record: Record
    kept: StudyRecord
    say: Callable[[str], None]
    seconds: float

    def keep(self, run: StudyRun) -> None:
        self.kept.runs.append(run)
        self.record.save_study(self.kept)


class _Pair:
    """One pair of arms, with one proven server and agent at a time. Its number is the session of its proofs."""

    def __init__(self, study: Study, bench: PreparedCell, number: int, progress: _Progress) -> None:
        self._study, self._bench, self._number, self._progress = study, bench, number, progress
        self._opened = 0
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def open(self) -> tuple[ServerPair, Agent, Callable[[], Agent]]:
        """Close the current session and start a new one: its servers, its agent, and what starts another client process with the
        same settings. Raises RunError, Unproven, UsageError.
        """
        self._stack.close()
        self._opened += 1
        bench, kept = self._bench, self._progress.kept
        seed = self._progress.record.facts.seed
        available = sorted(os.sched_getaffinity(0))
        number = self._opened
        cores = schedule.cores(seed, number, available, "one-core")[0] if self._study.one_core else ()
        self._stack.enter_context(bench.shared.session())
        self._stack.enter_context(off_measured_cores(set(cores)))
        groups = self._stack.enter_context(memory.limited(bench.supervisor, self._study.memory_limit))
        servers = server_pairs.start(bench, number, set(cores), set(cores), schedule.arms(seed, self._number, number))
        client: Callable[[], Agent] = partial(
            Agent,
            cpus=cores or None,
            log=bench.logs / "agent.log",
            env=bench.mask,
            netns=servers.netns,  # behind the link, if there is one
            cgroups=groups,
        )
        if bench.planned.client is not None:
            client = partial(bench.agent, servers)
        agent = self._stack.enter_context(client())
        if isinstance(agent, DriverAgent):
            agent.enter(servers.connect)
        kept.version = kept.version or bench.installation.version
        if kept.engines:
            kept.versions[bench.cell.engine] = bench.installation.version
        proofs, connected = witnesses.prove(bench.engine, bench.mechanism, servers, agent, self._number)
        if bench.mask:
            proofs += aes_mask.prove(bench, servers, agent, self._number)
        kept.proofs += proofs
        kept.encryption = kept.encryption or client_witness.negotiated(connected.get("encrypted"))
        self._progress.record.save_study(kept)
        witnesses.require(proofs, bench.mechanism, bench.engine.mute, required=bench.planned.witnesses)
        return servers, agent, client

    def renew(self, stage: Stage) -> None:
        stage.pair, stage.agent, stage.client = self.open()


def _pair(study: Study, bench: PreparedCell, number: int, progress: _Progress) -> None:
    """Run the procedure on one pair of arms. Raises RunError, UsageError."""
    pair = _Pair(study, bench, number, progress)
    with closing(pair):
        servers, agent, client = pair.open()
        seed = progress.record.facts.seed
        stage = Stage(
            bench,
            servers,
            agent,
            progress.kept,
            progress.seconds,
            progress.say,
            progress.keep,
            pair.renew,
            client,
            seed,
        )
        try:
            study.procedure(stage)
        except MissingServer as error:
            # Only the published procedure needs this program, so ciphercost's method can still run.
            raise RunError(str(error)) from None


def failed(result: Result) -> bool:
    """Whether a cell or the published procedure has no number. Pure."""
    return any(cell.status != "ok" for cell in result.cells) or (result.study is not None and not result.study.complete)
