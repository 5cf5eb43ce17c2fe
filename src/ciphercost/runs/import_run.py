"""`ciphercost import`: read files of other tools into a run's directory, and compute its Result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ciphercost import engines, mechanisms
from ciphercost.estimate import imported, imported_averages, results
from ciphercost.host.supervisor import Supervisor
from ciphercost.importers import csv_columns, gather
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import clean
from ciphercost.model import checked, run_directory
from ciphercost.model.constrained_types import PLAN_FORMAT
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import RunFacts
from ciphercost.model.result import Result
from ciphercost.model.spec import ARMS, Arm, Spec
from ciphercost.plan import registry_facts
from ciphercost.runs import conclude, html_page, pipeline

UNNAMED = "encryption"
"""The mechanism if the user names none."""


def run(files: Sequence[Path], given: Mapping[str, Any], command: str = "") -> tuple[Result, Path, list[str]]:
    """(result, directory, notes on what was read). `given`: the options of the command. Raises UsageError before it writes anything."""
    wanted = asked(given)
    mechanism = clean(given.get("mechanism") or UNNAMED)
    if mechanisms.layer_of(mechanism) == "control":
        raise UsageError(
            f"--mechanism {mechanism}: encrypts nothing, but import compares plain with encrypted; name another mechanism"
        )
    engine = clean(given.get("engine") or "")
    fits(engine, mechanism)
    record, notes = gather.gather(files, wanted)
    cells = imported.specs(record, engine, mechanism)
    for cell in cells:
        cell.registered = registry_facts.imported(cell.spec)
    started = pipeline.now()
    facts = RunFacts(
        format=PLAN_FORMAT,
        id=run_directory.new_id(),
        started=started,
        ended=started,
        tool=results.tool(),
        machine={"cpu": "unknown: another tool made these runs"},
        seed=0,
        spec=Spec(cells=[cell.spec for cell in cells]),
        cells=cells,
        command=clean(command),
    )
    try:
        imported.cells(facts, record)
        notes += [average.text() for average in imported_averages.averages(facts, record)]
    except ArithmeticError as error:
        raise UsageError(f"can't compute with these figures ({error}); check that all have the same unit") from None
    checked.ranged(record, "can't use these figures")
    directory = run_directory.directory_for(facts.id, given.get("output"))
    with run_directory.Record(directory, facts) as kept:
        kept.save_imported(record)
        result = conclude.result_of(directory)
        kept.save_result(result)
    if html_page.wanted():
        with Supervisor(facts.id) as run_supervisor:
            html_page.page(directory, run_supervisor, notes.append)
    return result, directory, notes


def fits(engine: str, mechanism: str) -> None:
    """Raises UsageError if engine and mechanism are known, and the engine doesn't have the mechanism."""
    if engine not in engines.names() or mechanisms.find(mechanism) is None:
        return
    known_engine = engines.get(engine)
    if not mechanisms.get(mechanism).serves(known_engine):
        has = ", ".join(
            mechanisms.folded([name for name in mechanisms.of(known_engine) if mechanisms.get(name).layer != "control"])
        )
        raise UsageError(f"--mechanism {mechanism}: {engine} does not have this mechanism; it has {has}")


def asked(given: Mapping[str, Any]) -> Choices:
    """Parse the options of the command. Raises UsageError."""
    words: list[tuple[Arm, str]] = []
    only: Arm | None = None
    for text in given.get("arm_words") or ():
        name, equals, word = text.partition("=")
        arm = next((arm for arm in ARMS if arm == name), None)
        if arm is None or (equals and not word):
            raise UsageError(
                f"--arm {text}: write plain=WORD or encrypted=WORD; write plain or encrypted alone if all files belong to that arm"
            )
        if not equals and only not in (None, arm):
            raise UsageError(
                "--arm plain --arm encrypted: a file can't belong to both arms; write --arm plain=WORD --arm encrypted=WORD"
            )
        if equals:
            words.append((arm, word))
        else:
            only = arm
    if only and (words or given.get("plain") or given.get("encrypted")):
        raise UsageError(
            f"--arm {only} assigns all files to one arm; remove --plain, --encrypted and every other --arm"
        )
    columns = csv_columns.columns(given["columns"]) if given.get("columns") else []
    if given.get("no_header") and not columns:
        raise UsageError("--no-header describes a table; add --columns, e.g. --columns throughput=column3,arm=column1")
    header = not given.get("no_header")
    return Choices(given.get("plain") or (), given.get("encrypted") or (), words, only, columns, header)
