"""`replicate all`: every published study in turn, each in its own run below one directory, with one page at the end. I/O."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ciphercost import studies
from ciphercost.host.deferred_signals import Termination
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.units import minutes
from ciphercost.measure.progress import Display
from ciphercost.model import checked
from ciphercost.model.constrained_types import FORMAT
from ciphercost.model.errors import CiphercostError, Interrupted, UsageError
from ciphercost.model.run_directory import directory_for, new_id, open_locked, write_whole
from ciphercost.model.spec import Spec
from ciphercost.plan import schedule
from ciphercost.report import together
from ciphercost.report.together import Outcome
from ciphercost.runs import conclude, html_page, own_records, pipeline, replicate, resume
from ciphercost.studies import Study, agreement
from ciphercost.studies.lost import lost

Say = Callable[[str], None]
FILE, LOCK = "all.json", ".lock"


class Batch(msgspec.Struct, omit_defaults=True):
    """`all.json`: the options, and the reasons of studies without a result."""

    format: int
    id: str
    started: str
    studies: list[str]
    seed: int
    time: float = 0.0
    """Load time of each operation by ciphercost's method, seconds; 0: each study's default."""
    engine: str = ""
    options: dict[str, Any] = {}
    command: str = ""
    reasons: dict[str, str] = {}
    ended: str = ""


def find(name: str) -> Path | None:
    """The directory of `replicate all` with that name, here or below ./runs; None if there is none."""
    return next((path for path in (Path(name), Path("runs") / name) if (path / FILE).is_file()), None)


def begin(directory: Path | None, asked: Batch) -> Path:
    """Create the directory for `run_remaining`. Raises UsageError, before anything starts, for options that no study has."""
    chosen(asked)
    path = directory_for("", directory or Path("runs") / f"{asked.id}-all")
    (path / "logs").rmdir()
    save(path, asked)
    own_records.mark(path, orders(path))
    return path


def orders(directory: Path) -> list[own_records.Orders]:
    """What the plan of all studies asks for. Raises UsageError if it is damaged."""
    asked = read(directory)
    options = {**asked.options, "engine": asked.engine}
    return [own_records.Orders(Spec(cells=[]), study=",".join(asked.studies), options=options)]


def check(directory: Path, *, trusted: bool = False) -> None:
    """Raises UsageError if somebody else may have written it, or the run of one of its studies (`own_records.check`)."""
    own_records.check(directory, orders(directory), trusted=trusted)
    for place in (directory / study.name for study in chosen(read(directory))):
        if (place / "plan.json").is_file():
            own_records.check(place, own_records.of_run(place), trusted=trusted)


def new_record(seconds: float, seed: int, engine: str, options: dict[str, Any], command: str) -> Batch:
    """A new record with every known study."""
    return Batch(
        FORMAT,
        new_id(),
        pipeline.now(),
        studies.names(),
        seed or secrets.randbits(32),
        seconds,
        engine,
        options,
        command,
    )


def read(directory: Path) -> Batch:
    """Read `all.json`. Raises UsageError if it is damaged or of a newer format."""
    return checked.whole(directory / FILE, Batch)


def save(directory: Path, asked: Batch) -> None:
    write_whole(directory / FILE, msgspec.json.format(msgspec.json.encode(asked), indent=2) + b"\n")


def chosen(asked: Batch) -> list[Study]:
    """The studies, each with the options that it has. Raises UsageError."""
    every = {study.name: study for study in replicate.chosen("all", asked.options)}
    if unknown := [name for name in asked.studies if name not in every]:
        raise UsageError(f"unknown study {unknown[0]}; use the ciphercost version that created this directory")
    if asked.engine and not any(_takes(study, asked.engine) for study in every.values()):
        raise UsageError(
            f"--engine {asked.engine}: no study runs on it; `ciphercost list studies` lists the engines of each"
        )
    return [every[name] for name in asked.studies]


def _takes(study: Study, engine: str) -> bool:
    return all(name in study.engines for name in studies.named(engine)[0].split(","))


def run_remaining(
    directory: Path, display: Callable[[], Display], say: Say, wanted: list[Study] | None = None
) -> list[Outcome]:
    """Run every study that is not finished; a failure does not stop the others. Raises Interrupted, and UsageError if it is running.

    `wanted`: the studies to run instead of the recorded ones, e.g. small ones in a test.
    """
    with open_locked(directory, LOCK):
        asked = read(directory)
        for number, study in enumerate(wanted or chosen(asked), start=1):
            place = directory / study.name
            asked.reasons.pop(study.name, None)
            try:
                if done(place):
                    say(f"{study.name}: already done")
                else:
                    say(f"{study.name}: study {number} of {len(asked.studies)}")
                    run_study(study, place, asked, display(), say)
            except KeyboardInterrupt:
                raise Interrupted(directory) from None
            except OSError as error:
                asked.reasons[study.name] = (
                    f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
                )
            except CiphercostError as error:
                asked.reasons[study.name] = str(error)
            if study.name in asked.reasons:
                say(f"{study.name}: {asked.reasons[study.name]}")
            save(directory, asked)
        asked.ended = pipeline.now()
        save(directory, asked)
        if html_page.wanted():
            with Supervisor(asked.id) as supervisor, Termination() as termination, termination.cuts():
                html_page.page(directory, supervisor, say)
    return outcomes(directory)


def run_study(study: Study, place: Path, asked: Batch, display: Display, say: Say) -> None:
    """Start or resume a study."""
    if (place / "plan.json").is_file():
        resume.run_in(place, display)
        return
    engine = asked.engine if asked.engine and _takes(study, asked.engine) else study.engine
    spec = replicate.spec_of(study, engine, asked.time or study.seconds, asked.seed)
    say(f"{study.name}: about {minutes(schedule.time_estimate(spec) + study.procedure_seconds(spec.time))}")
    if place.is_dir():  # killed before it had written a plan
        shutil.rmtree(place)
    options = {name: value for name, value in asked.options.items() if name in study.options}
    replicate.run_in(study, spec, place, display, asked.command, options)


def done(place: Path) -> bool:
    return (place / "plan.json").is_file() and resume.finished(place)


def outcomes(directory: Path) -> list[Outcome]:
    """The current outcome of every study. Reads only the records."""
    asked = read(directory)
    all_outcomes = []
    for name in asked.studies:
        place, reason = directory / name, asked.reasons.get(name, "")
        if not (place / "plan.json").is_file():
            all_outcomes.append(Outcome(name, None, reason or "not started"))
            continue
        try:
            result = conclude.result_of(place)
            # A study that failed here may have been finished by its own `resume`.
            why = "" if done(place) else reason or lost(result.cells, result.study)
            all_outcomes.append(Outcome(name, result.study, why, str(place), agreement.unreliable(result.cells)))
        except CiphercostError as error:
            all_outcomes.append(Outcome(name, None, reason or str(error), str(place)))
    return all_outcomes


def as_page(directory: Path, outcomes: list[Outcome]) -> str:
    """The page as HTML."""
    from ciphercost.report.formats import html

    asked = read(directory)
    return html.render_all(outcomes, asked.id, asked.command, asked.ended)


def failed(outcomes: list[Outcome]) -> bool:
    """Whether any study has no complete result. Pure."""
    return any(outcome.reason or outcome.result is None for outcome in outcomes)


def as_json(directory: Path, outcomes: list[Outcome]) -> str:
    """The page as JSON."""
    asked = read(directory)
    whole = {
        "format": FORMAT,
        "id": asked.id,
        "started": asked.started,
        "ended": asked.ended,
        "seed": asked.seed,
        "studies": [
            {
                "study": outcome.study,
                "reason": outcome.reason,
                "run": outcome.run,
                "published_server": outcome.result.published_server if outcome.result else "",
                "server": outcome.result.server if outcome.result else "",
                "verdict": agreement.verdict(studies.get(outcome.study).judged(outcome.result))
                if outcome.result
                else "",
                "unreliable": outcome.unreliable,
                "rows": together.rows_of(outcome.result) if outcome.result else [],
            }
            for outcome in outcomes
        ],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()
