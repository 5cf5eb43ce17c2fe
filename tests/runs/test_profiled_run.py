"""--profile: a known function is found at its known share, no other slice changes, and without perf a run is as it would be."""

from __future__ import annotations

import html
import json
import math
from functools import partial
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import steady
from ciphercost import commands
from ciphercost.estimate import cipher_floor
from ciphercost.host import perf
from ciphercost.measure import profiling
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.facts import CellFacts, RunFacts
from ciphercost.model.profile import ProfileSlice, Stack
from ciphercost.model.result import Result
from ciphercost.model.slices import SliceRecord
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, specs
from ciphercost.runs import anonymize, archive, conclude, pipeline
from conftest import Require
from fake import Fake

BUSY = CellSpec("null", "busy", regime="one-core", factors={"effect": "0.5"})


def counted(directory: Path) -> list[tuple[object, ...]]:
    """What was planned of each slice that the estimates read."""
    return [
        (
            record.session,
            record.phase,
            record.block,
            record.order,
            record.position,
            record.arm,
            record.length,
            record.rate,
        )
        for record in run_directory.read_slices(directory)
        if record.phase in ("capacity", "latency")
    ]


def test_profiling_changes_no_other_slice(tmp_path: Path, fake: Fake, require: Require) -> None:
    require(not perf.obstacle(), perf.obstacle())
    fake("--effect 0.02 --sd 0.01")
    spec = Spec([BUSY], seed=7, mode="quick", time=12.0)
    directories = {}
    for profile in (False, True):
        directories[profile] = tmp_path / f"run-{profile}"
        pipeline.run(msgspec.structs.replace(spec, profile=profile), directories[profile])
    assert counted(directories[True]) == counted(directories[False])
    plain, profiled = (conclude.result_of(directories[profile]).cells[0] for profile in (False, True))
    assert profiled.overhead["throughput"] == plain.overhead["throughput"]
    assert (directories[True] / "profile.jsonl").is_file()
    assert not (directories[False] / "profile.jsonl").exists()
    phases = [record.phase for record in run_directory.read_slices(directories[True])]
    assert phases.index("profile") > phases.index("latency") > phases.index("capacity")


def added_by_the_wait(result: Result) -> float:
    """Which share of the CPU time that an operation of `BUSY` costs more in the encrypted arm is its longer wait's; NaN: no profile."""
    profile = result.cells[0].profile
    if profile is None:
        return math.nan
    (end,) = profile.ends
    return next((part.added_us / end.added_us for part in end.parts if part.name == "control"), math.nan)


def test_a_known_function_is_found_at_its_known_share(
    tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(not perf.obstacle(), perf.obstacle())
    monkeypatch.setattr(schedule, "PROFILE_BLOCKS_QUICK", 3)
    spec = Spec([BUSY], mode="quick", time=3.0, latency=False, profile=True)
    result, directory = steady.tried(
        partial(pipeline.run, spec), tmp_path, lambda result: 0.8 < added_by_the_wait(result) < 1.2
    )
    cell = result.cells[0]
    assert cell.status == "ok", cell.reason
    assert cell.profile is not None
    (end,) = cell.profile.ends
    assert end.end == "client"
    assert end.added_us == cell.added["client_cpu"].mean
    assert sum(part.added_us for part in end.parts) == pytest.approx(end.added_us)
    parts = {part.name: part for part in end.parts}
    # Of an operation's 50 and 75 µs nearly all is the wait. It ends by the clock, so that what other processes take of it is not in its time.
    assert 0.5 < added_by_the_wait(result) < 1.5
    assert parts["control"].plain_us < parts["control"].encrypted_us
    assert any(frame.name.endswith("busy_wait") for frame in end.frames)
    assert conclude.result_of(directory) == result
    printed = CliRunner().invoke(commands.cli, ["report", str(directory)]).output
    assert "where the process's CPU time goes: +" in printed
    assert "busy wait (control)" in printed
    assert all(len(line) <= 80 for line in printed.splitlines())
    CliRunner().invoke(commands.cli, ["report", str(directory), "--format", "html", "-o", str(tmp_path / "page")])
    page = (tmp_path / "page").read_text()
    assert "The difference by function at the process" in page
    assert "more with encryption" in page
    archive.pack(anonymize.shareable(directory), result.id, tmp_path / "run.tar.xz")
    (tmp_path / "again").mkdir()
    packed = archive.unpack(tmp_path / "run.tar.xz", tmp_path / "again")
    assert conclude.result_of(packed).cells[0].profile == cell.profile


def test_the_cipher_of_a_file_stands_beside_its_floor_and_the_pages_that_sqlite_counted(
    tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(not perf.obstacle(), perf.obstacle())
    monkeypatch.setattr(schedule, "PROFILE_BLOCKS_QUICK", 2)
    monkeypatch.setattr(schedule, "PROFILE_SLICE", 0.25)
    # The cache has room for a tenth of the pages, so nearly every row's page is read and decrypted again.
    planned = CellSpec("sqlite", "sqlcipher", regime="one-core", rows=4000, cache="small")
    spec = Spec([planned], mode="quick", time=1.0, latency=False, profile=True)
    result, directory = steady.measured(partial(pipeline.run, spec), tmp_path)
    cell = result.cells[0]
    assert cell.status == "ok", cell.reason
    assert set(cell.floor) == {f"aes256-cbc+hmac-sha512/4016_{way}" for way in ("open", "seal")}
    assert cell.enciphered is not None
    assert cell.enciphered.operations > 0
    pages = cell.enciphered.streams["pages"]
    # The leaf of each row, and at most every level of the tree above it.
    assert 0.5 < pages.read / 4096 / cell.enciphered.operations < 6
    assert pages.written == 0
    assert cell.profile is not None
    (end,) = cell.profile.ends
    assert next(part for part in end.parts if part.name == "cipher").encrypted_us > 0
    floor = cipher_floor.of(cell, end.end)
    assert floor is not None
    assert floor.us > 0
    assert conclude.result_of(directory) == result
    for form in ("terminal", "md", "html"):
        page = tmp_path / f"page-{form}"
        CliRunner().invoke(commands.cli, ["report", str(directory), "--format", form, "-o", str(page)])
        plain = " ".join(html.unescape(page.read_text()).split())
        assert "own part against its floor" in plain, form
        assert "an operation decrypts" in plain, form
        assert "AES-256-CBC with HMAC-SHA512, 4,016 bytes" in plain, form


def test_without_perf_there_is_one_line_and_the_rest_is_measured(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("--effect 0.02 --sd 0.01")
    obstacle = "'perf' was not found (Debian: apt-get install linux-perf)"
    monkeypatch.setattr(perf, "obstacle", lambda: obstacle)
    result = pipeline.run(Spec([BUSY], mode="quick", time=12.0, profile=True), tmp_path / "run")
    cell = result.cells[0]
    assert cell.status == "ok"
    assert cell.overhead["throughput"].low < cell.overhead["throughput"].high
    assert cell.profile is None
    texts = [warning.text for warning in cell.warnings if warning.code == "no-profile"]
    assert texts == [f"{profiling.LOST}{obstacle}"]
    assert not (tmp_path / "run" / "profile.jsonl").exists()


def test_perf_that_ends_early_costs_the_profile_alone(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake("--effect 0.02 --sd 0.01")
    broken = tmp_path / "perf"
    broken.write_text("#!/bin/sh\necho 'Error: the kernel has no cpu-clock' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(perf, "obstacle", lambda: "")
    monkeypatch.setattr(perf, "find", lambda: broken)
    cell = pipeline.run(Spec([BUSY], mode="quick", time=12.0, profile=True), tmp_path / "run").cells[0]
    assert cell.status == "ok"
    (text,) = [warning.text for warning in cell.warnings if warning.code == "no-profile"]
    assert text.startswith(profiling.LOST)
    assert text.endswith("Error: the kernel has no cpu-clock")


def test_it_is_refused_where_processes_of_other_machines_make_the_load() -> None:
    with pytest.raises(UsageError, match="--profile"):
        specs.plan(Spec([CellSpec("postgresql", "tls")], profile=True, cluster="auto"))


# ── the record ────────────────────────────────────────────────────────────────────────────────────────────────────────


def profiled_slice(session: int) -> ProfileSlice:
    stacks = [Stack(3, "server", "nginx", [0, 1]), Stack(1, "client", "agent", [])]
    return ProfileSlice(
        0, session, 0, "ABBA", 1, "plain", 1e6, ["nginx`main", "nginx`?"], stacks, whole={"server": 2}, lost=1
    )


def facts() -> RunFacts:
    return RunFacts(1, "x", "", {}, {}, 1, Spec([BUSY], profile=True), [CellFacts(BUSY)])


def test_the_record_keeps_the_samples_of_complete_sessions(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with run_directory.Record(tmp_path, facts()) as kept:
        for session in (1, 2):
            kept.append(SliceRecord(0, session, "warmup", 0, "", 0, "plain", float(session), 0.5))
            kept.append_beside(profiled_slice(session))
    with (tmp_path / "profile.jsonl").open("ab") as file:
        file.write(b'{"cell":0,"sess')  # cut off by a kill
    assert list(run_directory.read_beside(tmp_path, ProfileSlice)) == [profiled_slice(1), profiled_slice(2)]
    with run_directory.Record(tmp_path, facts(), lambda _, session: session == 1) as kept:
        kept.seal()
    assert list(run_directory.read_beside(tmp_path, ProfileSlice)) == [profiled_slice(1)]
    assert "profile.jsonl" in json.loads((tmp_path / "plan.json").read_text())["hashes"]
    assert anonymize.shareable(tmp_path)["profile.jsonl"] == (tmp_path / "profile.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"cell": 1}, "cell"),
        ({"position": 2}, "belongs to the encrypted arm"),
        ({"frames": ["nginx`main"]}, "frame beyond"),
        ({"whole": {"server": 5}}, "whole"),
        ({"stacks": [[-1, "server", "nginx", []]]}, "stacks"),
        ({"stacks": [[1, "sun", "nginx", []]]}, "stacks"),
        ({"period_ns": 0}, "period_ns"),
    ],
)
def test_damaged_samples_are_refused_with_the_place(tmp_path: Path, damage: dict[str, object], words: str) -> None:
    (tmp_path / "logs").mkdir()
    with run_directory.Record(tmp_path, facts()) as kept:
        kept.append_beside(profiled_slice(1))
    line = json.loads((tmp_path / "profile.jsonl").read_text()) | damage
    (tmp_path / "profile.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(UsageError, match=r"profile\.jsonl, line 1") as refused:
        list(run_directory.read_beside(tmp_path, ProfileSlice))
    assert words in str(refused.value)
