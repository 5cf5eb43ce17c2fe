"""`--csv FILE --secret …` as a user runs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import RequireServer
from test_real import SHORT, measured, result_of

PATIENTS = Path(__file__).parent.parent / "cases" / "rows" / "patients.csv"


def test_secret_columns_are_measured_with_all_operations_and_no_value_is_kept(tmp_path: Path) -> None:
    shutil.copy(PATIENTS, tmp_path)
    argv = [
        "sqlite:client-aes-gcm-256",
        "--csv",
        "patients.csv",
        "--secret",
        "ssn,diagnosis",
        "--workload",
        "mixed-crud",
    ]
    done = measured(
        "run", *argv, "--set", "search=blind-index", *SHORT, "-o", "run", "--json", "out.json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.splitlines()[0].endswith("secret: ssn, diagnosis")
    (cell,) = result_of(tmp_path)["cells"]
    assert (cell["factors"]["secret"], cell["factors"]["search"], cell["factors"]["bits"]) == (
        "ssn,diagnosis",
        "blind-index",
        "64",
    )
    assert set(cell["values"]) == {"sealed", "opened", "searched"}
    assert all(arm.get("errors", 0) == 0 for arm in cell["arms"].values())
    assert cell["stored"]["encrypted"]["table_bytes"] >= cell["stored"]["plain"]["table_bytes"] > 0
    assert all(sizes["index_bytes"] > 0 for sizes in cell["stored"].values())
    codes = {finding["code"] for finding in cell["findings"]}
    assert "length-shows" in codes
    assert "equal-rows-show" not in codes
    written = [path.read_text(errors="replace") for path in (tmp_path / "run").rglob("*") if path.is_file()]
    written += [(tmp_path / "out.json").read_text(), done.stdout, done.stderr]
    values = ("001234567", "two\nlines", "Brandt", "J45")
    assert [value for value in values if any(value in text for text in written)] == []


@pytest.mark.parametrize("workload", ["search", "insert"])
def test_the_servers_encryption_is_compared_with_the_applications(
    workload: str, tmp_path: Path, require_server: RequireServer
) -> None:
    require_server("mariadb")
    shutil.copy(PATIENTS, tmp_path)
    argv = [
        "mariadb:client-aes-gcm-256",
        "--versus",
        "mechanism=aes-cbc-256",
        "--csv",
        "patients.csv",
        "--secret",
        "ssn",
        "--workload",
        workload,
    ]
    done = measured("run", *argv, *SHORT, "-o", "run", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = result_of(tmp_path)["cells"]
    assert cell["status"] == "ok"
    assert all(arm.get("errors", 0) == 0 for arm in cell["arms"].values())
