"""`import` of a study's raw folders: atop's screens, times that a script printed, and spreadsheets with several tables.

The files have the form of those in the repository of study 004's authors; the figures are invented.
"""

from __future__ import annotations

import io
import re
import statistics
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.importers import csv_columns, gather, spreadsheet
from ciphercost.importers.arm_words import arm_in
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import Bad, Lines, atop_screen, times
from ciphercost.model import bounds
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.runs import import_run

HEAD = "ATOP - db      2026/05/03  09:17:{second}      -----------------      {elapsed} elapsed\n"
CPU = "CPU | sys {:>7}% | user {:>6}% | irq {:>7}% | idle {:>6}% | wait {:>6}% |\n"
MEM = "MEM | tot     3.8G | free  {} | cache   1.2G | buff   97.2M | slab  131.0M |\n"
MEM_MORE = "MEM | numnode    1 | shmem  69.4M | shrss  32.0M | tcpsk   0.0M | udpsk   0.0M |\n"
GREPPED = CPU.format(7, 20, 0, 71, 2) + CPU.format(30, 60, 0, 10, 0) + CPU.format(40, 50, 2, 0, 8)
MAP = "time=INSERT:s,time=SELECT:s,run=Teste"


def screens(lines: str) -> list[Reading]:
    return atop_screen.read(Lines(lines.splitlines(keepends=True)))


def timed(text: str) -> list[Reading]:
    return times.read(Lines(text.splitlines(keepends=True)))


# ── atop's screens ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cpu_lines_alone_lose_the_sample_since_boot_and_say_so() -> None:
    (reading,) = screens(GREPPED)
    assert reading.series["host_busy"] == [90, 92]
    assert reading.figures["host_system"] == pytest.approx((30 + 42) / 2)
    assert reading.figures["host_iowait"] == 4
    assert (reading.cpus, reading.clock, reading.started) == (1, "", None)
    assert [note.code for note in reading.notes] == ["since-boot"]


def test_whole_screens_have_a_clock_and_lose_only_the_sample_since_boot() -> None:
    boot = (
        HEAD.format(second="49", elapsed="1h17m48s")
        + CPU.format(7, 20, 0, 71, 2)
        + f"{atop_screen.SINCE_BOOT}    Unrestricted view\n"
    )
    first = (
        HEAD.format(second="50", elapsed="1s")
        + "PRC | sys 2m42s |\n"
        + CPU.format(60, 120, 0, 20, 0)
        + MEM.format("512.0M")
        + MEM_MORE
    )
    second = HEAD.format(second="51", elapsed="1s") + CPU.format(80, 120, 0, 0, 0) + MEM.format("  1.0G") + MEM_MORE
    (reading,) = screens(boot + first + second)
    assert reading.series["host_busy"] == [90, 100]
    assert (reading.cpus, reading.clock, reading.notes) == (2, "local", [])
    assert reading.started is not None
    assert reading.ended == reading.started + 2
    assert reading.figures["memory_free_bytes"] == (2**29 + 2**30) / 2
    # A recording that was printed from its middle on (`atop -r FILE -b 09:17`) has no sample since boot.
    assert screens(first + second)[0].series["host_busy"] == [90, 100]


def test_what_shares_lack_of_whole_cpus_is_steal_which_a_narrow_screen_hides() -> None:
    boot, first, second = CPU.format(20, 20, 0, 160, 0), CPU.format(30, 100, 0, 50, 0), CPU.format(50, 150, 0, 0, 0)
    (reading,) = screens(boot + first + second)
    assert reading.cpus == 2
    assert reading.series["host_busy"] == [65, 100]
    assert reading.figures["host_steal"] == 5
    assert "add up to as little as 180 % of 200 %" in reading.notes[-1].text
    # Rounding is no steal.
    assert screens(boot + CPU.format(30, 100, 0, 68, 0))[0].figures["host_steal"] == 0


def test_a_last_row_near_the_mean_is_a_row_since_atop_prints_no_average() -> None:
    rows = [(20, 80), (30, 70), (10, 60), (20, 70)]
    (reading,) = screens(CPU.format(1, 1, 0, 98, 0) + "".join(CPU.format(a, b, 0, 100 - a - b, 0) for a, b in rows))
    assert len(reading.series["host_busy"]) == 4
    assert "average-row" not in {note.code for note in reading.notes}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (CPU.format(7, 20, 0, 71, 2), "only the first sample"),
        (GREPPED + "CPU | sys 7% | user 20% |\n", "line 4: .*lacks irq, idle, wait"),
        (GREPPED + CPU.format(0, 0, 0, 0, 0), "line 4: no CPU time passed"),
        (GREPPED + CPU.format("x", 20, 0, 20, 2), "line 4: .*not a CPU line"),
        (MEM.format("1.0G") + MEM.format("lots"), "line 2: .*not an amount of memory"),
    ],
)
def test_screens_that_show_no_cpu_are_refused_with_their_line(lines: str, words: str) -> None:
    with pytest.raises(Bad) as refused:
        screens(lines)
    said = f"line {refused.value.line}: {refused.value.what}"
    assert re.search(words, said), said


@given(st.integers(1, 64), st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=8))
def test_shares_are_of_all_cpus(cpus: int, shares: list[tuple[int, int]]) -> None:
    rows = [(a * cpus, (100 - a) * b // 100 * cpus) for a, b in shares]
    text = CPU.format(0, 0, 0, 100, 0) + "".join(CPU.format(a, b, 0, 100 * cpus - a - b, 0) for a, b in rows)
    (reading,) = screens(text)
    assert reading.cpus == cpus
    busy = [(a + b) / cpus for a, b in rows]
    kept = reading.series["host_busy"]
    assert any(kept == pytest.approx(busy[at : at + len(kept)]) for at in range(len(busy)))


# ── times ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_time_is_a_run_of_its_operation_set_apart_by_the_whole_numbers() -> None:
    text = "Registros: 1000\nTempo de execução INSERT: 4.500000000\nTempo de execução BUSCA: .250000000\n"
    insert, select = timed(text)
    assert times.recognise(text) == 2
    assert (insert.workload, insert.seconds, insert.factors) == ("INSERT", 4.5, {"Registros": "1000"})
    assert (select.workload, select.figures["latency_mean"]) == ("SELECT", 250)
    (reading,) = timed("Execution time of the DELETE (ms): 12\n")
    assert (reading.workload, reading.seconds) == ("DELETE", 0.012)


def test_a_label_may_state_the_arm() -> None:
    plain, encrypted = timed("Time INSERT plain: 4.1 s\nTime INSERT tls: 4.6 s\n")
    assert plain.workload == encrypted.workload == "INSERT"
    assert [arm_in(reading.names[0]) for reading in (plain, encrypted)] == ["plain", "encrypted"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Time INSERT: 4.1\n", "line 1: the unit of 'Time INSERT' is unknown"),
        ("Time INSERT: 4.1 s\nnonsense\n", "line 2: 'nonsense' is not a label with a number"),
        ("Time INSERT: 0.000000000\n", "line 1: a time of 0"),
        ("Time INSERT: 4.1 s\nLoad: 1.5\n", "line 2: 'Load' is neither a time nor a whole number"),
        ("Time INSERT: 4.12345", "line 1: the only time is cut off"),
    ],
)
def test_times_that_can_not_be_used_are_refused_with_their_line(text: str, words: str) -> None:
    with pytest.raises(Bad) as refused:
        timed(text)
    assert f"line {refused.value.line}: {refused.value.what}".startswith(words)


def test_a_time_without_a_unit_that_is_cut_off_is_left_out() -> None:
    (reading,) = timed("Time INSERT: 4.500000000\nTime SELECT: 3.25")
    assert reading.workload == "INSERT"
    assert [note.code for note in reading.notes] == ["cut-off"]


def test_other_text_is_no_file_of_times() -> None:
    assert not times.recognise("Runtime: 5 s\nand then some\n")
    assert not times.recognise("Records: 5\nErrors: 0\n")


# ── folders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def folder(place: Path) -> Path:
    """Two runs of each arm with their screens, as the study's script writes them."""
    root = place / "testes_mariaDB"
    for arm, factor in (("Claro", 1.0), ("Cifrado", 1.25)):
        for run in (1, 2):
            name = f"MARIADB-{arm}-23050{run}101010"
            there = root / f"testes em {arm.lower()}" / f"teste{run}-1000linhas"
            there.mkdir(parents=True)
            seconds = [factor * (4 + run / 10), factor * (2 + run / 10)]
            told = ("INSERT", "BUSCA")
            lines = [f"Tempo de execução {what}: {value:.9f}\n" for what, value in zip(told, seconds, strict=True)]
            (there / name).write_text("Registros: 1000\n" + "".join(lines))
            (there / f"{name}-INSERT-CPU.csv").write_text(GREPPED)
            (there / f"{name}-INSERT-MEM.csv").write_text((MEM.format("1.0G") + MEM_MORE) * 3)
            (there / f"{name}-INSERT-SWP.csv").write_text("SWP | tot   975.0M | free  975.0M |\n" * 3)
            (there / f"{name}-SELECT-CPU.csv").write_text(CPU.format(1, 1, 0, 98, 0) + CPU.format(25, 25, 0, 50, 0))
    return root


def test_raw_folders_give_each_runs_time_with_the_cpu_and_memory_of_its_screens(tmp_path: Path) -> None:
    result, _, notes = import_run.run([folder(tmp_path)], {"output": tmp_path / "made"})
    cells = {cell.workload: cell for cell in result.cells}
    assert cells.keys() == {"INSERT", "SELECT"}
    for name, busy in (("INSERT", 91), ("SELECT", 50)):
        costs = cells[name].imported.costs  # type: ignore[union-attr]
        assert costs["latency_mean"].ratio == pytest.approx(1.25)
        assert (costs["latency_mean"].plain_runs, costs["latency_mean"].encrypted_runs) == (2, 2)
        assert costs["host_busy"].plain == pytest.approx(busy)
        assert cells[name].factors == {"Registros": "1000"}
        assert cells[name].imported.server == "mariadb"  # type: ignore[union-attr]
    assert cells["INSERT"].arms["plain"]["memory_free_bytes"] == pytest.approx(2**30)
    said = "\n".join(notes)
    assert "skipped: 4 files, atop's lines on swap" in said
    assert "mariadb: 25.00 % more time per operation on average over 2 workloads in 2 cells" in said
    assert "standard deviation of 0.00 %" in said


def test_a_screen_whose_name_fits_no_operation_is_not_joined(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (screen,) = root.rglob("MARIADB-Claro-230501101010-SELECT-CPU.csv")
    screen.rename(screen.with_name("MARIADB-Claro-230501101010-BACKUP-CPU.csv"))
    record, _ = gather.gather([root], Choices())
    alone = [reading for reading in record.readings if reading.kind == "cpu"]
    assert [Path(reading.file).name for reading in alone] == ["MARIADB-Claro-230501101010-BACKUP-CPU.csv"]


def test_a_screen_of_an_operation_shorter_than_a_second_is_skipped_and_its_time_is_kept(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (screen,) = root.rglob("MARIADB-Claro-230501101010-SELECT-CPU.csv")
    screen.write_text(CPU.format(7, 20, 0, 71, 2))
    record, messages = gather.gather([root], Choices())
    assert sum(reading.workload == "SELECT" for reading in record.readings) == 4
    assert any(str(screen) in message and "only the first sample" in message for message in messages)
    with pytest.raises(UsageError, match="only the first sample"):
        gather.gather([screen], Choices())


# ── spreadsheets ──────────────────────────────────────────────────────────────────────────────────────────────────────

COSTS = {
    ("Firebird", "1000"): (1.5, 1.0),
    ("Firebird", "2000"): (1.5, 1.2),
    ("MariaDB", "1000"): (1.1, 1.1),
    ("MariaDB", "2000"): (1.3, 1.1),
}


def workbook(path: Path, arm: str, *, encrypted: bool) -> Path:
    """A sheet with four tables of three runs, beside and below each other, each with a title, a mean and a deviation."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for (server, records), costs in COSTS.items():
        left, top = (1 if server == "Firebird" else 6), (1 if records == "1000" else 10)
        sheet.cell(top, left, f"{server} {records} linhas {arm}")
        columns = [[base * (cost if encrypted else 1) for base in (4.062, 4.125, 4.25)] for cost in costs]
        for at, what in enumerate(("Teste ", "INSERT", "SELECT")):
            sheet.cell(top + 1, left + at, what)
        for run in range(3):
            for at, figure in enumerate((run + 1, columns[0][run], columns[1][run])):
                sheet.cell(top + 2 + run, left + at, figure)
        for row, what, of in ((6, "Média", statistics.fmean), (7, "DP", statistics.stdev)):
            for at, shown in enumerate((what, of(columns[0]), of(columns[1]))):
                sheet.cell(top + row, left + at, shown)
    book.save(path)
    return path


def test_a_workbook_gives_each_tables_runs_and_the_average_that_a_publication_states(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    workbook(given / "tempos_claro.xlsx", "claro", encrypted=False)
    workbook(given / "tempos_cifrado.xlsx", "cifrado", encrypted=True)
    result, _, notes = import_run.run([given], {"output": tmp_path / "made", "columns": MAP})
    found = {(cell.engine, cell.workload, cell.factors["title"]): cell for cell in result.cells}
    assert len(found) == len(result.cells) == 8
    for (server, records), costs in COSTS.items():
        for workload, cost in zip(("INSERT", "SELECT"), costs, strict=True):
            imported = found[server.lower(), workload, records].imported
            assert imported is not None
            assert imported.costs["throughput"].ratio == pytest.approx(1 / cost)
            assert imported.costs["throughput"].plain_runs == 3
    said = "\n".join(notes)
    assert "firebird: 30.00 % more time per operation on average over 2 workloads in 4 cells" in said
    assert f"standard deviation of {100 * statistics.stdev([0.5, 0.1]):.2f} %" in said
    assert "mariadb: 15.00 % more" in said
    minded = " ".join(warning.text for cell in result.cells for warning in cell.warnings)
    assert "4 tables lack the mapped columns and were skipped (sheet 'Sheet', row 7, column 1" in minded


def test_rows_of_a_tables_own_mean_and_deviation_are_no_runs(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (("run", "elapsed_s"), (1, 4.0), (2, 5.0), ("Mean", 4.5), ("SD", 0.7071)):
        sheet.append(row)
    book.save(tmp_path / "plain.xlsx")
    record, _ = gather.gather([tmp_path / "plain.xlsx"], Choices(columns=csv_columns.columns("time=elapsed_s,run=run")))
    assert [reading.seconds for reading in record.readings] == [4, 5]
    assert {note.code for reading in record.readings for note in reading.notes} == {"spread-row", "average-row"}


def test_a_workbook_needs_a_map_and_suggests_one(tmp_path: Path) -> None:
    path = workbook(tmp_path / "claro.xlsx", "claro", encrypted=False)
    with pytest.raises(UsageError, match="is a spreadsheet; map its columns: --columns"):
        gather.gather([path], Choices())
    with pytest.raises(
        UsageError,
        match=r"no table has the columns 'throughput'; its tables begin with sheet 'Sheet', row 2, column 1: Teste, INSERT",
    ):
        gather.gather([path], Choices(columns=csv_columns.columns("throughput=Throughput")))


def test_a_wrong_cell_is_named_with_its_sheet(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (("run", "elapsed_s"), (1, 4.0), (2, "soon")):
        sheet.append(row)
    book.save(tmp_path / "plain.xlsx")
    with pytest.raises(UsageError, match=r"plain\.xlsx, sheet 'Sheet', row 3: 'soon' is not a number"):
        gather.gather([tmp_path / "plain.xlsx"], Choices(columns=csv_columns.columns("time=elapsed_s,run=run")))


def test_without_openpyxl_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "claro.xlsx", "claro", encrypted=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r"pip install 'ciphercost\[sheets\]'"):
        gather.gather([path], Choices(columns=csv_columns.columns(MAP)))


def test_a_damaged_or_hostile_workbook_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = workbook(tmp_path / "claro.xlsx", "claro", encrypted=False).read_bytes()
    columns = csv_columns.columns(MAP)
    with zipfile.ZipFile(tmp_path / "damaged.xlsx", "w") as damaged, zipfile.ZipFile(io.BytesIO(whole)) as source:
        for name in source.namelist():
            damaged.writestr(name, source.read(name)[:80])
    with pytest.raises(UsageError, match="not a readable workbook"):
        spreadsheet.read(tmp_path / "damaged.xlsx", columns)
    far = openpyxl.Workbook()
    assert far.active is not None
    far.active.cell(400_000, 16_000, 1)
    far.save(tmp_path / "far.xlsx")
    with pytest.raises(UsageError, match="lie too far apart"):
        spreadsheet.read(tmp_path / "far.xlsx", columns)
    monkeypatch.setattr(bounds, "SPREADSHEET", bounds.Bound("a spreadsheet", len(whole) + 10, "import less"))
    with pytest.raises(UsageError, match=r"claro\.xlsx, unpacked: has .* bytes"):
        spreadsheet.read(tmp_path / "claro.xlsx", columns)


# ── several columns of one figure ─────────────────────────────────────────────────────────────────────────────────────


def test_each_of_several_columns_of_a_figure_is_a_workload(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("mode,INSERT,SELECT\nplain,4.5,2.5\ntls,5.5,2.75\n")
    record, _ = gather.gather(
        [tmp_path / "t.csv"], Choices(columns=csv_columns.columns("arm=mode,time=INSERT:s,time=SELECT:s"))
    )
    assert [(reading.workload, reading.arm, reading.seconds) for reading in record.readings] == [
        ("INSERT", "plain", 4.5),
        ("INSERT", "encrypted", 5.5),
        ("SELECT", "plain", 2.5),
        ("SELECT", "encrypted", 2.75),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time=a:s,time=b:s,workload=w", "workload= can't be mapped too"),
        ("time=a:s,time=b:s,latency=c:ms,latency=d:ms", "only one figure may have several"),
        ("time=a:s,time=A:s", "a column is given twice for time"),
        ("time=a:s,arm=b,arm=c", "arm is given twice"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        csv_columns.columns(text)
