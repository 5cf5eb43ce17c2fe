"""The program that measures the project's own results book: nothing stops it, it measures nothing twice, and it names what failed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from ciphercost.book import site

ROOT = Path(__file__).parents[2]
GOOD = """
[[cells]]
engine = "null"
mechanism = "none"
regime = "one-core"

[[cells]]
engine = "null"
mechanism = "busy"
factors = { effect = "5%" }
regime = "one-core"
"""


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, with a grid of two families, of which the first can't run."""
    spec = importlib.util.spec_from_file_location("book", ROOT / "tools" / "book.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "1-bad.toml").write_text(GOOD.replace('"busy"', '"no-such-mechanism"'))
    (tmp_path / "grid" / "2-good.toml").write_text(GOOD)
    monkeypatch.setattr(program, "GRID", tmp_path / "grid")
    monkeypatch.setattr(program, "STUDIES", {})
    return program


def test_a_family_that_fails_stops_no_other_and_none_is_measured_twice(
    book: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    argv = ["--time", "4s", "--quick", "--records", str(tmp_path / "records"), "--work", str(tmp_path / "work")]
    assert book.main(argv) == 1
    printed = capfd.readouterr().out
    assert "2 of 2 families to measure" in printed
    assert printed.splitlines()[-1].startswith("1-bad: ")
    (packed,) = (tmp_path / "records").iterdir()
    assert packed.name == "2-good.tar.xz"
    run = site.checked_run(packed)
    assert [cell.mechanism for cell in run.result.cells] == ["none", "busy"]
    assert run.hashed in ("complete", "abridged")

    before = packed.stat().st_mtime_ns
    assert book.main(argv) == 1
    assert "1 of 2 families to measure" in capfd.readouterr().out
    assert packed.stat().st_mtime_ns == before
    assert book.main([*argv, "2-good"]) == 0
    assert "every cell has its figures" in capfd.readouterr().out


def test_unknown_families_are_named(book: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        book.main(["3-new"])
    assert "there are 1-bad and 2-good" in capsys.readouterr().err


RUNS = sorted((ROOT / "book" / "runs").glob("*.tar.xz"))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.partition(".")[0])
def test_the_books_own_runs_may_enter_it(path: Path) -> None:
    """A change of the method changes what follows from their slices: then `python tools/book.py --estimate`."""
    assert site.checked_run(path).result.cells
