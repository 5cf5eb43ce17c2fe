"""Builds the book: checks every run, writes the site beside its place, and moves it there when it is complete. I/O."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ciphercost.book import pages
from ciphercost.book.check import Checked, check
from ciphercost.book.rows import Row, alone, rows
from ciphercost.estimate import trace
from ciphercost.host import supervisor
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.plan import toml
from ciphercost.runs import anonymize, archive

MARK = "ciphercost-book"
"""A file in every book, by which a later build knows that it may replace the directory."""
Say = Callable[[str], None]


class Built(NamedTuple):
    """What was built."""

    output: Path
    runs: int
    cells: int
    refused: list[str]
    """Runs that were left out, each with its reason."""


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The directory of a run: itself, or what a packed run holds, until the block ends."""
    if path.is_dir():
        yield path
        return
    with _scratch() as place:
        yield archive.unpack(path, place)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A directory that is removed even if this process is killed."""
    with Supervisor(run_directory.new_id()) as new_supervisor, supervisor.temporary(new_supervisor, "book") as place:
        yield place


def checked_run(path: Path) -> Checked:
    """Check a run's directory or a packed run. Raises UsageError that begins with its name."""
    with opened(path) as directory:
        return _checked(path, directory)


def _checked(path: Path, directory: Path) -> Checked:
    try:
        return check(directory)
    except UsageError as error:
        raise UsageError(_named(path, str(error).replace(f"{directory}/", ""))) from None


def _named(path: Path, reason: str) -> str:
    return reason if reason.startswith(str(path)) else f"{path}: {reason}"


def pack(path: Path, target: Path, *, condense: bool) -> Checked:
    """Check a run, and write it as a packed record that may be published. Raises UsageError."""
    with opened(path) as directory:
        checked = _checked(path, directory)
        archive.pack(anonymize.shareable(directory, condense=condense), checked.result.id, target)
    return checked


def build(paths: Sequence[Path], output: Path, say: Say, *, skip_bad: bool = False) -> Built:
    """Build the site. Raises UsageError if a run is refused and `skip_bad` is off, or if `output` holds something else."""
    _check_output(output)
    refused: list[str] = []
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        place = Path(temporary) / "site"
        for name in ("cells", "runs", "records"):
            (place / name).mkdir(parents=True)
        entered: dict[str, tuple[Path, Checked]] = {}
        for path in paths:
            try:
                checked = _enter(path, place, entered)
            except UsageError as error:
                refused.append(str(error))
                continue
            say(f"{path}: {checked.label}; {len(checked.result.cells)} cell{'s' * (len(checked.result.cells) != 1)}")
        if refused and not skip_bad:
            raise UsageError("\n".join([*refused, "nothing was built; --skip-bad builds the book without such runs"]))
        if not entered:
            raise UsageError("\n".join([*refused, "no run is left, so there is no book"]))
        every = [checked for _, checked in entered.values()]
        table = rows(every)
        book = pages.book(every, table)
        _write(place / "index.html", pages.index(book))
        _write(place / "machines.html", pages.machines(book))
        _write(place / "contribute.html", pages.contribute())
        (place / MARK).write_text("A results book, built by `ciphercost book`, which may replace this directory.\n")
        place.chmod(0o755)
        if output.exists():
            shutil.rmtree(output)
        place.replace(output)
    return Built(output, len(every), len(table), refused)


def _check_output(output: Path) -> None:
    if output.exists() and not (output.is_dir() and ((output / MARK).is_file() or not any(output.iterdir()))):
        raise UsageError(f"{output}: exists and is no results book; give a new directory with -o")


def _enter(path: Path, place: Path, entered: dict[str, tuple[Path, Checked]]) -> Checked:
    """Check one run, and write its pages and its record. Raises UsageError."""
    with opened(path) as directory, _scratch() as public:
        _checked(path, directory)
        files = anonymize.shareable(directory)
        # Pages are made from what is published, so they show nothing else.
        for name, content in files.items():
            (public / name).write_bytes(content)
        checked = _checked(path, public)
        result = checked.result
        if (known := entered.get(result.id)) is not None:
            raise UsageError(f"{path}: is the run {result.id}, which {known[0]} already holds")
        run_rows = rows([checked])
        target = place / "records" / f"{run_rows[0].slug.rpartition('-')[0]}.tar.xz"
        archive.pack(files, result.id, target)
        traces = trace.read(public)
    record = pages.Download(f"../records/{target.name}", target.stat().st_size)
    whole = len(result.cells) > 1 or result.study is not None
    for row in run_rows:
        _write(place / "cells" / f"{row.slug}.html", pages.cell(checked, row, traces[row.number], record, whole))
        _spec(place / "cells" / f"{row.slug}.toml", checked, row)
    if whole:
        _write(place / "runs" / f"{run_rows[0].slug.rpartition('-')[0]}.html", pages.run(checked, traces, record))
    entered[result.id] = path, checked
    return checked


def _spec(path: Path, checked: Checked, row: Row) -> None:
    """Write the spec that repeats one cell."""
    if (spec := alone(checked.result, row.number, row.slug).spec) is not None:
        path.write_text(toml.dump(spec))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def check_each(paths: Sequence[Path], output: Path | None, say: Say, *, condense: bool = False) -> int:
    """Check every run, and with `output` pack it there. Prints a line for each run. Returns the exit status."""
    refused = 0
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    for path in paths:
        try:
            if output is None:
                checked, where = checked_run(path), ""
            else:
                with tempfile.TemporaryDirectory(dir=output, prefix=".pack-") as place:
                    checked = pack(path, Path(place) / "run", condense=condense)
                    target = output / f"{checked.result.id}.tar.xz"
                    (Path(place) / "run").replace(target)
                where = f"; packed as {target} ({target.stat().st_size / 1e3:,.0f} KB)"
        except UsageError as error:
            refused += 1
            say(f"refused: {error}")
            continue
        cells = checked.result.cells
        known = sum(bool(cell.overhead) for cell in cells)
        say(f"{path}: {checked.label}; {known} of {len(cells)} cells have figures, which follow from the slices{where}")
    return UsageError.exit_status if refused else 0
