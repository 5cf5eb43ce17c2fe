"""A killed and resumed run equals an uninterrupted one: it keeps complete sessions, discards incomplete ones, and locks out others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import fake as fake_agent
import short
import steady
from ciphercost.host import procfs
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Result
from ciphercost.model.run_directory import read_facts
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs
from ciphercost.runs import conclude, pipeline, resume
from fake import Fake
from processes import wait_for

CLI = Path(sys.executable).parent / "ciphercost"

KILLED = """
import os, signal, sys
from pathlib import Path
import msgspec
from ciphercost.measure import session
from ciphercost.runs import pipeline
from ciphercost.measure import progress
from ciphercost.model.spec import Spec
from ciphercost.plan import specs

if "VIRTUAL_TIME" in os.environ:
    session._cost = lambda asked, began: asked

class Killing(progress.Display):
    left, begins = int(sys.argv[3]), sys.argv[4]
    counts = not begins
    def phase(self, cell, session, name):
        if (session, name) == (2, self.begins):
            self.counts = True
            self.kill()
    def slice(self, *_):
        self.left -= self.counts
        self.kill()
    def kill(self):
        if self.counts and not self.left:
            os.kill(os.getpid(), signal.SIGKILL)

pipeline.run_in(specs.plan(msgspec.json.decode(sys.argv[1], type=Spec)), Path(sys.argv[2]), Killing())
"""

EFFECT = "--effect 0.02 --sd 0.01"
"""Options of the fake agent."""
ONE = [CellSpec("null", "busy", regime="one-core")]
SHARED = [
    CellSpec("null", "busy", factors={"effect": effect}, group="g", variant=f"effect={effect}")
    for effect in ("0.02", "0.2")
]
APART = [CellSpec("null", "busy", regime="one-core"), CellSpec("null", "none", regime="one-core")]


@pytest.fixture
def fake(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The fake agent, with virtual time also in the killed runs."""
    monkeypatch.setenv("VIRTUAL_TIME", "1")
    return fake


def spec_of(cells: list[CellSpec], mode: str = "full", **fields: Any) -> Spec:
    sessions = 3 if mode == "full" else 1
    return Spec(cells=cells, seed=7, mode=mode, sessions=sessions, time=60.0, **fields)  # type: ignore[arg-type]


def ended(spec: Spec, directory: Path, slices: int, begins: str = "") -> subprocess.CompletedProcess[str]:
    """Run it, and kill -9 the controller after this many slices. `begins`: from the beginning of this phase of the second session."""
    argv = [sys.executable, "-c", KILLED, msgspec.json.encode(spec).decode(), str(directory), str(slices), begins]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)


def killed(spec: Spec, directory: Path, slices: int) -> None:
    """The same, of a run with the fake agent, which gets that far on every machine."""
    done = ended(spec, directory, slices)
    assert done.returncode == -signal.SIGKILL, done.stderr


def order(directory: Path) -> list[tuple[object, ...]]:
    """All requests to the agent, and its answers."""
    return [
        (
            record.cell,
            record.session,
            record.phase,
            record.block,
            record.order,
            record.position,
            record.arm,
            record.length,
            record.rate,
        )
        + ((record.agent.operations, record.agent.histogram) if record.agent else ())
        for record in run_directory.read_slices(directory)
    ]


def sessions_of(directory: Path) -> list[tuple[int, int]]:
    return sorted({(record.cell, record.session) for record in run_directory.read_slices(directory)})


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[CellSpec]], tuple[Result, Path]]:
    """(result, directory) of a run of these cells that was not killed. Each is made once."""
    uncut_runs: dict[str, tuple[Result, Path]] = {}

    def find(cells: list[CellSpec]) -> tuple[Result, Path]:
        if (name := str(cells)) not in uncut_runs:
            directory = tmp_path_factory.mktemp("uncut")
            with fake_agent.in_place(directory, EFFECT):
                uncut_runs[name] = pipeline.run_in(specs.plan(spec_of(cells)), directory / "run")
        return uncut_runs[name]

    return find


@pytest.mark.parametrize(
    ("cells", "share"),
    [(ONE, 0.01), (ONE, 0.55), (ONE, 0.99), (SHARED, 0.1), (SHARED, 0.55), (APART, 0.55), (APART, 0.99)],
)
def test_a_run_killed_anywhere_and_resumed_is_the_run_that_was_not_killed(
    tmp_path: Path,
    fake: Fake,
    uncut: Callable[[list[CellSpec]], tuple[Result, Path]],
    cells: list[CellSpec],
    share: float,
) -> None:
    fake(EFFECT)
    spec = spec_of(cells)
    whole, of_whole = uncut(cells)
    expected = order(of_whole)
    killed(spec, tmp_path / "cut", round(share * len(expected)))
    assert order(tmp_path / "cut") == expected[: round(share * len(expected))]
    result, directory = resume.run_in(tmp_path / "cut")
    assert order(directory) == expected
    assert [cell.overhead["throughput"] for cell in result.cells] == [c.overhead["throughput"] for c in whole.cells]
    assert [cell.status for cell in result.cells] == ["ok"] * len(cells)
    plain = {"warnings": [], "resumed": 0, "thrown_away": 0}
    resumed, expected_facts = (
        [msgspec.structs.replace(cell, **plain) for cell in run_directory.read_facts(place).cells]
        for place in (directory, of_whole)
    )
    assert resumed == expected_facts
    assert any(warning.code == "resumed" for cell in result.cells for warning in cell.warnings)
    assert run_directory.encode(conclude.result_of(directory)) == (directory / "result.json").read_bytes()


def test_one_session_is_run_again_whole_and_the_result_says_how_much_was_thrown_away(
    tmp_path: Path, fake: Fake
) -> None:
    fake("--sd 0.01")
    killed(spec_of(ONE, "quick"), tmp_path / "run", 100)
    result, _ = resume.run_in(tmp_path / "run")
    texts = [warning.text for warning in result.cells[0].warnings if warning.code == "resumed"]
    assert len(texts) == 1
    assert read_facts(tmp_path / "run").cells[0].thrown_away == 100
    assert sessions_of(tmp_path / "run") == [(0, 1)]


def test_it_can_be_killed_repeatedly(
    tmp_path: Path, fake: Fake, uncut: Callable[[list[CellSpec]], tuple[Result, Path]]
) -> None:
    fake(EFFECT)
    spec = spec_of(ONE)
    expected = order(uncut(ONE)[1])
    killed(spec, tmp_path / "run", len(expected) // 2)
    again = KILLED.replace(
        "pipeline.run_in(specs.plan(msgspec.json.decode(sys.argv[1], type=Spec)), Path(sys.argv[2]), Killing())",
        "from ciphercost.runs import resume\nresume.run_in(Path(sys.argv[2]), Killing())",
    )
    for _ in range(2):
        argv = [sys.executable, "-c", again, "", str(tmp_path / "run"), str(len(expected) // 8), ""]
        assert subprocess.run(argv, check=False, timeout=600).returncode == -signal.SIGKILL
    result, _ = resume.run_in(tmp_path / "run")
    assert order(tmp_path / "run") == expected
    assert len(run_directory.read_facts(tmp_path / "run").resumed) == 3
    (text,) = (warning.text for warning in result.cells[0].warnings if warning.code == "resumed")
    assert "resumed 3 times" in text


def test_half_a_last_line_is_dropped_and_any_other_damage_is_reported(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01")
    killed(spec_of(ONE), tmp_path / "run", 150)
    path = tmp_path / "run" / "slices.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    resume.run_in(tmp_path / "run")
    assert all(json.loads(line) for line in path.read_text().splitlines())
    killed(spec_of(ONE), tmp_path / "other", 150)
    damaged = tmp_path / "other" / "slices.jsonl"
    lines = damaged.read_text().splitlines()
    damaged.write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]) + "\n")
    with pytest.raises(UsageError, match="line 2"):
        resume.run_in(tmp_path / "other")


def test_a_failed_cell_is_resumed_and_the_others_stay(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01 --busy 50000 --die-busy 55000")
    result, directory = pipeline.run_in(specs.plan(spec_of(SHARED)), tmp_path / "run")
    assert [cell.status for cell in result.cells] == ["ok", "failed"]
    before = [row for row in order(directory) if row[0] == 0]
    fake("--sd 0.01")
    result, _ = resume.run_in(directory)
    assert [cell.status for cell in result.cells] == ["ok", "ok"]
    assert [row for row in order(directory) if row[0] == 0] == before
    assert len({session for cell, session in sessions_of(directory) if cell == 1}) == 3
    shared = {session for cell, session in sessions_of(directory) if cell == 0}
    assert not shared & {session for cell, session in sessions_of(directory) if cell == 1}, (
        "they never ran side by side"
    )
    assert result.cells[1].against_reference is None


def test_proofs_of_whole_sessions_stay_and_those_of_the_unfinished_one_go(tmp_path: Path) -> None:
    cells = [CellSpec("sqlite", "sqlcipher", regime="one-core", rows=200)]
    # A fixed slice length: no pilot, and no session repeated because of a busy machine.
    spec = Spec(cells=cells, seed=3, sessions=3, time=1.0, latency=False, slice_seconds=0.05)
    done, directory = steady.tried(
        lambda place: ended(spec, place, 0, "capacity"), tmp_path, lambda done: done.returncode == -signal.SIGKILL
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    had = {proof.session for _, proof in run_directory.read_proofs(directory)}
    whole = run_directory.read_checkpoint(directory)
    assert whole is not None
    assert had > set(whole.cells[0].whole_sessions) > set()
    result, _ = resume.run_in(directory)
    assert result.cells[0].status in ("ok", "no-steady-state"), result.cells[0].reason
    proofs = [(proof.session, proof.arm, proof.witness) for _, proof in run_directory.read_proofs(directory)]
    assert {session for session, _, _ in proofs} == {1, 2, 3}
    later = sorted(proof[1:] for proof in proofs if proof[0] == 2)
    assert sorted(proof[1:] for proof in proofs if proof[0] == 3) == later, "each session has its proofs once"


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("checkpoint.json", '"version":"0.1.0"', '"version":"0.0.9"', "started by ciphercost 0.0.9"),
        ("checkpoint.json", f'"cores":{procfs.machine()["cores"]}', '"cores":96', "cores is 96"),
        ("checkpoint.json", '"format":2', '"format":9', "newer version of ciphercost"),
    ],
    ids=["tool", "machine", "format"],
)
def test_another_tool_or_machine_is_refused_and_nothing_is_changed(
    tmp_path: Path, fake: Fake, file: str, old: str, new: str, words: str
) -> None:
    fake("--sd 0.01")
    killed(spec_of(ONE), tmp_path / "run", 400)
    path = tmp_path / "run" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    before = {entry.name: entry.read_bytes() for entry in (tmp_path / "run").iterdir() if entry.is_file()}
    with pytest.raises(UsageError, match=words):
        resume.run_in(tmp_path / "run")
    assert before == {entry.name: entry.read_bytes() for entry in (tmp_path / "run").iterdir() if entry.is_file()}


def test_another_server_is_refused_and_the_record_stays(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01")
    killed(spec_of(ONE), tmp_path / "run", 400)
    path = tmp_path / "run" / "checkpoint.json"
    facts = json.loads(path.read_text())
    assert facts["cells"][0]["whole_sessions"]
    facts["cells"][0]["version"] = "0.0.1"
    path.write_text(json.dumps(facts))
    with pytest.raises(UsageError, match=r"recorded sessions .* are from 0\.0\.1"):
        resume.run_in(tmp_path / "run")
    assert {session for _, session in sessions_of(tmp_path / "run")} == set(facts["cells"][0]["whole_sessions"])


def test_a_live_run_is_refused_a_finished_one_says_so_and_an_interrupted_one_says_how_to_go_on(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    spec, printed = short.spec_of(
        ["run", "null:busy", "--sessions", "2", "--time", "6s", "--no-latency", "-o", directory], cwd=tmp_path
    )
    assert spec, printed.stderr
    argv: list[str | Path] = [CLI, *spec]
    with subprocess.Popen(
        [*argv, "--no-progress"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        slices = directory / "slices.jsonl"
        wait_for("its first slice", lambda: slices.exists() and slices.stat().st_size > 0, 300)
        process.send_signal(signal.SIGSTOP)  # so that it can't finish meanwhile
        try:
            refused = subprocess.run(
                [CLI, "resume", directory], capture_output=True, text=True, check=False, timeout=300
            )
            process.send_signal(signal.SIGINT)
        finally:
            process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=300)
    assert refused.returncode == 2
    assert "still active" in refused.stderr
    assert process.returncode == 130
    assert f"`ciphercost resume {directory}` continues the run" in errors
    resume_ = partial(
        subprocess.run, [CLI, "resume", directory], capture_output=True, text=True, check=False, timeout=300
    )
    resumed = steady.command(resume_, tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "the run was interrupted and resumed" in " ".join(resumed.stdout.split())
    again = subprocess.run([CLI, "resume", directory], capture_output=True, text=True, check=False, timeout=300)
    assert again.returncode == 0
    assert "is finished" in again.stdout
    nothing = subprocess.run([CLI, "resume", "nothing"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert nothing.returncode == 2
    assert "no run 'nothing'" in nothing.stderr


def test_a_changed_file_of_the_users_is_refused_and_nothing_is_changed(tmp_path: Path, fake: Fake) -> None:
    fake("--sd 0.01")
    script = tmp_path / "mine.sql"
    script.write_text("SELECT 1;\n")
    cell = CellSpec("null", "busy", sql=[f"{script}@2"], regime="one-core")
    killed(spec_of([cell]), tmp_path / "run", 400)
    before = {entry.name: entry.read_bytes() for entry in (tmp_path / "run").iterdir() if entry.is_file()}
    script.write_text("SELECT 2;\n")
    with pytest.raises(UsageError, match=rf"{script} has changed since the run began.*start it again"):
        resume.run_in(tmp_path / "run")
    script.unlink()
    with pytest.raises(UsageError, match=rf"{script}, which the run reads, is gone"):
        resume.run_in(tmp_path / "run")
    assert before == {entry.name: entry.read_bytes() for entry in (tmp_path / "run").iterdir() if entry.is_file()}
    script.write_text("SELECT 1;\n")
    result, _ = resume.run_in(tmp_path / "run")
    assert result.cells[0].status == "ok"
