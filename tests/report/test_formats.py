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

Said = dict[tuple[int, str], tuple[str, str]]
"""(cell, label) -> (cost, interval), as a report prints them."""


# ── one reader a format ───────────────────────────────────────────────────────────────────────────────────────────────


def in_words(found: Result) -> Said:
    return {
        (number, row.label): (row.cost, row.interval)
        for number, each in enumerate(found.cells)
        for row in figure_text.rows(each)
    }


def from_json(text: str) -> Said:
    return in_words(msgspec.json.decode(text, type=Result))


def from_csv(text: str) -> Said:
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
    found: list[list[list[str]]] = []
    for token, after in itertools.pairwise(tokens):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("th_open", "td_open"):
            found[-1][-1].append(plain(after))
    return found


def plain(token: Token) -> str:
    """The text as displayed, without zero-width spaces."""
    return "".join(each.content for each in token.children or []).replace(markdown.BREAK, "")


def from_md(text: str) -> Said:
    """The first table has a row per cell; then each measured cell has its own."""
    main, *own = tables(MARKDOWN.parse(text))
    measured = [number for number, row in enumerate(main[1:]) if row[2]]
    return {
        (number, row[0]): (row[1], row[2]) for number, table in zip(measured, own, strict=True) for row in table[1:]
    }


LATEX = {escape: letter for letter, escape in latex.ESCAPES.items()}
UNESCAPE = re.compile("|".join(re.escape(each) for each in sorted(LATEX, key=len, reverse=True)))


def from_latex(text: str) -> Said:
    found: Said = {}
    number = 0
    body = text.split("\\midrule\n", 1)[1].split("\\endhead\n")[-1].split("\\bottomrule")[0]
    for line in body.splitlines():
        if line == "\\midrule":
            number += 1
        elif "\\multicolumn" not in line:
            cells = [
                UNESCAPE.sub(lambda match: LATEX[match[0]], each) for each in line.removesuffix(" \\\\").split(" & ")
            ]
            found[number, cells[1]] = (cells[2], cells[3])
    return found


class Page(HTMLParser):
    """The displayed cost table of each cell, by the cell's position in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.said: Said = {}
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
            self.said[self._cell, label] = (cost, interval)

    def handle_data(self, data: str) -> None:
        if self._open:
            self._row[-1] += data


def from_html(text: str) -> Said:
    page = Page()
    page.feed(text)
    return page.said


READERS: dict[str, Callable[[str], Said]] = {
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
    for found in (
        mixed(),
        result(cell()),
        result(*[cell(variant=f"v={n}", overhead={"throughput": estimate(0.5 + n / 50)}) for n in range(60)]),
    ):
        assert READERS[name](formats.get(name)(found)) == in_words(found)
    assert ("8.40 times", "8.15–8.65 times") in in_words(mixed()).values()
    assert ("0.1 % fewer", "0.4 % fewer to 0.2 % more") in in_words(mixed()).values()


@pytest.mark.parametrize("name", READERS)
def test_every_format_has_the_numbers_of_a_run(name: str, run: Path) -> None:
    found: Result = ciphercost.load(run)
    written = formats.get(name)(found)
    if name == "csv":
        # CSV keeps figures that other reports leave out as noise. Without the levels of the arms, none counts as noise.
        found = result(*(msgspec.structs.replace(each, arms={}) for each in found.cells))
    assert READERS[name](written) == in_words(found) != {}


def test_csv_and_json_have_every_digit(run: Path) -> None:
    for found in (mixed(), ciphercost.load(run)):
        rows = list(csv.DictReader(io.StringIO(formats.get("csv")(found))))
        assert list(rows[0]) == list(figures.COLUMNS)
        cells = json.loads(formats.get("json")(found))["cells"]
        for row in rows:
            if row["metric"]:
                known = cells[int(row["cell"])]["overhead"][row["metric"]]
                assert [float(row[name]) for name in ("ratio", "low", "high")] == [
                    known[name] for name in ("ratio", "low", "high")
                ]
        assert {int(row["cell"]) for row in rows} == set(range(len(found.cells)))


@pytest.mark.parametrize("name", ["md", "csv", "latex", "json", "terminal"])
def test_a_cell_without_a_number_has_its_reason_in_every_format(name: str) -> None:
    text = formats.get(name)(result(cell(), failed("no space left")))
    assert "no space left" in text
    assert "FAILED" in text or name in ("csv", "json")


@pytest.mark.parametrize("name", ["md", "latex", "csv"])
def test_figures_of_a_cell_that_is_not_ok_are_always_shown_with_its_status(name: str) -> None:
    found = result(cell(), cell(status="unproven", workload="old"), cell(status="no-steady-state", workload="wild"))
    lines = [line for line in formats.get(name)(found).splitlines() if "point-select" not in line]
    for workload, words_ in (("old", "unproven"), ("wild", "no steady state")):
        assert any(workload in line and words_ in line.lower().replace("-", " ") for line in lines)
    assert "UNPROVEN" in api.Result.of(found)._repr_html_()


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
    assert paragraph is None or {each.type for each in paragraph.children or []} <= {"text", "text_special"}


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
    assert plain(next(each for each in MARKDOWN.parse(f"### {written}") if each.type == "inline")) == text


@given(HOSTILE)
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_a_markdown_page(text: str) -> None:
    found = hostile(text)
    page = md.render(found)
    main, *_ = tables(MARKDOWN.parse(page))
    assert {len(row) for row in main} == {6}
    assert main[2][5] == one_line(text) or len(text) > markdown.SHORT
    assert page.count("<details>") == page.count("</details>") == 2
    assert from_md(page) == in_words(found)


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
    shown = "".join(each if each.isascii() or each in known else f"U+{ord(each):04X}" for each in one_line(text))
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
    for found in (ciphercost.load(run), api.Result.of(mixed())):
        frame = found.to_polars()
        assert frame.columns == list(figures.COLUMNS)
        assert frame.height == sum(max(1, len(each.overhead)) for each in found.cells)
        for row in frame.iter_rows(named=True):
            if row["metric"]:
                assert row["ratio"] == found.cells[row["cell"]].overhead[row["metric"]].ratio


def test_slices_as_a_data_frame_are_the_record(run: Path, tmp_path: Path) -> None:
    frame = ciphercost.slices(run)
    records = list(read_slices(run))
    assert frame.height == len(records) > 0
    for name in ("session", "block", "arm", "started", "phase"):
        assert frame[name].to_list() == [getattr(each, name) for each in records]
    assert frame["operations"].to_list() == [each.agent and each.agent.operations for each in records]
    assert frame["host_idle"].to_list() == [each.counters.host_idle if each.counters else None for each in records]
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
    found = result(cell(version="<script>alert(1)</script>"), failed("a < b & c\x1b[31m"))
    page = api.Result.of(found)._repr_html_()
    assert "<script" not in page
    assert "a &lt; b &amp; c\ufffd[31m" in page
    assert "20.0 % fewer" in page
    assert api.Result.of(found)._repr_markdown_() == md.render(found)


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
