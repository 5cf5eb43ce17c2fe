"""Search for a server's password and a run's keys in everything that the run starts, writes and prints.

A key may exist only in its own file in the run's scratch directory, with mode 0600, during the run.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import os
import re
import resource
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

import ciphercost
import short
import steady
import warm
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host import run_ownership, supervisor
from ciphercost.host.environment import child_environment, is_passed_on
from ciphercost.host.procfs import tree
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.agent import Agent
from ciphercost.load.jdbc import java
from ciphercost.model import run_directory
from ciphercost.model.errors import MissingServer
from ciphercost.report import formats
from client_certs import ClientAuthority
from conftest import Require, RequireServer
from processes import wait_for
from userservers import UserServer, user_server

CLI = Path(sys.executable).parent / "ciphercost"
SOURCES = Path(ciphercost.__file__).parent
LARGEST = 200 << 20
NEW_PASSWORD = {
    "postgresql": "ALTER ROLE ciphercost PASSWORD '{}'",
    "mysql": "ALTER USER CURRENT_USER() IDENTIFIED BY '{}'",
    "mariadb": "SET PASSWORD = PASSWORD('{}')",
    "firebird": "ALTER CURRENT USER SET PASSWORD '{}'",
}


# ── the environment of what is started ────────────────────────────────────────────────────────────────────────────────

SECRET_NAMES = (
    "PGPASSWORD", "PGPASSFILE", "MYSQL_PWD", "MYSQL_TEST_LOGIN_FILE", "ISC_PASSWORD", "MYSQL_ROOT_PASSWORD",
    "POSTGRES_PASSWORD", "DB_PASSWORD", "APP_DB_PASSWORD", "GITHUB_TOKEN", "DB_PASS", "MYSQL_PASS",
    "DATABASE_URL", "POSTGRES_URL", "JDBC_DATABASE_URL", "SQLALCHEMY_DATABASE_URI", "AWS_SECRET_ACCESS_KEY", "API_KEY",
    "REDISCLI_AUTH", "VALKEYCLI_AUTH", "SSHPASS", "DB_PW", "AZURE_STORAGE_KEY", "GITHUB_PAT", "LDAP_BIND_PW", "JWT", "SESAME", "SSH_AUTH_SOCK",
    "RAY_AUTH_TOKEN", "CIPHERCOST_SECRET", "LC_", "PGDATA", "JAVA_TOOL_OPTIONS", "HTTPS_PROXY", "PIP_INDEX_URL",
)  # fmt: skip
KEPT_NAMES = (
    "PATH",
    "PWD",
    "OLDPWD",
    "HOME",
    "OPENSSL_ia32cap",
    "LD_LIBRARY_PATH",
    "CIPHERCOST_SCRATCH",
    "TZ",
    "LC_NUMERIC",
    "JAVA_HOME",
    "SSL_CERT_FILE",
    "CIPHERCOST_TIMEOUT",
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_is_not_passed_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "sesame")
    assert name not in child_environment()
    assert child_environment({name: "given"})[name] == "given"


@pytest.mark.parametrize(
    "value", ["postgres://me:sesame@db/x", "jdbc:mysql://db/x?user=me&password=sesame", "host=db Password=sesame"]
)
def test_a_secret_within_an_address_is_not_passed_on(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PYTHONPATH", value)
    assert "PYTHONPATH" not in child_environment()
    monkeypatch.setenv("PYTHONPATH", "/opt/site")
    assert "PYTHONPATH" in child_environment()


@pytest.mark.parametrize("name", KEPT_NAMES)
def test_what_is_no_secret_is_passed_on(name: str) -> None:
    assert is_passed_on(name)


def test_package_clients_get_their_own_secrets_and_no_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry_secrets = {
        "HTTPS_PROXY": "http://me:sesame@proxy:3128",
        "PIP_INDEX_URL": "https://me:sesame@mirror/simple",
    }
    for name, value in {**dict.fromkeys((*SECRET_NAMES, "NEXUS_PASSWORD"), "sesame"), **registry_secrets}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = {*registry_secrets, "JAVA_TOOL_OPTIONS"}
    assert {name for name, value in child_environment(registries=True).items() if "sesame" in value} == mine
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text("<password>${env.NEXUS_PASSWORD}</password>")
    assert "NEXUS_PASSWORD" in child_environment(registries=True)
    assert "NEXUS_PASSWORD" not in child_environment()


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                if isinstance(of, ast.Name) and of.id == "subprocess" and node.func.attr in ("run", "Popen"):
                    yield path, node


def test_every_process_that_is_started_gets_an_environment_of_its_own() -> None:
    starts = list(calls())
    assert len(starts) >= 19
    bare = [
        f"{path.name}:{node.lineno}"
        for path, node in starts
        # The supervisor's own environment has only a PATH and the run's mark.
        if path.name != "supervisor_process.py" and not any(argument.arg == "env" for argument in node.keywords)
    ]
    assert bare == []
    whole = [path.name for path in SOURCES.rglob("*.py") if "**os.environ" in path.read_text()]
    assert set(whole) <= {"aes.py", "command_client.py"}, (
        "aes.py only reads it; the user's own command needs its passwords"
    )


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_agents_are_started_without_passwords(monkeypatch: pytest.MonkeyPatch, require: Require) -> None:
    for name in SECRET_NAMES:
        monkeypatch.setenv(name, "sesame-4711")
    with Agent() as agent:
        assert b"sesame-4711" not in environment_of(agent.pid)
    try:
        command = java.command()
    except MissingServer as error:
        require(None, str(error))
        raise
    with Agent(command) as agent:
        assert b"sesame-4711" not in environment_of(agent.pid)


# ── directories for a while ───────────────────────────────────────────────────────────────────────────────────────────


def test_no_temporary_directory_lies_outside_of_scratch() -> None:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and "tempfile." in ast.unparse(node.func):
                assert any(argument.arg == "dir" for argument in node.keywords), f"{path.name}:{node.lineno}"


def test_a_temporary_directory_is_removed_also_after_a_kill() -> None:
    run_id = run_directory.new_id()
    script = (
        "import sys, time; from ciphercost.host import supervisor\n"
        "with supervisor.Supervisor(sys.argv[1]) as running, supervisor.temporary(running, 'jdbc') as place:\n"
        "    (place / 'store').write_text('x'); print(place, flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", script, run_id], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        place = Path(process.stdout.readline().strip())
        assert place.parent == run_ownership.scratch_base() / run_id
        assert place.stat().st_mode & 0o777 == 0o700
        process.terminate()
    wait_for("the scratch directory to be removed", lambda: not place.parent.exists())


def test_a_temporary_directory_is_gone_afterwards() -> None:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        with (
            supervisor.temporary(run_supervisor, "one") as first,
            supervisor.temporary(run_supervisor, "one") as second,
        ):
            assert first != second
        assert not first.exists()


# ── a whole run ───────────────────────────────────────────────────────────────────────────────────────────────────────


def forms(value: bytes) -> dict[str, bytes]:
    """A secret, and encoded forms of it."""
    text = value.decode("latin-1")
    return {
        "plain": value,
        "hex": value.hex().encode(),
        "HEX": value.hex().upper().encode(),
        "base64": base64.b64encode(value).rstrip(b"="),
        "base64, URL": base64.urlsafe_b64encode(value).rstrip(b"="),
        "URL": quote(text, safe="", encoding="latin-1").encode(),
        "URL, form": quote_plus(text, encoding="latin-1").encode(),
        "JSON": text.replace('"', '\\"').encode("latin-1"),
    }


class Search:
    """Watches a running command and everything it starts: arguments, environments, files of its scratch directory."""

    def __init__(self, known: Mapping[str, bytes]) -> None:
        self.needles = {f"{name}, {how}": form for name, value in known.items() for how, form in forms(value).items()}
        self.hits: list[str] = []
        self.started: set[bytes] = set()
        self.looks = 0
        self.may_dump: set[bytes] = set()
        """Programs that could leave a core dump, with all that their memory holds."""
        self.keys: dict[Path, bytes] = {}

    def within(self, where: str, content: bytes) -> None:
        self.hits += [f"{where}: {name}" for name, needle in self.needles.items() if needle in content]

    def processes(self, root: int) -> None:
        # The user set the command's own environment; a child has the same until it executes its program.
        command = b""
        for pid in tree(root):
            with contextlib.suppress(OSError):
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
                self.started.add(arguments.partition(b"\0")[0])
                self.within(f"arguments of {arguments[:60]!r}", arguments)
                command = command or arguments
                if arguments != command:
                    self.within(f"environment of {arguments[:60]!r}", environment_of(pid))
                    limits = Path(f"/proc/{pid}/limits").read_text()
                    if limits and not re.search(r"^Max core file size +0 ", limits, re.MULTILINE):
                        self.may_dump.add(arguments[:60])

    def scratch(self, place: Path) -> None:
        """Read keys from their own files; a server's random password is in such a file too."""
        files = []
        for directory, _, names in os.walk(place):
            files += [Path(directory) / name for name in names]
        for path in files:
            with contextlib.suppress(OSError):
                if path.name == "sqlcipher.key" or path.name.startswith("column-"):
                    status, content = path.stat(), path.read_bytes()
                    if content:
                        self.keys[path] = content
                        assert status.st_mode & 0o777 == 0o600, path
        for path, content in self.keys.items():
            key = bytes.fromhex(content.decode()) if path.name == "sqlcipher.key" else content
            for how, form in forms(key).items():
                self.needles.setdefault(f"{path.name}, {how}", form)
        for path in files:
            if path not in self.keys:
                self.file(path)

    def file(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGEST:
                self.within(f"file {path}", path.read_bytes())

    def run(self, argv: list[str], environment: Mapping[str, str], directory: Path) -> Path:
        """Run a command that measures; its run's directory, below `directory`."""
        (directory / "tmp").mkdir()
        spec, printed = short.spec_of(argv, cwd=directory, env={**os.environ, **environment})
        assert spec, printed.stderr
        status, output, run = steady.printed(
            lambda into: self.once([str(CLI), *spec, "-o", str(into)], environment, directory), directory
        )
        assert status == 0, output
        return run

    def once(self, argv: list[str], environment: Mapping[str, str], directory: Path) -> tuple[int, str]:
        """(exit status, output) of a command that is watched."""
        env = {**os.environ, **environment, "CIPHERCOST_PAGE": "on", "TMPDIR": str(directory / "tmp")}
        with subprocess.Popen(
            argv,
            env=env,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            preexec_fn=core_dumps_wanted,
        ) as process:
            ended = threading.Event()

            def watch() -> None:
                last = 0.0
                while not ended.wait(0.02):
                    self.processes(process.pid)
                    self.looks += 1
                    if time.monotonic() - last > 0.7 and (run := self.run_of(process.pid)):
                        self.scratch(run_ownership.scratch_base() / run)
                        last = time.monotonic()

            watching = threading.Thread(target=watch)
            watching.start()
            try:
                output, _ = process.communicate(timeout=400)
            finally:
                ended.set()
                watching.join()
        self.within("terminal", output)
        return process.returncode, output.decode()

    def run_of(self, root: int) -> str:
        """The run that a command started, from the mark of its processes."""
        for pid in tree(root)[1:]:
            with contextlib.suppress(OSError):
                for variable in environment_of(pid).split(b"\0"):
                    if variable.startswith(f"{run_ownership.RUN_MARK}=".encode()):
                        return variable.partition(b"=")[2].decode()
        return ""

    def all_of(self, directory: Path) -> None:
        for path in directory.rglob("*"):
            self.file(path)


def core_dumps_wanted() -> None:
    """As on a machine that is set up to keep core dumps of any size."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def reported(directory: Path, run: Path) -> None:
    """Write a report in every format."""
    reports = directory / "reports"
    reports.mkdir()
    for name in formats.names():
        argv = ["report", str(run), "--format", name, "-o", str(reports / f"report.{name}")]
        done = warm.run(argv, cwd=directory)
        assert done.returncode == 0, done.stderr


def searched(search: Search, directory: Path, run: Path) -> None:
    reported(directory, run)
    search.all_of(directory)
    run_id = run_directory.read_facts(run).id
    assert not (run_ownership.scratch_base() / run_id).exists()
    assert [*(directory / "tmp").iterdir()] == []
    assert search.looks > 10
    assert search.hits == []
    assert search.may_dump == set()


@pytest.mark.parametrize(
    ("name", "client"),
    [("postgresql", "rust"), ("postgresql", "jdbc"), ("mysql", "jdbc"), ("mariadb", "rust"), ("firebird", "jdbc")],
)
def test_a_password_is_nowhere(
    name: str, client: str, require_server: RequireServer, require: Require, tmp_path: Path
) -> None:
    require_server(name)
    if client == "jdbc":
        try:
            java.command()
        except MissingServer as error:
            require(None, str(error))
    word = secrets.token_hex(6)
    password = f"Sesame/{word}+=&%?" if name != "firebird" else f"Sesame{word}"
    (tmp_path / "server").mkdir()
    (tmp_path / "mine").mkdir()
    with user_server(name, tmp_path / "server") as server:
        secret = {"password": password.encode()}
        options: list[str] = []
        environment = {TakesUrl.of(server.engine).password_from: password}
        if name == "postgresql":
            passphrase = f"Open/{word}+=&%?"
            clients = ClientAuthority(tmp_path / "clients")
            identity = clients.client("me", passphrase)
            require_certificate(server, clients.ca)
            assert identity["pem"].key
            # A line of its own in the unencrypted key, which the run never sees as a file.
            secret |= {"passphrase": passphrase.encode(), "key": identity["pem"].key.read_bytes().splitlines()[2]}
            options = identity["sealed" if client == "rust" else "pkcs12"].options
            environment["CIPHERCOST_KEY_PASSPHRASE"] = passphrase
        server.ask(NEW_PASSWORD[name].format(password))
        search = Search(secret)
        target = f"{name}:{server.mechanism.partition(':')[2] or server.mechanism}"
        argv = ["run", target, "--url", server.url, *server.by_ca, *options, "--client", client]
        argv += ["--quick", "--time", "4s"]
        run = search.run(argv, environment, tmp_path / "mine")
        if name == "postgresql":
            (cell,) = run_directory.read_facts(run).cells
            assert cell.encryption["client_certificate"] == "verified by the server"
    agent = b"java" if client == "jdbc" else b"ciphercost-agent"
    assert any(program.endswith(agent) for program in search.started), search.started
    searched(search, tmp_path / "mine", run)


def require_certificate(server: UserServer, ca: Path) -> None:
    """Let encrypted logins in by password and certificate, unencrypted ones by password."""
    directory = server.server.directory
    assert directory
    trusted = directory / "clients-ca.pem"
    trusted.write_bytes(ca.read_bytes())
    trusted.chmod(0o644)
    rules = (
        "hostssl all all 127.0.0.0/8 scram-sha-256 clientcert=verify-ca",
        "hostnossl all all 127.0.0.0/8 scram-sha-256",
    )
    server.ask(f"ALTER SYSTEM SET ssl_ca_file = '{trusted}'")
    (directory / "pg_hba.conf").write_text("\n".join(rules) + "\n")
    server.ask("SELECT pg_reload_conf()")


def test_a_token_is_nowhere(require_server: RequireServer, tmp_path: Path) -> None:
    require_server("postgresql")
    for name in ("server", "mine", "mine/tmp"):
        (tmp_path / name).mkdir()
    token = f"token/{secrets.token_hex(12)}"
    (tmp_path / "token").write_text(f"{token}\n")
    with user_server("postgresql", tmp_path / "server") as server:
        server.ask(NEW_PASSWORD["postgresql"].format(token))
        search = Search({"token": token.encode()})
        argv = ["prove", server.url, *server.by_ca, "--password-command", f"cat {tmp_path}/token"]
        status, output = search.once([str(CLI), *argv], {"PGPASSWORD": "wrong"}, tmp_path / "mine")
    assert (status, "ENCRYPTED, proven by every witness" in output) == (0, True), output
    search.all_of(tmp_path / "mine")
    assert (search.hits, search.may_dump) == ([], set())


@pytest.mark.parametrize(
    "target", ["sqlite:sqlcipher", "postgresql:pgcrypto-cbc-256", "postgresql:client-aes-gcm-256", "mysql:aes-cbc-256"]
)
def test_a_key_is_nowhere_but_in_its_own_file(require_server: RequireServer, tmp_path: Path, target: str) -> None:
    if not target.startswith("sqlite"):
        require_server(target.partition(":")[0])
    search = Search({})
    wanted = "hospital-client" if "client" in target else "search"
    workload = [] if target.startswith("sqlite") else ["--workload", wanted]
    run = search.run(["run", target, *workload, "--quick", "--time", "6s"], {}, tmp_path)
    assert search.keys, "no key was seen, so nothing was searched for"
    searched(search, tmp_path, run)


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """The control: the search must find a planted secret."""
    search = Search({"password": b"sesame/4711"})
    for number, form in enumerate(forms(b"sesame/4711").values()):
        (tmp_path / str(number)).write_bytes(b"before " + form + b" after")
    search.all_of(tmp_path)
    assert len({hit.partition(":")[0] for hit in search.hits}) == len(forms(b""))
    search.hits.clear()
    with subprocess.Popen(["sleep", "1000"], env={"PGPASSWORD": "sesame/4711", "PATH": os.environ["PATH"]}) as process:
        wait_for("its environment", lambda: b"sesame" in environment_of(process.pid))
        search.processes(os.getpid())
        process.kill()
    assert search.hits
