"""Standard streams that are closed or that nobody reads: no traceback, the same exit status, and no result is lost."""

from __future__ import annotations

import itertools
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import steady
import terminals
from ciphercost.model import run_directory

CLI = Path(sys.executable).parent / "ciphercost"
SPEC = """
mode = "quick"
sessions = 1
time = 1.0
slice_seconds = 0.05
latency = false
seed = 7

[[cells]]
engine = "null"
mechanism = "none"
"""
CLOSED = [" ".join(closed) for count in (1, 2, 3) for closed in itertools.combinations(("<&-", ">&-", "2>&-"), count)]
COMMANDS = {
    "report nothing": CLOSED,
    "list engines": ("2>&-", ">&- 2>&-"),
    "import nothing": ("<&- >&- 2>&-",),
    "completion bash": ("<&- >&- 2>&-",),
}
"""Each way for a command that complains; for the others the ways that once failed."""


def short_run(directory: Path) -> tuple[str, str]:
    """Arguments of a run of a second, whose spec is then in that directory."""
    (directory / "short.toml").write_text(SPEC)
    return "run", str(directory / "short.toml")


def by_shell(command: str, streams: str, directory: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f"'{CLI}' {command} {streams}"],
        cwd=directory,
        env={**os.environ, "CIPHERCOST_PAGE": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def test_closed_streams_change_no_exit_status(tmp_path: Path) -> None:
    for command, ways in COMMANDS.items():
        usual = by_shell(command, "", tmp_path)
        for streams in ways:
            done = by_shell(command, streams, tmp_path)
            assert done.returncode == usual.returncode, (command, streams, done.stderr)
            assert done.stdout == (b"" if " >&-" in f" {streams}" else usual.stdout)
            assert done.stderr == (b"" if "2>&-" in streams else usual.stderr)


def test_a_run_without_any_standard_stream_keeps_its_result(tmp_path: Path) -> None:
    done = by_shell(f"{' '.join(short_run(tmp_path))} -o run --json result.json", "<&- >&- 2>&-", tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    failed = result["cells"][0]["status"] != "ok"  # no steady state, on a busy machine
    assert done.returncode == failed
    assert (tmp_path / "run" / "result.json").is_file()
    assert list(run_directory.read_slices(tmp_path / "run"))


def test_progress_that_nobody_reads_costs_no_report(tmp_path: Path) -> None:
    """A pipe whose reader is gone, and a dumb terminal that was closed: the report is whole, and the status is the run's."""

    def to_a_pipe(output: Path) -> tuple[int, str]:
        reader, writer = os.pipe()
        os.close(reader)
        argv: list[str | Path] = [CLI, *short_run(tmp_path), "-o", str(output)]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=writer, text=True, check=False)
        os.close(writer)
        return done.returncode, done.stdout

    status, report, output = steady.printed(to_a_pipe, tmp_path)
    assert status == 0, report
    assert "saved in" in report
    controlling, terminal = pty.openpty()
    os.close(controlling)
    argv: list[str | Path] = [CLI, *short_run(tmp_path), "-o", str(tmp_path / "closed")]
    environment = {**os.environ, "TERM": "dumb"}
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=terminal, env=environment, text=True, check=False)
    os.close(terminal)
    assert done.returncode == 0 or "NO STEADY STATE" in done.stdout, done.stdout
    assert "saved in" in done.stdout
    assert output


def test_a_report_that_nobody_reads_is_written_first(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    argv: list[str | Path] = [
        CLI,
        *short_run(tmp_path),
        "-o",
        str(tmp_path / "run"),
        "--json",
        str(tmp_path / "result.json"),
    ]
    done = subprocess.run(argv, stdout=writer, stderr=subprocess.STDOUT, check=False)
    os.close(writer)
    assert done.returncode == 1
    assert json.loads((tmp_path / "result.json").read_text())["cells"]


def test_a_file_that_a_run_opens_takes_no_number_of_a_closed_stream(tmp_path: Path) -> None:
    """Else what a child prints would go into it."""
    script = "from ciphercost.commands import _streams\n_streams.prepare()\nprint(open('/dev/null').fileno(), file=open('said', 'w'))"
    done = subprocess.run(["sh", "-c", f"'{sys.executable}' -c \"$0\" <&- >&- 2>&-", script], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert int((tmp_path / "said").read_text()) > 2


def test_what_steers_a_terminal_reaches_none(tmp_path: Path) -> None:
    """In file names of every kind of command, with an escape sequence and a line end."""
    name = "x\x1b[31m\x9bm\u202ey"
    for command in (["import"], ["run"], ["compare", "a"], ["clean", "--url"]):
        argv = [str(CLI), *command, str(tmp_path / name)]
        status, screen = terminals.on_a_terminal(argv, {**os.environ, "TERM": "xterm"}, sizes=[(200, 24)])
        assert status == 2, screen
        assert not [sequence for sequence in ("\x1b[31m", "\x9b", "\u202e") if sequence in screen], (command, screen)
