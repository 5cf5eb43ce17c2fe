"""A command as the load client: what a slice becomes, and what has no figures: every way in which a command can go wrong."""

from __future__ import annotations

import itertools
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ciphercost.host import command_runner, deadlines
from ciphercost.host.procfs import tree
from ciphercost.host.readable_files import readable_files
from ciphercost.load.command_client import CommandClient, Place
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import AgentError
from ciphercost.model.spec import Arm
from ciphercost.runs import command_readers

Make = Callable[..., CommandClient]
Script = Callable[[str], str]
LINE = '{"operations": 10, "seconds": 0.01}'


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Make]:
    """`client(plain, encrypted="", **fields)`: a client that runs these commands."""
    made = []

    def make(plain: str, encrypted: str = "", **fields: Any) -> CommandClient:
        load = CommandLoad(plain, encrypted, **fields)
        places: dict[Arm, Place] = {"plain": Place("127.0.0.1", 7), "encrypted": Place("127.0.0.2", 8, "ca.pem")}
        reader = command_readers.reader(load)
        one = CommandClient(load, places, reader, clients=3, run_id="20260101-000000-abcdef", log=tmp_path / "log")
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """`script(text)`: a command that runs this text, in which braces are no placeholders, by sh."""
    numbers = itertools.count()

    def make(text: str) -> str:
        path = tmp_path / f"script-{next(numbers)}"
        path.write_text(text)
        return f"sh {path}"

    return make


def refused(client: CommandClient, arm: str = "plain", seconds: float = 1.0) -> AgentError:
    """The error of a slice, which is one line."""
    with pytest.raises(AgentError) as caught:
        client.slice(arm, seconds)
    assert "\n" not in str(caught.value)
    assert client.reported is None
    assert tree(client.pid) == [client.pid], "something is left running"
    return caught.value


def test_each_arm_runs_its_own_command_with_its_own_place(client: Make, script: Script) -> None:
    say = script(f'echo "$@" > "$0.$3"; echo \'{LINE}\'')
    both = client(
        f"{say} {{seconds}} {{clients}} {{host}} {{port}}",
        f"{say} {{seconds}} {{clients}} {{host}} {{port}} {{ca}} {{seed}}",
    )
    assert both.slice("plain", 1.4).operations == 10
    answer = both.slice("encrypted", 2.0, seed=2**63 - 2)
    assert (answer.arm, answer.seconds) == ("encrypted", 0.01)
    path = say.partition(" ")[2]
    assert Path(f"{path}.127.0.0.1").read_text() == "2 3 127.0.0.1 7\n"
    said = Path(f"{path}.127.0.0.2").read_text().split()
    assert said[:-1] == ["2", "3", "127.0.0.2", "8", "ca.pem"]
    assert 0 < int(said[-1]) < 2**31


def test_literal_braces_are_written_twice(client: Make) -> None:
    assert client("echo '{{\"operations\": 10}}'").slice("plain", 1.0).operations == 10


def test_cpu_time_is_that_of_all_processes_of_the_command(client: Make, script: Script, tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text("import time\nwhile time.process_time() < 0.2: pass\n")
    busy = f"{sys.executable} -I -S {tmp_path}/busy.py"
    one = client(script(f"(setsid {busy}) & {busy}; wait"), operations=1)
    total, user = one.own_cpu(one.slice("plain", 1.0))
    assert total >= 0.4e9
    assert 0 < user <= total


def test_progress_that_a_terminal_would_overwrite_is_left_out(client: Make, script: Script, tmp_path: Path) -> None:
    """As valkey-benchmark prints it into a pipe: its title stands behind carriage returns."""
    progress = " \rGET a: rps=0.0 (overall: -nan)\r              \rGET a: rps=9.5 (overall: 9.5)\r              \r"
    (tmp_path / "said").write_text(f"{progress}GET a: 23501.76 requests per second, p50=0.111 msec\n", newline="")
    one = client(script(f"cat {tmp_path / 'said'}"))
    assert one.slice("plain", 1.0).operations > 0
    assert one.reported is not None
    assert one.reported.tool.startswith("redis-benchmark")


def test_a_duration_is_the_figure_where_nothing_is_reported(client: Make) -> None:
    one = client("sleep 0.1", operations=50)
    answer = one.slice("plain", 1.0)
    assert answer.operations == 50
    assert answer.seconds >= 0.1
    assert one.reported is not None
    assert one.reported.whole
    assert one.reported.startup_s == 0


def test_a_slice_lasts_whole_seconds_and_longer_where_start_up_takes_much_of_it(client: Make, script: Script) -> None:
    one = client(script(f"sleep 0.5; echo '{LINE}'") + " {seconds}")
    assert one.fitting(0.05) == 1.0
    assert one.fitting(1.2) == 2.0
    one.slice("plain", 1.0)
    assert one.fitting(1.0, room=60.0) >= 2.0
    assert one.fitting(1.0, room=1.0) == 1.0


def test_a_command_that_takes_no_length_has_its_own(client: Make) -> None:
    one = client("sleep 1.1", operations=1)
    one.slice("plain", 1.0)
    assert one.reported is not None
    assert one.reported.process_s >= 1.1
    assert one.fitting(1.0) == math.ceil(one.reported.process_s)


# ── what has no figures ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command_that_fails_is_named_with_its_status_and_last_words(client: Make) -> None:
    error = refused(client("sh -c 'echo first 1>&2; echo second 1>&2; echo connection refused 1>&2; exit 3'"))
    assert str(error) == "sh failed with exit status 3: second; connection refused"


def test_a_command_that_fails_in_one_arm_does_not_stop_the_other(client: Make, script: Script) -> None:
    both = client(script(f"echo '{LINE}'"), "false")
    assert both.slice("plain", 1.0).operations == 10
    assert "false failed with exit status 1" in str(refused(both, "encrypted"))


def test_a_killed_command_is_told_by_its_signal(client: Make) -> None:
    assert "killed by signal 9" in str(refused(client("sh -c 'kill -9 $$'")))


def test_a_command_that_does_not_exist_is_named(client: Make) -> None:
    assert "can't run no-such-tool: No such file" in str(refused(client("no-such-tool -x")))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("true", "it printed nothing"),
        ("echo hello", "its output begins with 'hello'"),
        ("sh -c 'echo oops 1>&2'", "its output begins with 'oops'"),
        ("echo '{{\"operations\": -1}}'", "can't read the line"),
        ("echo '{{\"operations\": 1, \"second\": 2}}'", "can't read the line"),
        ("echo '{{\"operations\": 0}}'", "finished no operation"),
        ("printf '{{\"operations\": 1}}\\n{{\"operations\": 2}}\\n'", "printed 2 lines"),
        ("echo '{{\"operations\": 9, \"seconds\": 30}}'", "its process ran for"),
    ],
)  # fmt: skip
def test_output_without_usable_figures_is_refused(client: Make, command: str, words: str) -> None:
    assert words in str(refused(client(command)))


def test_what_standard_error_says_of_unusable_output_is_told(client: Make) -> None:
    error = str(refused(client("sh -c 'echo half a table; echo lost the broker, password=geheim 1>&2'")))
    assert "its output begins with 'half a table'" in error
    assert "its standard error ends with 'lost the broker, password=[hidden]" in error


def test_what_hangs_is_killed_at_its_deadline(client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, "0.1")
    one = client("sh -c 'echo waiting 1>&2; sleep 600; true'")
    for seconds in (0.5, 9.5):  # on a busy machine it may not say its word within the shorter one
        error = refused(one, seconds=seconds)
        assert error.code == deadlines.TIMEOUT
        assert f"did not end within {seconds + 0.4:g} s" in str(error)
        if str(error).endswith("waiting"):
            break
    assert str(error).endswith("waiting")


def test_what_ignores_sigterm_is_killed_too(client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(deadlines.VARIABLE, "0.1")
    assert refused(client("sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'"), seconds=0.1).code == deadlines.TIMEOUT


def test_processes_that_a_command_leaves_are_killed_and_its_figures_refused(
    client: Make, script: Script, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    named = "until grep -qx sleep /proc/$!/comm; do :; done"
    error = refused(client(script(f"setsid sleep 600 & {named}; echo $! > {pid}; echo '{LINE}'")))
    assert "processes that it had started still ran (sleep)" in str(error)
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_a_child_that_ends_a_moment_later_is_waited_for(
    client: Make, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, found = re.subn(r"^GRACE = .*$", "GRACE = 30", Path(command_runner.__file__).read_text(), flags=re.MULTILINE)
    assert found
    (tmp_path / "patient.py").write_text(text)
    monkeypatch.setattr(command_runner, "__file__", str(tmp_path / "patient.py"))
    one = client(script(f"sleep 0.05 & echo '{LINE}'"))
    assert one.slice("plain", 1.0).operations == 10


def test_four_gigabytes_fill_no_memory(client: Make) -> None:
    one = client("head -c 4294967296 /dev/zero")
    assert "printed more than 16 MB" in str(refused(one))
    status = Path(f"/proc/{one.pid}/status").read_text()
    peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    assert peak < 200_000, "KB"


def test_standard_error_without_end_is_kept_short(client: Make, script: Script) -> None:
    one = client(script(f"head -c 100000000 /dev/zero 1>&2; echo '{LINE}'"))
    assert one.slice("plain", 1.0).operations == 10


def test_a_command_has_no_terminal_and_no_input(client: Make) -> None:
    assert "not a tty" in str(refused(client("sh -c 'tty && exit 1; echo not a tty 1>&2; exit 2'")))
    assert "may need a terminal" in str(refused(client("sh -c 'exec 3</dev/tty'")))
    assert client("sh -c 'read line || exit 0; exit 1'", operations=1).slice("plain", 1.0).operations == 1


def test_a_password_in_an_error_is_hidden(client: Make) -> None:
    error = refused(client("sh -c 'echo can not log in with password=geheim 1>&2; exit 1'"))
    assert "geheim" not in str(error)
    assert "[hidden]" in str(error)


def test_a_command_gets_the_environment_with_its_passwords(client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "geheim")
    assert client("sh -c 'test $PGPASSWORD = geheim'", operations=1).slice("plain", 1.0).operations == 1


@pytest.mark.usefixtures("private_umask")
def test_a_command_has_the_users_umask(client: Make, script: Script, tmp_path: Path) -> None:
    """Not the one that a run has for its servers' sake."""
    command = script(f"umask > {tmp_path}/umask; echo '{LINE}'")
    with readable_files():
        client(command).slice("plain", 1.0)
    assert (tmp_path / "umask").read_text() == "0077\n"


def test_a_rate_that_was_set_is_refused(client: Make) -> None:
    text = (
        "pgbench (15.1)\ntransaction type: x\nnumber of clients: 1\nnumber of transactions actually processed: 100/100\n"
        "rate limit schedule lag: avg 0.1 (max 1.0) ms\nlatency average = 1.0 ms\ntps = 100.0 (without initial connection time)\n"
    )
    assert "remove the rate from the command" in str(refused(client(f"printf '{text}'".replace("\n", "\\n"))))


def test_the_figures_of_a_known_tool_are_read(client: Make, script: Script) -> None:
    text = (
        "pgbench (15.1)\ntransaction type: x\nnumber of clients: 1\nnumber of transactions actually processed: 100\n"
        "latency average = 1.0 ms\ntps = 1000.0 (without initial connection time)\n"
    ).replace("\n", "\\n")
    one = client(script(f"sleep 0.2; printf '{text}'"))
    answer = one.slice("plain", 1.0)
    assert answer.operations == 100
    assert answer.seconds == pytest.approx(0.1)
    assert one.reported is not None
    assert one.reported.tool == "pgbench 15.1"
    assert one.reported.latency_ms == {"mean": 1.0}
    assert one.reported.startup_s >= 0.1
    assert "no result of wrk" in str(refused(client(f"printf '{text}'", reads="wrk")))


def test_errors_are_not_operations(client: Make) -> None:
    answer = client('echo \'{{"operations": 0, "seconds": 0.01, "errors": 7}}\'').slice("plain", 1.0)
    assert (answer.operations, answer.errors) == (0, 7)
    assert "7 failed operations" in answer.first_error


# ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────────

CONTROLLER = """
import sys
from ciphercost.load.command_client import CommandClient, Place
from ciphercost.model.command_load import CommandLoad
from ciphercost.runs import command_readers
load = CommandLoad(sys.argv[1])
client = CommandClient(load, {"plain": Place("h", 1), "encrypted": Place("h", 1)}, command_readers.reader(load), clients=1,
                       run_id="20260101-000000-abcdef")
client.slice("plain", 1.0)
"""


def test_nothing_runs_on_when_the_controller_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = f"sh -c 'sleep 600 & echo $! $$ > {pid}.new; mv {pid}.new {pid}; wait'"
    with subprocess.Popen([sys.executable, "-c", CONTROLLER, command]) as controller:
        while not pid.exists():
            assert controller.poll() is None
            time.sleep(0.01)
        controller.send_signal(signal.SIGKILL)
    pids = [int(word) for word in pid.read_text().split()]
    for _ in range(6000):
        if not any(_runs(one) for one in pids):
            return
        time.sleep(0.01)
    raise AssertionError([one for one in pids if _runs(one)])


BECOME = """
import sys
from ciphercost.host import command_runner
request = {"argv": ["touch", sys.argv[2]], "timeout": 1.0, "most": 1, "cpus": []}
command_runner.become(request, int(sys.argv[1]), 1, 2, 2)
"""


def test_a_command_does_not_begin_if_its_runner_has_ended_meanwhile(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    for runner, status in ((os.getpid() + 1, 127), (os.getpid(), 0)):
        assert not begun.exists()
        assert subprocess.run([sys.executable, "-c", BECOME, str(runner), begun], check=False).returncode == status
    assert begun.exists()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False
