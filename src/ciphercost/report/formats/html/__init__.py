"""A result as one self-contained HTML page without scripts or network requests, for light mode, dark mode and print.

A result contains no latencies or slices. They are drawn if `traces` (from `trace.read`) are given.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from ciphercost.estimate import trace
from ciphercost.estimate.trace import Trace
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Result
from ciphercost.report.blocks import Document
from ciphercost.report.formats.html import _all, _content, _document
from ciphercost.report.plots import Subject
from ciphercost.report.together import Outcome
from ciphercost.report.words import figure_text
from ciphercost.studies.sheet import FINDINGS, INCOMPLETE, SOURCES, anchor

NOTHING = Markup()
SHOWS_MONEY = True


def render(result: Result, traces: Sequence[Trace] = (), budget: float | None = None, *, top: Markup = NOTHING) -> str:
    """The page. `budget`: the highest acceptable cost, as a share; it is drawn beside each cost. `top`: shown below the answer."""
    return _rendered("page.html", page=_content.page(Subject(result, traces, budget)), findings=FINDINGS, top=top)


def render_all(outcomes: Sequence[Outcome], name: str, command: str = "", ended: str = "") -> str:
    """The page of several studies, each with its verdict, its plot and the published costs beside ours."""
    return _rendered("all.html", page=_all.page(outcomes, name, command, ended))


def render_document(of: Document) -> str:
    """The page of a document: of a trend, of a run over machines."""
    return _rendered("document.html", page=_document.page(of))


def write_all(page: str, output: Path) -> None:
    """Write the page. Raises UsageError if it can't be written."""
    _check(output)
    _to(page, output)


def _rendered(template: str, **values: object) -> str:
    return figure_text.printable(_environment().get_template(template).render(style=style(), **values))


@functools.cache
def _environment() -> jinja2.Environment:
    """One for all pages: it keeps the templates that it has compiled."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ciphercost.report.formats.html", "."),
        autoescape=True,  # a record contains text from other programs
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    environment.globals.update(anchor=anchor, sources=SOURCES, incomplete=INCOMPLETE)
    environment.filters["unbroken"] = unbroken
    return environment


LONGEST_WORD = 32
"""A longer word of a command may break: it has no room in a line of a phone."""


def unbroken(command: str) -> Markup:
    """A command that breaks between its words only: a browser would also break after the hyphens of an option."""
    words = re.split(r"(\s+)", command)
    return Markup("").join(
        part if number % 2 or not 0 < len(part) <= LONGEST_WORD else Markup('<span class="word">{}</span>').format(part)
        for number, part in enumerate(words)
    )


@functools.cache
def style() -> Markup:
    """The style sheet of all pages."""
    return Markup((Path(__file__).parent / "page.css").read_text())  # noqa: S704 - our own file


def write(result: Result, directory: Path, output: Path, budget: float | None = None) -> None:
    """Write the page of a run's directory. Raises UsageError if it can't be written, or if the record is damaged."""
    _check(output)
    _to(render(result, trace.read(directory), budget), output)


def _check(output: Path) -> None:
    if output.is_dir():
        raise UsageError(f"can't write {output}: it is a directory; give -o the name of a file")


def _to(text: str, output: Path) -> None:
    try:
        _put(text, output)
    except OSError as error:
        raise UsageError(f"can't write {output}: {error.strerror}") from None


def _put(text: str, output: Path) -> None:
    """Write beside the file and move over it, so that nobody sees half a page. Pipes, devices and links are written through."""
    if output.is_symlink() or (output.exists() and not output.is_file()):
        output.write_text(text, encoding="utf-8")
        return
    beside = output.with_name(f".{output.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(output)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
