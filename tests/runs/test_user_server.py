"""A user's own server: measured, never changed, and left as it was, however the run ends."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

import ciphercost as api
import processes
from ciphercost import engines
from ciphercost.engines import StartRequest
from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import journal, leftovers, run_ownership, supervisor
from ciphercost.host.procfs import tree
from ciphercost.host.relay import Relay
from ciphercost.load import agent
from ciphercost.model import run_directory
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.own_tls import OwnTls
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.provision import leftover_schemas, scratch_schema
from ciphercost.runs import pipeline
from conftest import Require
from terminals import on_a_terminal
from test_passwords import environment
from test_real import CLI, SHORT, ciphercost, measured, result_of
from userservers import ENGINES, LIMITED, UNMARKED, UserServer, user_server

PATIENCE = 300.0
"""Seconds in which a whole run must get that far."""
wait_for = partial(processes.wait_for, patience=PATIENCE)


@pytest.fixture(scope="module", params=ENGINES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Require
) -> Iterator[UserServer]:
    require(
        list(engines.get(request.param).available()), f"no {request.param} here: `ciphercost install {request.param}`"
    )
    with user_server(request.param, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def unchanged(server: UserServer) -> Iterator[None]:
    """Check that the test leaves the server unchanged, to the last setting."""
    before = server.state()
    yield
    # The supervisor of a killed run may still be closing the agent's connection, and the server may need a moment to drop a schema.
    after: list[object] = []

    def as_it_was() -> bool:
        after[:] = server.state()
        return after == before

    with contextlib.suppress(AssertionError):  # the next line shows what differs
        wait_for("the server to be as it was", as_it_was)
    assert after == before


def target(server: UserServer) -> str:
    return f"{server.engine.name}:{server.mechanism}"


def run(server: UserServer, *argv: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return ciphercost(
        "run",
        target(server),
        "--url",
        server.url,
        *server.by_ca,
        *argv,
        cwd=cwd,
        **{**server.environment, **environment},
    )


class Going:
    """A long run on the server that has already created its schema."""

    def __init__(self, server: UserServer, directory: Path, *argv: str) -> None:
        self.server = server
        command: list[str] = [str(CLI), "run", target(server), "--url", server.url, *server.by_ca]
        command += ["--quick", "--time", "120s", "--no-progress", "-o", str(directory / "run"), *argv]
        there = server.schemas().keys()
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **server.environment},
            # If a shell runs the tests in the background, they ignore Ctrl-C, and their children would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            wait_for("the schema", lambda: self.process.poll() is not None or bool(server.schemas().keys() - there))
            assert self.process.poll() is None, self.process.communicate()
            self.run_id = run_directory.read_facts(directory / "run").id
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def family(self, name: bytes) -> list[int]:
        """Processes of the run whose command contains this."""
        return [pid for pid in tree(self.process.pid)[1:] if name in _command(pid)]

    def end(self) -> tuple[str, str]:
        try:
            return self.process.communicate(timeout=PATIENCE)
        finally:
            self.kill()


def read_by(pid: int) -> int:
    """Bytes."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/io").read_text().split()[1])
    return 0


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextlib.contextmanager
def going(server: UserServer, directory: Path, *argv: str) -> Iterator[Going]:
    long_run = Going(server, directory, *argv)
    try:
        yield long_run
    finally:
        long_run.kill()


def many_rows(directory: Path) -> str:
    """A file that needs some seconds to load."""
    path = directory / "many.csv"
    path.write_text("n,text\n" + "".join(f"{n},{'x' * 100}\n" for n in range(200_000)))
    return str(path)


# ── left as it was ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "argv", [(), ("--csv", "mine.csv"), ("--workload", "tpcb")], ids=["point-select", "csv", "tpcb"]
)
def test_a_run_leaves_the_server_as_it_was(tmp_path: Path, server: UserServer, argv: tuple[str, ...]) -> None:
    (tmp_path / "mine.csv").write_text("id,word\n" + "".join(f"{n},w{n}\n" for n in range(500)))
    named = ("run", target(server), "--url", server.url, *server.by_ca)
    done = measured(*named, *SHORT, *argv, "--json", "out.json", cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not control it" in done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert "not-controlled" in {warning["code"] for warning in cell["warnings"]}


@pytest.mark.usefixtures("unchanged")
def test_plain_against_plain_leaves_the_server_as_it_was(tmp_path: Path, server: UserServer) -> None:
    argv = ("calibrate", server.engine.name, "--url", server.url, "--quick", "--time", "4s", "--no-progress")
    done = ciphercost(*argv, "--json", "out.json", cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "does not control it" in done.stderr
    assert result_of(tmp_path)["cells"][0]["mechanism"] == "none"


@pytest.mark.usefixtures("unchanged")
def test_a_run_that_fails_while_it_loads_leaves_the_server_as_it_was(tmp_path: Path, server: UserServer) -> None:
    with going(server, tmp_path, "--csv", many_rows(tmp_path)) as one:
        name = os.fsencode(agent.find())

        # The loading connection receives all rows; the others before and after it receive little.
        def loading() -> list[int]:
            return [pid for pid in one.family(name) if read_by(pid) > 1_000_000]

        wait_for("an agent that loads", lambda: bool(loading()))
        for pid in loading():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        printed, problems = one.end()
    assert one.process.returncode == 1, printed + problems
    assert "the agent ended" in " ".join(printed.split())
    assert "could not drop the schema" not in problems, problems


MOMENTS: dict[str, tuple[bool, Callable[[Path], bool]]] = {
    "while it loads": (True, lambda directory: True),
    "in the middle of the load": (
        False,
        lambda directory: (directory / "run" / "slices.jsonl").stat().st_size > 20_000,
    ),
}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_told_to_end_leaves_the_server_as_it_was(
    tmp_path: Path, server: UserServer, number: int, moment: str
) -> None:
    own_rows, reached = MOMENTS[moment]
    with going(server, tmp_path, *(("--csv", many_rows(tmp_path)) if own_rows else ())) as one:
        wait_for(moment, lambda: reached(tmp_path))
        one.process.send_signal(number)
        _, errors = one.end()
    assert one.process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors


UNENCRYPTED = {
    "postgresql": "sslmode=disable",
    "mysql": "ssl-mode=DISABLED",
    "mariadb": "ssl=0",
    "firebird": "wire_crypt=Disabled",
}
"""By engine: what a URL asks so that nothing is encrypted."""


def used(server: UserServer, command: str, place: Path) -> str:
    """How strongly this `clean` encrypts its login: the agent's `tls` or `wire_crypt`."""
    words = shlex.split(command)
    options = dict(zip(words[1::2], words[2::2], strict=True))
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        running = server.engine.start(StartRequest(server.engine.find(url=options["--url"]), place, run_supervisor))
        fields = leftover_schemas.reached(TakesUrl.of(server.engine), running, OwnTls(options.get("--ca", "")), place)
    return str(fields.tls)


# ── killed by force ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("unchanged", "alone")
def test_a_run_that_is_killed_with_its_supervisor_leaves_its_marked_schema_alone_and_clean_takes_it(
    tmp_path: Path, server: UserServer
) -> None:
    before = server.state()
    with going(server, tmp_path) as one:
        living = ciphercost("clean", "--url", server.url, cwd=tmp_path, **server.environment)
        assert f"run {one.run_id} is still running here" in living.stdout
        named = scratch_schema.name_for(one.run_id)
        refused = ciphercost("clean", "--url", server.url, "--schema", named, cwd=tmp_path, **server.environment)
        assert refused.returncode == 2
        assert "is still running here" in refused.stderr
        supervisor_pids = one.family(b"supervisor_process.py")
        assert supervisor_pids
        for pid in supervisor_pids:
            os.kill(pid, signal.SIGSTOP)
        one.kill()
        for pid in supervisor_pids:
            os.kill(pid, signal.SIGKILL)
    wait_for("the supervisor to end", lambda: not any(run_ownership.start_time(pid) for pid in supervisor_pids))
    try:
        assert scratch_schema.read_mark(server.mark(named) or "").run == one.run_id
        noted = [
            leftover for leftover in leftovers.leftovers() if leftover.kind == "schema" and leftover.run == one.run_id
        ]
        assert [leftover.what.partition(" on ")[0] for leftover in noted] == [named]
        # The command works exactly as it is printed, and its login is encrypted if the run's was.
        printed = leftovers.remove(noted)[0].partition("Run: ciphercost ")[2].partition(" (if the server")[0]
        assert ("--ca" in printed) == bool(server.by_ca)
        assert used(server, printed, tmp_path) == ("verify-full" if server.by_ca else "require")
        # Nor is one that leaves the authority out, on the machine that knows how the run logged in.
        assert used(server, f"clean --url {server.url}", tmp_path) == ("verify-full" if server.by_ca else "require")
        with pytest.raises(UsageError, match=r"this machine logged in .*encrypted"):
            used(server, f"clean --url {server.url}?{UNENCRYPTED[server.engine.name]}", tmp_path)
        done = ciphercost(*shlex.split(printed), cwd=tmp_path, **server.environment)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"removed schema {named} of run {one.run_id}")
        assert server.state() == before
        again = ciphercost("clean", "--url", server.url, cwd=tmp_path, **server.environment)
        assert again.stdout.startswith("Nothing of ciphercost's is on that")
    finally:
        leftovers.remove([left for left in leftovers.leftovers() if one.run_id in str(left)])


@pytest.mark.usefixtures("unchanged")
def test_a_run_of_another_machine_is_shown_and_taken_only_by_name(tmp_path: Path, server: UserServer) -> None:
    mark = scratch_schema.Mark("20200101-000000-abcd", "elsewhere", "1:1:another-boot")
    name = scratch_schema.name_for(mark.run)
    server.make(name, str(mark))
    try:
        shown = ciphercost("clean", "--url", server.url, cwd=tmp_path, **server.environment)
        assert shown.returncode == 0
        if OwnSchema.of(server.engine).unlisted:
            assert "--schema NAME" in shown.stdout
        else:
            assert f"left {name}: run {mark.run} was on another machine or container (elsewhere)" in shown.stdout
            assert f"--schema {name}" in shown.stdout
        assert server.mark(name) == str(mark)
        wrong = ciphercost("clean", "--url", server.url, "--schema", name[:-1], cwd=tmp_path, **server.environment)
        assert wrong.returncode == 2
        assert "no such schema on that server" in wrong.stderr
        taken = ciphercost("clean", "--url", server.url, "--schema", name, cwd=tmp_path, **server.environment)
        assert f"removed schema {name}" in taken.stdout
    finally:
        if server.mark(name) is not None:
            server.drop(name)


@pytest.mark.usefixtures("unchanged")
def test_a_run_of_this_machine_before_a_restart_is_taken_by_its_note(tmp_path: Path, server: UserServer) -> None:
    mark = scratch_schema.Mark("20200101-000000-abcd", "here", "1:1:another-boot")
    name = scratch_schema.name_for(mark.run)
    note = scratch_schema.note_of(server.engine.name, server.fields, name, mark.run)
    journal.keep(run_ownership.scratch_base(), structs.replace(note, owner="1:1:another-boot:1"))
    server.make(name, str(mark))
    try:
        taken = ciphercost("clean", "--url", server.url, cwd=tmp_path, **server.environment)
        assert f"removed schema {name} of run {mark.run}" in taken.stdout
        assert server.mark(name) is None
        assert scratch_schema.noted(server.engine.name, server.fields) == {}
    finally:
        journal.drop(run_ownership.scratch_base(), note)
        if server.mark(name) is not None:
            server.drop(name)


@pytest.mark.parametrize("by", ["in clear", "with TLS"])
def test_clean_asks_on_a_terminal_for_the_password_that_the_run_was_given_there(
    tmp_path: Path, server: UserServer, by: str
) -> None:
    if not TakesUrl.of(server.engine).refuses_anonymous:
        pytest.skip("what it says where there is no password is not known")
    mark = scratch_schema.Mark("20200101-000000-abcd", "elsewhere", "1:1:another-boot")
    name, password = scratch_schema.name_for(mark.run), server.environment[TakesUrl.of(server.engine).password_from]
    argv = [str(CLI), "clean", "--url", server.url, "--schema", name, *(server.by_ca if by == "with TLS" else ())]
    server.make(name, str(mark))
    try:
        status, shown = on_a_terminal(argv, environment(tmp_path), asked="Password of", typed="wrong\n")
        assert (status, shown.count("Password of")) == (1, 1), shown
        assert server.mark(name) == str(mark)
        status, shown = on_a_terminal(argv, environment(tmp_path), asked="Password of", typed=password + "\n")
        assert (status, shown.count("Password of")) == (0, 1), shown
        assert password not in shown
        assert f"removed schema {name}" in shown
        assert server.mark(name) is None
    finally:
        if server.mark(name) is not None:
            server.drop(name)


@pytest.mark.usefixtures("unchanged")
def test_a_schema_that_can_not_be_dropped_is_reported_with_what_to_do(
    tmp_path: Path, server: UserServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AgentError("not today", "42")

    run_id, told = run_directory.new_id(), list[str]()
    name = scratch_schema.name_for(run_id)
    for left in (told.append, scratch_schema.say_left):
        with monkeypatch.context() as patch:
            patch.setattr(type(server.engine), "drop_schema", fail)
            with scratch_schema.temporary(
                OwnSchema.of(server.engine), server.fields, name, run_id, tmp_path / "log", left
            ):
                pass
        server.drop(name)
    note = scratch_schema.note_of(server.engine.name, server.fields, name, run_id)
    (sentence,) = told
    for fact in (f"could not drop the schema {name} ", "(not today)", f"`{note.command}`"):
        assert fact in sentence
    assert capsys.readouterr().err == f"ciphercost: {sentence}\n"


def test_a_schema_without_a_mark_is_never_touched(tmp_path: Path, server: UserServer) -> None:
    if server.engine.name not in UNMARKED:
        pytest.skip("a schema without a mark can't be made there by SQL alone")
    server.ask(UNMARKED[server.engine.name])
    try:
        shown = ciphercost("clean", "--url", server.url, cwd=tmp_path, **server.environment)
        assert f"left ciphercost_mine: {leftover_schemas.WHY['unmarked']}" in shown.stdout
        asked = ("clean", "--url", server.url, "--schema", "ciphercost_mine")
        refused = ciphercost(*asked, cwd=tmp_path, **server.environment)
        assert refused.returncode == 2
        assert "ciphercost did not make it" in refused.stderr
        assert "ciphercost_mine" in server.schemas()
    finally:
        server.drop("ciphercost_mine")


@pytest.mark.usefixtures("unchanged")
def test_a_schema_that_is_there_already_is_neither_used_nor_dropped(
    tmp_path: Path, server: UserServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_directory.new_id()
    monkeypatch.setattr(pipeline, "new_id", lambda: run_id)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    cell = CellSpec(
        server.engine.name,
        server.mechanism,
        regime="one-core",
        url=server.url,
        ca=str(server.ca) if server.by_ca else "",
    )
    # Even one with this run's own mark, because this process did not create it.
    for mark in ("another-run on elsewhere by 1:1:x", str(scratch_schema.mark_of(run_id))):
        server.make(scratch_schema.name_for(run_id), mark)
        try:
            spec = Spec([cell], mode="quick", sessions=1, time=4.0, latency=False)
            result = api.run(spec, tmp_path / mark[:7])
            assert result.cells[0].status == "failed", result.cells[0].reason
            assert "this run did not make it" in result.cells[0].reason
            assert server.mark(scratch_schema.name_for(run_id)) == mark
        finally:
            server.drop(scratch_schema.name_for(run_id))


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_the_right_to_create_a_schema_the_error_has_the_grant(tmp_path: Path, server: UserServer) -> None:
    if server.engine.name not in LIMITED:
        pytest.skip("no user can be made there by SQL alone")
    server.ask(*LIMITED[server.engine.name])
    before = server.state()
    try:
        url = server.url_for("limited")
        argv = ("run", target(server), "--url", url, *server.by_ca, *SHORT)
        done = ciphercost(*argv, cwd=tmp_path, **{TakesUrl.of(server.engine).password_from: "limited"})
        output = " ".join(done.stdout.split())
        assert done.returncode == 1, done.stdout + done.stderr
        assert "FAILED" in output
        assert "can't create the schema" in output
        assert "the right to create one is missing: " in output
        assert server.state() == before
    finally:
        server.ask("DROP USER limited")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("wrong", ["password", "port", "host"])
@pytest.mark.parametrize("command", ["run", "calibrate", "clean", "prove"])
def test_a_server_that_can_not_be_reached_or_entered_is_said_so(
    tmp_path: Path, server: UserServer, wrong: str, command: str
) -> None:
    user = str(server.fields.user)
    url = {
        "password": server.url,
        "port": server.url_for(user, port=1),
        "host": server.url_for(user, host="no-such-host.invalid"),
    }[wrong]
    argv = {
        "run": ("run", target(server), "--url", url, *server.by_ca, *SHORT),
        "calibrate": ("calibrate", server.engine.name, "--url", url, "--quick", "--time", "4s", "--no-progress"),
        "clean": ("clean", "--url", url),
        "prove": ("prove", url, *server.by_ca),
    }[command]
    secret = "not-the-right-one"
    environment = {TakesUrl.of(server.engine).password_from: secret} if wrong == "password" else server.environment
    done = ciphercost(*argv, cwd=tmp_path, **environment)
    output = (done.stdout + done.stderr).lower()
    # An unknown host name is a wrong URL; other errors appear only on connecting.
    assert done.returncode == (2 if wrong == "host" else 1), output
    words = {"password": ("password", "denied", "login"), "port": ("refused",), "host": ("no-such-host.invalid",)}[
        wrong
    ]
    assert any(word in output for word in words), output
    assert secret not in output


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("clean", "--schema", "x"), "give its --url too"),
        (("clean", "--url", "nonsense://h/d"), "nonsense://: no engine has this URL scheme"),
        (("clean", "--url", "postgresql://[h/d"), "not a valid URL"),
        (("prove", "postgresql://u:secret@[h/d"), "not a valid URL"),
        (("clean", "--url", "postgresql://u:secret@h/d"), "holds a password"),
        (("clean", "--url", "postgresql://u@h/d", "--engine", "sqlite"), "takes no --url"),
        (("clean", "--url", "postgresql://u@h/d", "--ca", "none.pem"), "no such file"),
        (
            ("clean", "--url", "firebird://u@h/d", "--ca", "none.pem"),
            "Firebird has no TLS mechanism (mechanisms in transit: wire-crypt)",
        ),
        (("calibrate", "sqlite", "--url", "postgresql://u@h/d"), "embedded"),
    ],
)
def test_a_server_that_is_named_wrongly_is_refused(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    done = ciphercost(*argv, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert "secret@" not in done.stderr


@pytest.mark.usefixtures("unchanged")
def test_where_the_servers_processes_can_not_be_seen_there_are_client_side_figures(
    tmp_path: Path, server: UserServer
) -> None:
    # Behind a process that is no server, as with a pooler or another machine.
    with Relay("127.0.0.1", server.fields.port) as relay:
        url = server.url_for(str(server.fields.user), port=relay.port)
        argv = ("run", target(server), "--url", url, *server.by_ca, *SHORT, "--json", "out.json")
        done = ciphercost(*argv, cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    assert "server-not-seen" in {warning["code"] for warning in cell["warnings"]}
    assert "server_cpu_per_op" not in cell["overhead"]
    assert cell["overhead"]["client_cpu_per_op"]["ratio"] > 0
