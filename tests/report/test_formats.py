"""Every report format has the same numbers, escapes the record's texts, and fits into a comment."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import polars
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

import ciphercost
import records
from ciphercost import api, commands, engines
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Result
from ciphercost.model.run_directory import read_slices
from ciphercost.report import figures, formats, frames, markdown
from ciphercost.report.formats import latex, md
from ciphercost.report.words import figure_text
from repetitions import examples
from results import cell, estimate, failed, mixed, recorded, result

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")

Printed = dict[tuple[int, str], tuple[str, str]]
"""(cell, label) -> (cost, interval), as a report prints them."""


# ── one reader a format ───────────────────────────────────────────────────────────────────────────────────────────────


def in_words(run_result: Result) -> Printed:
    return {
        (number, row.label): (row.cost, row.interval)
        for number, cell in enumerate(run_result.cells)
        for row in figure_text.rows(cell)
    }


def from_json(text: str) -> Printed:
    return in_words(msgspec.json.decode(text, type=Result))


def from_csv(text: str) -> Printed:
    cells: dict[int, Cell] = {}
    for row in csv.DictReader(io.StringIO(text)):
        number = int(row["cell"])
        of = {name: row[name] for name in ("engine", "mechanism", "layer")}
        known = cells.setdefault(number, cell(**of, embedded=engines.get(row["engine"]).embedded, overhead={}))
        if row["metric"]:
            figure = Estimate(float(row["ratio"]), float(row["low"]), float(row["high"]))
            cells[number] = msgspec.structs.replace(known, overhead=known.overhead | {row["metric"]: figure})
    return in_words(result(*(cells[number] for number in sorted(cells))))


def tables(tokens: list[Token]) -> list[list[list[str]]]:
    """The tables of a Markdown page, as rows of displayed text."""
    every_table: list[list[list[str]]] = []
    for token, after in itertools.pairwise(tokens):
        if token.type == "table_open":
            every_table.append([])
        elif token.type == "tr_open":
            every_table[-1].append([])
        elif token.type in ("th_open", "td_open"):
            every_table[-1][-1].append(plain(after))
    return every_table


def plain(token: Token) -> str:
    """The text as displayed, without zero-width spaces."""
    return "".join(child.content for child in token.children or []).replace(markdown.BREAK, "")


def from_md(text: str) -> Printed:
    """The first table has a row per cell; then each measured cell has its own."""
    main, *cell_tables = tables(MARKDOWN.parse(text))
    measured = [number for number, row in enumerate(main[1:]) if row[2]]
    return {
        (number, row[0]): (row[1], row[2])
        for number, table in zip(measured, cell_tables, strict=True)
        for row in table[1:]
    }


LATEX = {escape: letter for letter, escape in latex.ESCAPES.items()}
UNESCAPE = re.compile("|".join(re.escape(escape) for escape in sorted(LATEX, key=len, reverse=True)))


def from_latex(text: str) -> Printed:
    printed: Printed = {}
    number = 0
    body = text.split("\\midrule\n", 1)[1].split("\\endhead\n")[-1].split("\\bottomrule")[0]
    for line in body.splitlines():
        if line == "\\midrule":
            number += 1
        elif "\\multicolumn" not in line:
            cells = [
                UNESCAPE.sub(lambda match: LATEX[match[0]], column)
                for column in line.removesuffix(" \\\\").split(" & ")
            ]
            printed[number, cells[1]] = (cells[2], cells[3])
    return printed


class Page(HTMLParser):
    """The displayed cost table of each cell, by the cell's position in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: Printed = {}
        self._cell, self._costs, self._open = -1, False, False
        self._row: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "div" and re.fullmatch(r"cell-\d+", named.get("id") or ""):
            self._cell = int(str(named["id"]).removeprefix("cell-")) - 1
        elif tag == "div" and named.get("role") == "region":
            self._costs = str(named.get("aria-label")).startswith(("What encryption costs, ", "More figures, "))
        elif tag == "tr":
            self._row = []
        elif tag in ("th", "td"):
            self._row.append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._open = False
        elif tag == "tr" and self._costs and self._row[1:2] != ["cost of encryption"]:
            label, cost, interval, _ = self._row
            self.printed[self._cell, label] = (cost, interval)

    def handle_data(self, data: str) -> None:
        if self._open:
            self._row[-1] += data


def from_html(text: str) -> Printed:
    page = Page()
    page.feed(text)
    return page.printed


READERS: dict[str, Callable[[str], Printed]] = {
    "json": from_json,
    "csv": from_csv,
    "md": from_md,
    "latex": from_latex,
    "html": from_html,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("formats") / "run")


@pytest.mark.parametrize("name", READERS)
def test_every_format_has_the_same_numbers(name: str) -> None:
    for run_result in (
        mixed(),
        result(cell()),
        result(*[cell(variant=f"v={n}", overhead={"throughput": estimate(0.5 + n / 50)}) for n in range(60)]),
    ):
        assert READERS[name](formats.get(name)(run_result)) == in_words(run_result)
    assert ("8.40 times", "8.15–8.65 times") in in_words(mixed()).values()
    assert ("0.1 % fewer", "0.4 % fewer to 0.2 % more") in in_words(mixed()).values()


@pytest.mark.parametrize("name", READERS)
def test_every_format_has_the_numbers_of_a_run(name: str, run: Path) -> None:
    run_result: Result = ciphercost.load(run)
    written = formats.get(name)(run_result)
    if name == "csv":
        # CSV keeps figures that other reports leave out as noise. Without the levels of the arms, none counts as noise.
        run_result = result(*(msgspec.structs.replace(cell, arms={}) for cell in run_result.cells))
    assert READERS[name](written) == in_words(run_result) != {}


def test_csv_and_json_have_every_digit(run: Path) -> None:
    for run_result in (mixed(), ciphercost.load(run)):
        rows = list(csv.DictReader(io.StringIO(formats.get("csv")(run_result))))
        assert list(rows[0]) == list(figures.COLUMNS)
        cells = json.loads(formats.get("json")(run_result))["cells"]
        for row in rows:
            if row["metric"]:
                known = cells[int(row["cell"])]["overhead"][row["metric"]]
                assert [float(row[name]) for name in ("ratio", "low", "high")] == [
                    known[name] for name in ("ratio", "low", "high")
                ]
        assert {int(row["cell"]) for row in rows} == set(range(len(run_result.cells)))


@pytest.mark.parametrize("name", ["md", "csv", "latex", "json", "terminal"])
def test_a_cell_without_a_number_has_its_reason_in_every_format(name: str) -> None:
    text = formats.get(name)(result(cell(), failed("no space left")))
    assert "no space left" in text
    assert "FAILED" in text or name in ("csv", "json")


@pytest.mark.parametrize("name", ["md", "latex", "csv"])
def test_figures_of_a_cell_that_is_not_ok_are_always_shown_with_its_status(name: str) -> None:
    run_result = result(
        cell(), cell(status="unproven", workload="old"), cell(status="no-steady-state", workload="wild")
    )
    lines = [line for line in formats.get(name)(run_result).splitlines() if "point-select" not in line]
    for workload, words_ in (("old", "unproven"), ("wild", "no steady state")):
        assert any(workload in line and words_ in line.lower().replace("-", " ") for line in lines)
    assert "UNPROVEN" in api.Result.of(run_result)._repr_html_()


# ── escaping ──────────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = st.text(st.sampled_from("|\n`<>\\_%&=*[]()!#@+-~$^{}\"' ;,:/.aZ1\t\r"), min_size=1, max_size=30) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20
)


def hostile(text: str) -> Result:
    return result(cell(version=text, variant="a"), failed(text, variant=text))


def one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


@given(HOSTILE)
@settings(max_examples=examples(300), deadline=None)
def test_markdown_shows_a_text_unchanged(text: str) -> None:
    paragraph = next((token for token in MARKDOWN.parse(f"- {markdown.escaped(text)}") if token.type == "inline"), None)
    shown = plain(paragraph) if paragraph else ""
    assert shown == one_line(text)
    assert paragraph is None or {child.type for child in paragraph.children or []} <= {"text", "text_special"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("by @name", "by @&#8203;name"),
        ("me@example.com", "me@&#8203;example.com"),
        ("see #12", "see #&#8203;12"),
        ("#12", "&#35;&#8203;12"),
        ("# x #", "&#35;&#8203; x #&#8203;"),
        ("owner/name#12", "owner/name#&#8203;12"),
        ("GH-12, gh-1", "GH-&#8203;12, gh-&#8203;1"),
        (":tada: :+1:", ":&#8203;tada: :&#8203;+1:"),
        ("a: b, c:d", "a: b, c:d"),
        ("http://x", "http&#58;//x"),
    ],
)
def test_nobody_is_mentioned_and_nothing_linked(text: str, written: str) -> None:
    """GitHub looks for mentions after decoding character references, so only a letter in between prevents them."""
    assert markdown.escaped(text) == written
    assert plain(next(token for token in MARKDOWN.parse(f"### {written}") if token.type == "inline")) == text


@given(HOSTILE)
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_a_markdown_page(text: str) -> None:
    run_result = hostile(text)
    page = md.render(run_result)
    main, *_ = tables(MARKDOWN.parse(page))
    assert {len(row) for row in main} == {6}
    assert main[2][5] == one_line(text) or len(text) > markdown.SHORT
    assert page.count("<details>") == page.count("</details>") == 2
    assert from_md(page) == in_words(run_result)


@given(HOSTILE)
@settings(max_examples=examples(200), deadline=None)
def test_csv_preserves_every_text_and_none_is_a_formula(text: str) -> None:
    rows = list(csv.DictReader(io.StringIO(formats.get("csv")(hostile(text)), newline="")))
    cells = {row["cell"]: row for row in rows}
    for field in (cells["0"]["version"], cells["1"]["reason"], cells["1"]["variant"]):
        assert not field.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
        assert field.removeprefix("'") == text.replace("\0", "")


def test_a_negative_number_in_csv_stays_a_number() -> None:
    assert all("'" not in line.split(",")[20] for line in formats.get("csv")(mixed()).splitlines()[1:])


@given(HOSTILE)
@settings(max_examples=examples(200), deadline=None)
def test_latex_prints_a_text_unchanged(text: str) -> None:
    escaped = latex.escaped(text)
    known = {*latex.ESCAPES, *latex.LETTERS}
    shown = "".join(
        letter if letter.isascii() or letter in known else f"U+{ord(letter):04X}" for letter in one_line(text)
    )
    assert UNESCAPE.sub(lambda match: LATEX[match[0]], escaped) == shown
    bare = UNESCAPE.sub("", escaped)
    assert not set(bare) & set("\\{}_%&#$~^")
    page = latex.render(hostile(text))
    assert page.count(" & ") == 4 * (1 + 4) + 1
    assert page.count("\\midrule") == 2


# ── what fits ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sixty_cells_fit_into_a_comment_with_every_row() -> None:
    text = "a long reason " * 40
    many = [cell(variant=f"cipher=value-{n}", workload="bulk-read") for n in range(59)]
    page = md.render(result(*many, failed(text)))
    assert len(page) <= markdown.MOST
    assert len(tables(MARKDOWN.parse(page))[0]) == 61


@given(st.integers(1, 400), st.integers(0, 400))
@settings(max_examples=15, deadline=None)
def test_a_comment_is_never_too_long_and_states_what_it_leaves_out(count: int, letters: int) -> None:
    page = md.render(result(*[cell(variant="x" * letters + str(n), engine="<" * 60) for n in range(count)]))
    assert len(page) <= markdown.MOST
    assert page.count("<details>") == page.count("</details>")
    folded = page.count("<details>")
    assert folded == count or "did not fit" in page


# ── data frames ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_as_a_data_frame_has_a_row_per_figure(run: Path) -> None:
    for run_result in (ciphercost.load(run), api.Result.of(mixed())):
        frame = run_result.to_polars()
        assert frame.columns == list(figures.COLUMNS)
        assert frame.height == sum(max(1, len(cell.overhead)) for cell in run_result.cells)
        for row in frame.iter_rows(named=True):
            if row["metric"]:
                assert row["ratio"] == run_result.cells[row["cell"]].overhead[row["metric"]].ratio


def test_slices_as_a_data_frame_are_the_record(run: Path, tmp_path: Path) -> None:
    frame = ciphercost.slices(run)
    records = list(read_slices(run))
    assert frame.height == len(records) > 0
    for name in ("session", "block", "arm", "started", "phase"):
        assert frame[name].to_list() == [getattr(record, name) for record in records]
    assert frame["operations"].to_list() == [record.agent and record.agent.operations for record in records]
    assert frame["host_idle"].to_list() == [
        record.counters.host_idle if record.counters else None for record in records
    ]
    done = CliRunner().invoke(
        commands.cli, ["report", str(run), "--format", "parquet", "-o", str(tmp_path / "s.parquet")]
    )
    assert done.exit_code == 0, done.output
    assert polars.read_parquet(tmp_path / "s.parquet").equals(frame)


def test_a_run_without_a_slice_is_an_empty_frame(run: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes((run / "plan.json").read_bytes())
    assert ciphercost.slices(tmp_path).columns == ciphercost.slices(run).columns


def test_parquet_without_a_file_or_without_polars_suggests_what_to_do(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = CliRunner().invoke(commands.cli, ["report", str(run), "--format", "parquet"])
    assert isinstance(done.exception, UsageError)
    assert "-o FILE" in str(done.exception)
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(UsageError, match=r"ciphercost\[frames\]"):
        frames.cells(mixed())


def test_no_text_breaks_the_table_of_a_notebook() -> None:
    run_result = result(cell(version="<script>alert(1)</script>"), failed("a < b & c\x1b[31m"))
    page = api.Result.of(run_result)._repr_html_()
    assert "<script" not in page
    assert "a &lt; b &amp; c\ufffd[31m" in page
    assert "20.0 % fewer" in page
    assert api.Result.of(run_result)._repr_markdown_() == md.render(run_result)


def test_an_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="latex"):
        formats.get("latx")


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".html", "<!doctype html>"), (".json", "{"), (".md", "###"), (".txt", "postgresql")]
)
def test_a_files_suffix_says_what_to_write(suffix: str, begins: str, tmp_path: Path) -> None:
    record = records.unpacked("postgresql-tls", tmp_path)
    output = tmp_path / f"report{suffix}"
    done = CliRunner().invoke(commands.cli, ["report", str(record), "-o", str(output)])
    assert done.exit_code == 0, done.output
    assert output.read_text().lower().startswith(begins.lower())
