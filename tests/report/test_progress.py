"""Progress of a run: its content; drawn only between slices, on any terminal; and gone at the end."""

from __future__ import annotations

import errno
import io
import os
import pty
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import short
import steady
import warm
from ciphercost.load import passwords
from ciphercost.load.agent import Agent
from ciphercost.measure.progress import Display
from ciphercost.model.connection import Connected, Connection, Pool
from ciphercost.model.errors import AgentError
from ciphercost.model.result import Estimate
from ciphercost.model.secret import reveal
from ciphercost.report import progress
from terminals import on_a_terminal

CLI = str(Path(sys.executable).parent / "ciphercost")
UP = "\x1b[1A"
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
"""The cursor."""
FOUND = Estimate(0.75, 0.74, 0.76)


class Hours:
    """A clock that advances on demand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hours() -> Hours:
    return Hours()


@pytest.fixture
def screen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def live(screen: io.StringIO, hours: Hours) -> progress.Screen:
    return progress.Screen(Console(file=screen, force_terminal=True, width=80, height=20), hours)


def cursor(shown: str) -> str:
    return SHOWN if shown.rindex(SHOWN) > shown.rindex(HIDDEN) else HIDDEN


def plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)


# ── while a person is asked ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_screen_draws_nothing_and_then_continues_below(live: progress.Screen, screen: io.StringIO) -> None:
    with live:
        live.start(["one"], [10.0], 12.0)
        live.phase(0, 1, "before")
        assert "before" in screen.getvalue()
        with live.paused():
            at = len(screen.getvalue())
            assert cursor(screen.getvalue()) == SHOWN
            live.phase(0, 1, "asking")
            assert len(screen.getvalue()) == at
        live.phase(0, 1, "after")
        first, continued, _ = screen.getvalue()[at:].partition("after")
        assert continued
        assert UP not in first, "it overwrote the question"
    assert cursor(screen.getvalue()) == SHOWN


def test_it_continues_after_an_interrupted_question(live: progress.Screen, screen: io.StringIO) -> None:
    with live:
        with pytest.raises(KeyboardInterrupt), live.paused():
            raise KeyboardInterrupt
        assert cursor(screen.getvalue()) == HIDDEN
    assert cursor(screen.getvalue()) == SHOWN


def test_what_does_not_draw_has_nothing_to_pause(
    live: progress.Screen, screen: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    for display in (live, progress.Lines(), Display()):
        with display.paused():
            pass
    assert not screen.getvalue()
    assert capsys.readouterr() == ("", "")


def test_a_password_is_asked_for_while_the_bar_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Wanting(Agent):
        def __init__(self) -> None:
            pass

        def connect(self, arm: str, connection: Pool) -> Connected:
            seen.append("refused")
            raise AgentError("no password was given")

    class Noting(Display):
        @contextmanager
        def paused(self) -> Iterator[None]:
            seen.append("paused")
            yield
            seen.append("goes on")

    def answer(_: str) -> str:
        seen.append("asked")
        return "secret"

    monkeypatch.setattr("getpass.getpass", answer)
    monkeypatch.setattr(passwords, "_known", {})
    connection = Connection(driver="resp", host="127.0.0.1", port=1, user="u")
    assert passwords.ask_where_wanted(Wanting(), connection, "no password", Noting().paused)
    assert seen == ["refused", "paused", "asked", "goes on"]
    assert reveal(passwords.with_password(connection, None).password) == "secret"


# ── what is shown ─────────────────────────────────────────────────────────────────────────────────────────────────────


def cells() -> list[progress.Shown]:
    running = progress.Shown("postgresql:tls bulk-read", 60.0, 8, spent_s=30.0, begun=4, session=4, phase="capacity")
    running.rates = {"plain": 46_019.0, "encrypted": 34_490.0}
    running.first, running.estimate = Estimate(0.75, 0.6, 0.9), FOUND
    running.slices, running.marked = 120, 2
    running.marks.update(["steal", "steal"])
    return [
        progress.Shown("postgresql:tls point-select", 60.0, 8, state="ok", estimate=FOUND),
        progress.Shown("mysql:tls connect", 60.0, 8, state="no-steady-state"),
        running,
        progress.Shown("sqlite:sqlcipher insert", 60.0, 8),
    ]


def test_the_screen_has_every_cell_the_time_left_both_arms_and_the_interval() -> None:
    lines = [line for line, _ in progress.page(cells(), 2, 130.0, "", 79, 22)]
    for figure in ("62 %", "2 min left", "2 of 4 cells"):
        assert figure in lines[0]
    assert re.fullmatch(r"  ✓ postgresql:tls point-select +25.0 % fewer \(24.0–26.0 %\)", lines[1])
    assert re.fullmatch(r"  ✗ mysql:tls connect +NO STEADY STATE", lines[2])
    assert re.fullmatch(r"  ▸ postgresql:tls bulk-read +25.0 % fewer \(24.0–26.0 %\)", lines[3])
    assert re.fullmatch(r"  · sqlite:sqlcipher insert +waiting", lines[4])
    assert lines[5:8] == [
        "postgresql:tls bulk-read",
        "  session 4 of 8, capacity",
        "  plain 46,019 op/s   encrypted 34,490 op/s",
    ]
    assert "25.0 % fewer (24.0–26.0 %) operations/s" in lines[8]
    assert lines[10] == "  2 of 120 slices marked: steal 2"


def test_the_interval_visibly_narrows() -> None:
    first = Estimate(0.75, 0.6, 0.9)
    drawn = [progress.scale(first, Estimate(0.75, 0.75 - half, 0.75 + half), 42) for half in (0.15, 0.08, 0.02)]
    widths = [line.index("┤") - line.index("├") for line in drawn]
    assert widths == sorted(widths, reverse=True)
    assert drawn[0].startswith("40 % fewer [├")
    assert drawn[0].endswith("┤] 10 % fewer")
    assert {len(line) for line in drawn} == {42}


def test_the_time_left_follows_the_plan_and_then_the_sessions() -> None:
    planned = [progress.Shown("a", 80.0, 8), progress.Shown("b", 80.0, 8)]
    clock = progress.Clock(0.0)
    assert clock.left(planned, 0.0) == 160 + 16 * progress.SETUP_SECONDS
    planned[0].spent_s, planned[0].begun = 20.0, 2
    slow = clock.left(planned, 20.0 + 2 * 30.0)
    assert slow == pytest.approx(140 + 14 * (60 + progress.SETUP_SECONDS) / 3)
    planned[0].state = "failed"
    assert clock.left(planned, 80.0) == pytest.approx(80 + 8 * (60 + progress.SETUP_SECONDS) / 3)


@given(
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    count=st.integers(1, 70),
    current=st.integers(0, 69),
    title=st.text(st.characters(categories=["L", "N", "P"], max_codepoint=0x24F), max_size=120),
    rate=st.floats(0, 1e10),
    ratio=st.floats(1e-3, 1e4),
)
def test_no_line_is_wider_than_the_terminal_and_no_page_is_longer(
    width: int, height: int, count: int, current: int, title: str, rate: float, ratio: float
) -> None:
    many = [progress.Shown(f"{title} {number}", 90.0, 8) for number in range(count)]
    running = many[current % count]
    running.phase, running.session, running.rates = "capacity", 3, {"plain": rate, "encrypted": rate}
    running.first = running.estimate = Estimate(ratio, ratio * 0.9, ratio * 1.1)
    many[0].state = "failed"
    lines = [line for line, _ in progress.page(many, current % count, 1e5, "", width, height)]
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)


def test_the_running_cell_of_many_is_shown_and_the_others_are_counted() -> None:
    many = [progress.Shown(f"cell {number}", 90.0, 8, state="ok" * (number < 30)) for number in range(60)]
    many[3].state, many[30].phase = "failed", "warm-up"
    lines = [line for line, _ in progress.page(many, 30, 60.0, "", 79, 22)]
    assert any("▸ cell 30" in line for line in lines)
    hidden = [int(match[1]) for line in lines if (match := re.search(r"… (\d+) more", line))]
    shown = [line for line in lines if re.match(r"  [✓✗▸·] cell", line)]
    assert len(hidden) == 2
    assert sum(hidden) + len(shown) == 60
    assert any("1 of them without a number" in line for line in lines)


# ── when it is shown ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_draws_and_computes_only_between_slices_and_at_most_once_a_second(
    live: progress.Screen, screen: io.StringIO, hours: Hours
) -> None:
    asked = []

    def estimate() -> Estimate:
        asked.append(hours.now)
        return FOUND

    threads = threading.active_count()
    with live:
        live.start(["one"], [10.0], 12.0, [1])
        drawn = []
        for number in range(200):
            before = len(screen.getvalue())
            live.phase(0, 1, "capacity")
            live.slice(0, 0.1, 1000.0, "plain" if number % 2 else "encrypted", [])
            live.interval(0, estimate)
            drawn.append(len(screen.getvalue()) > before)
            hours.now += 0.1
        assert 18 <= sum(drawn) <= 21
        assert len(asked) <= 21
        assert threading.active_count() <= threads, "a thread would draw in the middle of a slice"


def test_names_can_not_control_the_terminal(
    live: progress.Screen, screen: io.StringIO, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    steering = "\x1b[41;1Hred\x07"
    for display in (progress.Lines(), live):
        with display:
            display.start([steering], [8.0], 10.0, [2])
            display.phase(0, 1, "capacity")
            display.done(0, f"failed: {steering}")
    bad = warm.run(["report", tmp_path / steering])
    assert bad.returncode == 2
    for shown in (capsys.readouterr().err, screen.getvalue(), bad.stderr):
        assert "\ufffd[41;1Hred\ufffd" in shown
        assert "\x1b[41" not in shown
        assert "\x07" not in shown


def test_lines_have_the_current_cost_when_a_session_begins(capsys: pytest.CaptureFixture[str]) -> None:
    lines = progress.Lines()
    lines.start(["a b"], [8.0], 10.0, [2])
    lines.phase(0, 1, "preparing")
    lines.phase(0, 1, "starting and proving")
    lines.phase(0, 1, "capacity")
    lines.interval(0, lambda: FOUND)
    lines.phase(0, 2, "starting and proving")
    lines.done(0, "ok")
    planned, first, second, done = capsys.readouterr().err.splitlines()
    assert planned.startswith("1 cell: ")
    assert "about 10 s" in planned
    assert "8 s load" in planned
    assert first == "a b: session 1, starting and proving"
    assert second.startswith("a b: session 2, starting and proving; ")
    assert done.startswith("a b: ok; ")
    for line in (second, done):
        assert line.endswith("25.0 % fewer (24.0–26.0 %)")


# ── on a terminal ─────────────────────────────────────────────────────────────────────────────────────────────────────

RUN = ["run", "null:busy", "--quick", "--time", "4s", "--no-latency"]
LONG = [*RUN, "--time", "60s"]
"""For a run that is interrupted."""


def whole(directory: Path, env: dict[str, str], sizes: list[tuple[int, int]]) -> tuple[int, str]:
    """A complete run on a terminal; repeated if a busy machine refuses it."""

    def run(into: Path) -> tuple[int, str]:
        return on_a_terminal([CLI, *RUN, "-o", str(into)], {**os.environ, **env}, sizes=sizes)

    status, shown, _ = steady.printed(run, directory)
    return status, shown


@pytest.mark.parametrize("sizes", [[(80, 24)], [(40, 10)], [(100, 30), (50, 12), (9, 3), (80, 24)]], ids=str)
def test_on_a_terminal_it_is_live_at_any_size_and_leaves_only_the_report(
    tmp_path: Path, sizes: list[tuple[int, int]]
) -> None:
    status, shown = whole(tmp_path, {"TERM": "xterm-256color"}, sizes)
    assert status == 0, plain(shown)
    assert "Traceback" not in shown
    assert " left" in plain(shown)
    assert cursor(shown) == SHOWN
    if sizes[0][0] == 80:
        assert "op/s" in plain(shown)
        assert "null:busy point-select" in plain(shown)


def test_ctrl_c_restores_the_cursor_and_prints_how_to_resume(tmp_path: Path) -> None:
    argv = [CLI, *LONG, "-o", str(tmp_path / "run")]
    status, shown = on_a_terminal(argv, {**os.environ, "TERM": "xterm"}, sizes=[(80, 24)], asked="op/s", typed="\x03")
    assert status == 130
    assert cursor(shown) == SHOWN
    assert "ciphercost resume" in plain(shown)
    assert "Traceback" not in shown


@pytest.mark.parametrize("env", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}], ids=str)
def test_plain_output_has_no_control_codes(tmp_path: Path, env: dict[str, str]) -> None:
    status, shown = whole(tmp_path, env, [(80, 24)])
    assert status == 0, shown
    assert "\x1b" not in shown
    assert "null:busy point-select: session 1, starting and proving" in shown


def test_no_progress_prints_nothing_and_a_pipe_gets_lines(tmp_path: Path) -> None:
    for name, more, prints in (("a", ["--no-progress"], False), ("b", [], True)):
        done = short.run([*RUN, "-o", name, *more], cwd=tmp_path, timeout=600)
        assert done.returncode == 0 or "NO STEADY STATE" in done.stdout, done.stderr
        assert bool(done.stderr) == prints
        assert "\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize(("nohup", "argv"), [(False, LONG), (True, RUN)], ids=["", "nohup"])
def test_a_closed_terminal_ends_the_run_unless_it_ignores_sighup(tmp_path: Path, nohup: bool, argv: list[str]) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)
        outputs = ["-o", str(tmp_path / "run"), "--json", str(tmp_path / "out.json")]
        os.execve(CLI, [CLI, *argv, *outputs], {**os.environ, "TERM": "xterm"})
    seen = ""
    while "op/s" not in seen:
        seen += os.read(terminal, 65536).decode(errors="replace")
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (1 if nohup else -signal.SIGHUP)
    assert (tmp_path / "out.json").exists() == nohup


def test_a_closed_terminal_is_no_failure_of_a_cell(
    live: progress.Screen, screen: io.StringIO, hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live:
        live.start(["a", "b"], [30.0, 30.0], 70.0)

        def refuse(text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(screen, "write", refuse)
        live.phase(0, 1, "capacity")
        hours.now += progress.EVERY
        live.slice(0, 1.0, 100.0, "plain")
        with live.paused():
            pass
        live.done(0, "failed: its server is gone")


def test_a_resumed_run_only_waits_for_the_rest(live: progress.Screen, screen: io.StringIO) -> None:
    with live:
        live.start(["a", "b"], [0.0, 30.0], 40.0, [0, 3])
        live.kept(0, 8, done=True)
        live.kept(1, 5, done=False)
        live.phase(1, 6, "capacity")
    shown = plain(screen.getvalue())
    assert "2 cells: about 40 s" in shown
    assert "30 s load" in shown
    assert "b: 5 sessions already recorded" in shown
    assert "33 s left" in shown
    assert "1 of 2 cells" in shown
    assert "session 6 of 8, capacity" in shown
