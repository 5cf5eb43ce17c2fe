"""replicate: a published study -> its procedure as it was run, then its operations by our method, in one run's directory. I/O."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ciphercost import pipeline, prove, provision, studies
from ciphercost.agent import Agent
from ciphercost.errors import CiphercostError, Unproven, UsageError
from ciphercost.guard import Guard
from ciphercost.model import Result, Spec, StudyRun
from ciphercost.record import Record
from ciphercost.studies import Stage, Study
from ciphercost.watch import Watcher

DEFAULT_SECONDS = 60.0
"""Load of each operation by our method."""


def chosen(name: str) -> list[Study]:
    """The study of that name, or `all`. Raises UsageError with the nearest name."""
    return [studies.get(each) for each in studies.names()] if name == "all" else [studies.get(name)]


def run_in(
    study: Study, spec: Spec, directory: Path | None = None, watcher: Watcher | None = None, command: str = ""
) -> tuple[Result, Path]:
    """Run the study as it was published and then `spec`, its own by our method. Raises UsageError before anything is started."""
    before = partial(as_published, study, study.procedure_seconds(spec.time))
    return pipeline.run_in(spec, directory, watcher, command, before=before)


def as_published(
    study: Study, seconds: float, record: Record, run_guard: Guard, scratch: Path, watcher: Watcher
) -> None:
    """The published procedure, on arms that are proven first, as the study's own were not. What went wrong is written into its record."""
    cells = record.facts.cells
    kept = study.begin(cells[0].spec.engine)
    record.save_study(kept)

    def keep(run: StudyRun) -> None:
        kept.runs.append(run)
        record.save_study(kept)

    watcher.say(f"{study.name} as published: about {seconds:.0f} s; then by our own method")
    cell = study.procedure_cell(kept.engine)
    shared = provision.Shared(scratch / "secrets" / "study")
    try:
        with (
            provision.bench(cell, run_guard, scratch, record.logs, len(cells), shared) as bench,
            shared.session(),
            Agent(log=record.logs / "agent.log") as agent,
        ):
            twins = bench.twins(1, set(), set())
            kept.version = bench.installation.version
            kept.proofs, connected = prove.prove(bench.engine, bench.mechanism, twins, agent, 1)
            kept.encryption = prove.negotiated(connected)
            prove.require(kept.proofs, bench.mechanism)
            study.procedure(Stage(bench, twins, agent, kept, seconds, watcher.say, keep))
            kept.complete = True
    except UsageError:
        raise
    except Unproven as error:
        kept.reason = f"not proven: {error}"
    except OSError as error:
        kept.reason = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}; is the disk full?"
    except CiphercostError as error:
        kept.reason = str(error)
    record.save_study(kept)
    if kept.reason:
        watcher.say(f"{study.name} as published: {kept.reason}")


def failed(result: Result) -> bool:
    """Whether a cell or the published procedure has no number. Pure."""
    return any(cell.status != "ok" for cell in result.cells) or (result.study is not None and not result.study.complete)
