"""A man in the middle with his own certificate, between `prove` or `run` and a user's server.

If the client rejects the certificate, nothing is sent unencrypted. If it does not check it, the verdict does not claim that it did.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ciphercost.host.pki import Pki
from conftest import RequireServer
from listening import Listener
from test_real import ciphercost
from userservers import UserServer, user_server

NAMES = ["postgresql", "mysql", "mariadb"]
CLIENT_SSL = 0x0800
SSL_REQUEST = 80877103


class Middle(Listener):
    """Forwards everything; for TLS it presents its own certificate. `in_clear`: bytes of logins without TLS."""

    def __init__(self, name: str, port: int, directory: Path) -> None:
        pki = Pki(directory, "ecdsa-p256")
        self._mysql = name != "postgresql"
        self._target = ("127.0.0.1", port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pki.certificate, pki.key)
        self._onward = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._onward.check_hostname = False
        self._onward.verify_mode = ssl.CERT_NONE
        self.in_clear = self.handshakes = 0
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        client = connection
        with socket.create_connection(self._target) as server:
            first = self._greet(client, server)
            if first is None:
                self.handshakes += 1
                with (
                    self._context.wrap_socket(client, server_side=True) as inner,
                    self._onward.wrap_socket(server) as outer,
                ):
                    self._pass_on(inner, outer)
            elif first:
                self.in_clear += len(first)
                server.sendall(first)
                self._pass_on(client, server)

    def _greet(self, client: socket.socket, server: socket.socket) -> bytes | None:
        """First bytes of the client; None: it requests TLS, and both sides are ready."""
        if self._mysql:
            client.sendall(server.recv(4096))
        # Not one byte more: a ClientHello may already follow.
        first = client.recv(36 if self._mysql else 8, socket.MSG_WAITALL)
        if self._mysql and first[:3] == b"\x20\0\0" and int.from_bytes(first[4:6], "little") & CLIENT_SSL:
            server.sendall(first)
            return None
        if not self._mysql and len(first) == 8 and struct.unpack(">i", first[4:])[0] == SSL_REQUEST:
            server.sendall(first)
            client.sendall(server.recv(1))
            return None
        return first

    @staticmethod
    def _pass_on(one: socket.socket, other: socket.socket) -> None:
        """Forward in one thread, because two threads can't share a TLS socket."""
        opposite = {one: other, other: one}
        while True:
            for source in select.select([one, other], [], [])[0]:
                more = True
                while more:
                    # The data may be only a session ticket, so don't make the other side wait.
                    source.settimeout(0.05)
                    try:
                        data = source.recv(1 << 16)
                    except TimeoutError:
                        break
                    finally:
                        source.settimeout(None)
                    if not data:
                        return
                    opposite[source].sendall(data)
                    more = isinstance(source, ssl.SSLSocket) and source.pending() > 0


@pytest.fixture(scope="module", params=NAMES)
def server(
    request: pytest.FixtureRequest, require_server: RequireServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[UserServer]:
    require_server(request.param, {"mysql": "9.7", "mariadb": "10.11", "postgresql": "15"}[request.param])
    with user_server(request.param, tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.fixture
def middle(server: UserServer, tmp_path: Path) -> Iterator[Middle]:
    port = int(str(server.fields["port"]))
    with Middle(server.engine.name, port, tmp_path / "middle") as made:
        yield made


def url(server: UserServer, middle: Middle) -> str:
    return server.url_for(str(server.fields["user"]), middle.port)


def test_prove_sends_nothing_in_clear_after_a_rejected_certificate(
    tmp_path: Path, server: UserServer, middle: Middle
) -> None:
    done = ciphercost("prove", url(server, middle), *server.by_ca, cwd=tmp_path, **server.environment)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    assert "signed by an unknown authority" in said
    assert "ciphercost sent nothing unencrypted to the server" in said
    assert (middle.handshakes > 0, middle.in_clear) == (True, 0)


@pytest.mark.parametrize("client", [(), ("--client", "jdbc")], ids=["rust", "jdbc"])
def test_run_sends_nothing_in_clear_after_a_rejected_certificate(
    tmp_path: Path, server: UserServer, middle: Middle, client: tuple[str, ...]
) -> None:
    argv = ("run", f"{server.engine.name}:tls", "--url", url(server, middle), *server.by_ca, *client)
    argv = (*argv, "--quick", "--time", "4s", "--no-progress", "-o", "out")
    done = ciphercost(*argv, cwd=tmp_path, **server.environment)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    assert "certificate was rejected, so ciphercost sent nothing" in said or "signed by an unknown authority" in said, (
        said
    )
    assert (middle.handshakes > 0, middle.in_clear) == (True, 0)


def test_no_later_cell_of_the_run_sends_anything_in_clear(tmp_path: Path, server: UserServer, middle: Middle) -> None:
    cells = (f"{server.engine.name}:tls", f"{server.engine.name}:none")
    flags = ("--quick", "--time", "8s", "--no-progress", "-o", "out")
    done = ciphercost(
        "run", *cells, "--url", url(server, middle), *server.by_ca, *flags, cwd=tmp_path, **server.environment
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert (middle.handshakes > 0, middle.in_clear) == (True, 0)


def test_the_verdict_does_not_claim_verification_without_a_check(
    tmp_path: Path, server: UserServer, middle: Middle
) -> None:
    argv = ("prove", url(server, middle), "--set", "verify=require")
    done = ciphercost(*argv, cwd=tmp_path, **server.environment)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0, said  # the user asked for this
    assert "ENCRYPTED, proven" not in said
    assert "ENCRYPTED, but the server's identity was not verified: a man in the middle would look the same" in said


def test_a_run_warns_of_a_server_that_was_not_verified(tmp_path: Path, server: UserServer, middle: Middle) -> None:
    argv = ("run", f"{server.engine.name}:tls", "--url", url(server, middle), "--set", "verify=require")
    flags = ("--quick", "--time", "6s", "--no-progress", "--json", "out.json", "-o", "out")
    done = ciphercost(*argv, *flags, cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = json.loads((tmp_path / "out.json").read_text())["cells"][0]
    assert "server-not-verified" in {each["code"] for each in cell["warnings"]}
    assert "a man in the middle would look the same" in " ".join(done.stdout.split())


def test_an_unchecked_name_is_reported(tmp_path: Path, server: UserServer) -> None:
    argv = ("prove", server.url, *server.by_ca, "--set", "verify=ca")
    done = ciphercost(*argv, cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the server's name was not verified" in " ".join(done.stdout.split())
