"""Whatever a user names is read within a bound: files that are too large, pipes without a writer, and devices without an end."""

from __future__ import annotations

import os
import re
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import ciphercost
import limited
from ciphercost.host import authorities
from ciphercost.importers import read_file
from ciphercost.importers.csv_columns import columns
from ciphercost.load import headers, requests, text_file
from ciphercost.load.connection_string import option_files, pg_service
from ciphercost.load.jdbc import drivers
from ciphercost.load.script_parts import Statement
from ciphercost.model import bounds, checked
from ciphercost.model.errors import UsageError
from ciphercost.plan import toml
from ciphercost.runs import trend_input

LIMITS = Path(ciphercost.__file__).parents[2] / "LIMITS.md"

READERS: dict[str, tuple[Callable[[Path], object], bounds.Bound]] = {
    "spec": (toml.load, bounds.SPEC),
    "--sql": (lambda path: text_file.read(path, "--sql"), bounds.STATEMENTS),
    "--header": (headers.read, bounds.HEADERS),
    "--ca": (authorities.pem, bounds.CERTIFICATES),
    "result": (trend_input._of_json, bounds.RECORD),
    "facts": (checked.facts, bounds.RECORD),
    "service": (lambda path: pg_service.find("x", str(path)), bounds.OPTIONS),
    "options": (lambda path: list(option_files._with_included(path, 4)), bounds.OPTIONS),
}
"""What reads a whole file that a user names, and its bound."""


@pytest.mark.parametrize("name", READERS)
def test_a_file_beyond_its_bound_is_refused_by_its_size(tmp_path: Path, name: str) -> None:
    read, bound = READERS[name]
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(bound.most + 1)
    with pytest.raises(UsageError, match=f"{path}.* has {bound.most + 1:,} bytes.*may have {bound.most:,}") as error:
        read(path)
    assert bound.advice in str(error.value)


@pytest.mark.parametrize("name", READERS)
def test_a_device_without_an_end_is_refused_at_the_bound(name: str) -> None:
    read, bound = READERS[name]
    with pytest.raises(UsageError, match=f"/dev/zero.* has more than {bound.most:,} bytes"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_without_a_writer_does_not_wait_for_ever(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SILENCE_SECONDS", 0.1)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(UsageError, match=rf"{path}.*: nothing came .* 0\.1 s"):
        READERS[name][0](path)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """As in `--sql <(make-statements)`."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = b"SELECT 1;\n" * 50_000
    writer = threading.Thread(target=lambda: path.write_bytes(content))
    writer.start()
    assert bounds.read(path, bounds.STATEMENTS) == content
    writer.join()
    assert bounds.read(Path("/dev/null"), bounds.STATEMENTS) == b""
    with pytest.raises(UsageError, match="is a directory; name a file"):
        bounds.read(tmp_path, bounds.SPEC)
    with pytest.raises(UsageError, match="can't be read: No such file"):
        bounds.readable(tmp_path / "missing", bounds.SPEC)


def test_a_body_and_a_line_of_a_record_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = tmp_path / "body"
    body.write_bytes(bytes(bounds.BODY.most + 1))
    statement = Statement("POST /x", ())
    with pytest.raises(UsageError, match=r"line 2: .* body: has 8,388,609 bytes"):
        requests._with_body(statement, "< body", tmp_path, "line 2")
    with (tmp_path / "slices.jsonl").open("wb") as file:
        file.write(b"\n")
        file.truncate(bounds.RECORD_LINE.most + 2)
    with (tmp_path / "slices.jsonl").open("rb") as lines, pytest.raises(UsageError, match="line 2: has more than"):
        list(bounds.lines(lines, bounds.RECORD_LINE, "slices.jsonl"))


def test_a_jar_can_not_unpack_into_all_memory(tmp_path: Path) -> None:
    path = tmp_path / "driver.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr(drivers.SERVICE, bytes(8 << 20))
    with pytest.raises(UsageError, match=r"java.sql.Driver: has more than 1,048,576 bytes"):
        drivers.of_file(path)


# ── import ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_has_a_limit_of_rows_and_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with path.open("w") as file:
        file.write("mode,tps\n")
        for _ in range(100):
            file.write("plain,123.6\n" * 80_000)  # 8 million
    output = limited.run(
        "read_file.read(Path(sys.argv[1]), columns('throughput=tps,arm=mode'))",
        path,
        imports="from ciphercost.importers import read_file\nfrom ciphercost.importers.csv_columns import columns",
    )
    assert f"line {bounds.TABLE_ROWS + 2}: more than {bounds.TABLE_ROWS:,} lines; import its summary" in output


def test_a_file_to_import_has_a_limit_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"mode,tps\n" + b"plain,1\n" * 40_000)
    os.truncate(path, bounds.IMPORTED.most + 1)
    with pytest.raises(UsageError, match=r"has 134,217,729 bytes, .*`import`"):
        read_file.read(path, columns("throughput=tps"))


def test_json_to_import_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "IMPORTED_JSON", bounds.Bound("JSON", 1 << 20, "import less"))
    path = tmp_path / "hyperfine.json"
    path.write_text('{"results": [{"command": "x", "times": [' + "1.0, " * 400_000)
    with pytest.raises(UsageError, match=r"too long .*hyperfine|1 MiB of JSON"):
        read_file.read(path, [])


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_limits_states_every_bound() -> None:
    text = " ".join(LIMITS.read_text().split())
    for bound in bounds.ALL:
        assert f"| {bound.what[0].upper()}{bound.what[1:]} | {bound.size} |" in text, bound.what
    for words in (
        f"{bounds.TABLE_ROWS:,} rows",
        f"{bounds.ARCHIVE_MEMBERS:,} files",
        f"{bounds.SILENCE_SECONDS:g} seconds",
    ):
        assert words in text


def test_every_bound_is_listed() -> None:
    defined = [bound for bound in vars(bounds).values() if isinstance(bound, bounds.Bound)]
    assert sorted(defined, key=repr) == sorted(bounds.ALL, key=repr)


def test_what_a_user_names_is_read_by_one_module() -> None:
    """Whoever reads a whole file elsewhere reads what ciphercost, a server or the system wrote."""
    root = Path(ciphercost.__file__).parent
    whole = re.compile(r"\.read_(?:bytes|text)\(")
    for folder in ("plan", "commands", "importers", "load/connection_string", "trend"):
        readers = [path for path in (root / folder).rglob("*.py") if whole.search(path.read_text())]
        assert [path.name for path in readers if path.name != "_names.py"] == []
