"""The pages of the book, as text. Pure except for the drawing of plots."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from ciphercost.book import answers, axes
from ciphercost.book.answers import Answer
from ciphercost.book.axes import Axis
from ciphercost.book.check import Checked
from ciphercost.book.rows import LAYERS, METRICS, Figure, Machine, Row, alone
from ciphercost.estimate import notation
from ciphercost.estimate.machines import together as machines_together
from ciphercost.estimate.statistics import Interval
from ciphercost.estimate.to_estimate import to_estimate
from ciphercost.estimate.trace import Trace
from ciphercost.model import sizes
from ciphercost.model.version import VERSION
from ciphercost.report.formats import html
from ciphercost.report.words import figure_text, operation_text

HERE = Path(__file__).parent / "templates"
TITLE = "What encryption adds to a query or request: results book"
FILTERS = ("engine", "layer", "mechanism", "workload", "cpu", "machine", "verdict")
"""Columns with a list of values to choose from."""


class Download(NamedTuple):
    """A file beside the pages."""

    address: str
    size: int

    @property
    def shown(self) -> str:
        return sizes.size(self.size)


class Book(NamedTuple):
    """Everything that the front page shows."""

    rows: Sequence[Row]
    runs: int
    first: str
    last: str
    """Dates of the first and the last run."""

    @property
    def machines(self) -> list[Machine]:
        return list(dict.fromkeys(row.machine for row in self.rows))


def book(checked: Sequence[Checked], rows: Sequence[Row]) -> Book:
    dates = sorted(checked_run.result.started[:10] for checked_run in checked)
    return Book(rows, len(checked), dates[0], dates[-1])


def index(of: Book) -> str:
    """The front page. Its script is in the page; the policy allows that script only, by its hash."""
    script, scales, all_answers = (HERE / "book.js").read_text(), axes.of(of.rows), answers.of(of.rows)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _rendered(
        "index.html",
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        book=of,
        names=names(of.machines),
        filters=[(name, _choices(of, name)) for name in FILTERS],
        metrics=METRICS,
        layers=LAYERS,
        axes=scales,
        lines=axes.lines,
        answers=all_answers,
        by_engine=by_engine(all_answers),
        sizes=answers.SIZES,
        usual=answers.USUAL,
        listed=answers.LISTED,
        cpu_models=answers.cpu_models(of.rows, names(of.machines)),
        script=Markup(script),  # noqa: S704 - our own file
        data=lambda row: json.dumps(
            {name: _data(figure, scales[name]) for name, figure in row.figures.items()}, ensure_ascii=False
        ),
    )


def _data(figure: Figure, scale: Axis) -> dict[str, Any]:
    """What the page's script needs of a figure."""
    return figure._asdict() | {"size": figure.size[0] if figure.size else None, "bar": scale.positions(figure)}


def by_engine(all_answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """The answers of each server. Pure."""
    groups: dict[str, list[Answer]] = {}
    for answer in all_answers:
        groups.setdefault(answer.engine, []).append(answer)
    return groups


def names(machines: Sequence[Machine]) -> dict[Machine, str]:
    """A short name for each machine that distinguishes it from the others. Pure."""
    twice = {label for label, count in Counter(machine.label for machine in machines).items() if count > 1}
    return {
        machine: f"{machine.label} ({number})" if machine.label in twice else machine.label
        for number, machine in enumerate(machines, start=1)
    }


def _choices(of: Book, name: str) -> list[str]:
    if name == "verdict":
        return ["differs", "equivalent", "unresolved", "none"]
    if name == "machine":
        return list(names(of.machines).values())
    if name == "cpu":
        return sorted({row.machine.cpu for row in of.rows})
    values = dict.fromkeys(getattr(row, name) for row in of.rows)
    if name == "layer":
        return [layer for layer in LAYERS if layer in values]
    return list(values) if name == "engine" else sorted(values)


class Compared(NamedTuple):
    """One cell on several machines."""

    heading: str
    models: dict[str, Model]
    """By CPU model, in alphabetical order."""


class Model(NamedTuple):
    """One cell on the machines with one CPU model."""

    costs: dict[Machine, tuple[Row, str, str]]
    """Its row there, with the costs in CPU time and in operations per second."""
    together: tuple[str, str] | None
    """Both costs over these machines, with t over machines; None: one machine, whose interval covers no other."""


def machines(of: Book) -> str:
    """The page on how machines differ."""
    return _rendered(
        "machines.html",
        policy=POLICY,
        book=of,
        names=names(of.machines),
        counts=Counter(row.machine for row in of.rows),
        compared=list(compared(of.rows)),
    )


def compared(rows: Sequence[Row]) -> Iterator[Compared]:
    """Cells that were measured on at least two machines. Of several runs on one machine, the last counts. Pure."""
    alike: dict[str, dict[Machine, Row]] = {}
    for row in sorted(rows, key=lambda row: row.slug):
        if row.figures:
            alike.setdefault(row.alike, {})[row.machine] = row
    for by_machine in alike.values():
        if len(by_machine) > 1:
            first = next(iter(by_machine.values()))
            heading = f"{first.engine} · {first.mechanism} · {first.workload} · {first.settings}"
            models: dict[str, dict[Machine, Row]] = {}
            for machine, row in by_machine.items():
                models.setdefault(machine.cpu, {})[machine] = row
            yield Compared(heading, {cpu: _model(models[cpu]) for cpu in sorted(models)})


def _model(rows: Mapping[Machine, Row]) -> Model:
    costs = {machine: (row, _cost(row, "cpu"), _cost(row, "throughput")) for machine, row in rows.items()}
    several = list(rows.values())
    return Model(costs, (_over(several, "cpu"), _over(several, "throughput")) if len(several) > 1 else None)


def _over(rows: Sequence[Row], metric: str) -> str:
    """The cost over the machines of these rows, which must all have measured the same."""
    known = [row.estimates.get(metric) for row in rows]
    keys = {measured[0] if measured else "" for measured in known}
    if len(keys) > 1 or "" in keys:
        return "not measured alike"
    values = [Interval(math.log(measured[1].ratio), (), measured[1].n) for measured in known if measured]
    (key,), estimate = keys, to_estimate(machines_together(values), "full", "machine")
    return f"{figure_text.cost(key, estimate)} ({figure_text.bounds(key, estimate)})"


def _cost(row: Row, metric: str) -> str:
    figure = row.figures.get(metric)
    if figure is None:
        return "not measured"
    base = f": {figure.levels}" if metric == "cpu" and figure.levels else ""
    return f"{figure.cost} ({figure.interval}){base}"


def contribute() -> str:
    """The page on how to contribute a run and how it is checked."""
    return _rendered("contribute.html", policy=POLICY)


def cell(checked: Checked, row: Row, trace: Trace, record: Download, whole: bool) -> str:
    """A cell's page: the HTML report of that cell alone, with its record. `whole`: its run has a page too."""
    shown = alone(checked.result, row.number, row.slug)
    top = _fragment("cell.html", row=row, checked=checked, record=record, whole=whole)
    return html.render(shown, [trace], top=top)


def run(checked: Checked, traces: Sequence[Trace], record: Download) -> str:
    """The page of a run with several cells or a study: its HTML report."""
    top = _fragment("run.html", checked=checked, record=record)
    return html.render(checked.result, traces, top=top)


POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def _fragment(template: str, **values: Any) -> Markup:
    return Markup(_environment().get_template(template).render(**values))  # noqa: S704 - a template with autoescape


def _rendered(template: str, **values: Any) -> str:
    style = html.style() + Markup((HERE / "book.css").read_text())  # noqa: S704 - our own file
    compiled = _environment().get_template(template)
    return figure_text.printable(compiled.render(style=style, title=TITLE, version=VERSION, **values))


@functools.cache
def _environment() -> jinja2.Environment:
    """One for all pages: it keeps the templates that it has compiled."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ciphercost.book", "templates"),
        autoescape=True,  # a record contains text from other programs
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    environment.filters["unbroken"] = html.unbroken
    environment.filters["a"] = operation_text.article
    environment.filters["every"] = notation.every
    return environment
