"""Any web server you already run, named by two URLs: http:// for the plain arm, https:// for the encrypted one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from ciphercost.engines import Server, StartRequest
from ciphercost.engines._network import YOURS
from ciphercost.engines._web import advice
from ciphercost.engines._web.answer import Answer, request_ok
from ciphercost.engines._web.family import http_fields
from ciphercost.engines._web.stub_status import StubStatus
from ciphercost.engines.capabilities.load_counters import CountsLoad
from ciphercost.engines.capabilities.tls import HasTls
from ciphercost.engines.capabilities.url import TakesUrl
from ciphercost.host.installation import Installation
from ciphercost.host.ports import address_of, crypto_library, is_loopback, sole_listener
from ciphercost.host.standing import Standing
from ciphercost.load import headers
from ciphercost.load.plaintext_guard import refuses_certificate, wants_certificate
from ciphercost.model.connection import Changes, Connection
from ciphercost.model.errors import AgentError, MissingServer, UsageError
from ciphercost.model.spec import Arm
from ciphercost.model.url import split

if TYPE_CHECKING:
    from ciphercost.host.pki import Pki
    from ciphercost.host.supervisor import Supervisor
    from ciphercost.load.agent import Agent
    from ciphercost.load.load_client import LoadClient

PORTS = {"http": 80, "https": 443}
AGENT = "ciphercost"
"""The agent's User-Agent header, which appears unencrypted on the wire in the plain arm."""
ENFORCED = ("connect", "status-403", "status-426", "closed-early", "malformed")
"""How a server that requires TLS may answer an unencrypted request, while it accepts the encrypted arm."""
REDIRECTS = (301, 302, 303, 307, 308)


class Address(NamedTuple):
    """One URL."""

    scheme: str
    shown: str
    """The host as people write it."""
    host: str
    port: int
    authority: str
    path: str
    """Including the query."""


def pair(url: str) -> tuple[Address, Address]:
    """Split one or two URLs, separated by a space, into (plain, encrypted). Raises UsageError.

    If one is missing, it is the same place with the other scheme.
    """
    by_scheme: dict[str, Address] = {}
    for one_url in url.split():
        address = _address(one_url)
        if address.scheme in by_scheme:
            raise UsageError(f"--url: two URLs with {address.scheme}://; give one http:// and one https:// URL")
        by_scheme[address.scheme] = address
    if not by_scheme:
        raise UsageError("url:tls measures a web server you already run: give --url http://… --url https://…")
    known = next(iter(by_scheme.values()))
    return by_scheme.get("http") or _in_clear(known), by_scheme.get("https") or known._replace(scheme="https")


def _in_clear(encrypted: Address) -> Address:
    """Return where people arrive who leave out the `s` of https://."""
    if encrypted.port != PORTS["https"]:
        return encrypted._replace(scheme="http")
    return encrypted._replace(scheme="http", port=PORTS["http"])


def _address(url: str) -> Address:
    parts = split(url)
    port = parts.port
    if parts.username or parts.password is not None:
        raise UsageError(
            "--url holds a user or a password, which every user of this machine can read in the process list: leave both out, and put "
            "'Authorization: Basic …' into a file that you name with --header @FILE"
        )
    if parts.fragment:
        raise UsageError(
            f"--url {url}: no client sends #{parts.fragment} to a server, which answers with the same page; remove it"
        )
    try:
        name = (parts.hostname or "").encode("idna").decode()
    except ValueError:
        raise UsageError(f"--url {url}: the host's name has characters that no host has") from None
    if parts.scheme not in PORTS or not name or port == 0:
        raise UsageError(
            f"--url {url}: not a web address; write http://HOST/… or https://HOST/…, with :PORT unless it is the default port"
        )
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    host = f"[{name}]" if ":" in name else name
    actual_port = port or PORTS[parts.scheme]
    return Address(
        parts.scheme,
        parts.hostname or "",
        name,
        actual_port,
        host if actual_port == PORTS[parts.scheme] else f"{host}:{actual_port}",
        path + (f"?{parts.query}" if parts.query else ""),
    )


class PairedServer(Server):
    """A web server you already run, reached by both its addresses."""

    def __init__(self, url: str) -> None:
        self._plain, encrypted = pair(url)
        self._address = address_of(self._plain.host, self._plain.port)
        other = address_of(encrypted.host, encrypted.port)
        places = [(self._address, self._plain.port), (other, encrypted.port)]
        if url.lower().startswith("https:") and len(url.split()) == 1:
            del places[0]  # nobody has said that the site has an unencrypted port
        self.pid = sole_listener(places)
        self.library = crypto_library(self.pid) if self.pid else ""
        self.standing = Standing(YOURS, self.pid) if self.pid else None
        # A person named it, or the host is this machine.
        named_in_clear = any(one_url.partition(":")[0].lower() == "http" for one_url in url.split())
        self.takes_headers_in_clear = named_in_clear or is_loopback(self._address)
        changes = _fields(encrypted, other)
        if other != encrypted.host:
            changes["tls_server_name"] = encrypted.host
        self.other_ports = {"tls": changes}

    def connection(self) -> Connection:
        return Connection(driver="http") | _fields(self._plain, self._address)

    def stop(self) -> None:
        """Do nothing: ciphercost did not start this server."""


def _fields(of: Address, address: str) -> Changes:
    return {"host": address, "port": of.port, "authority": of.authority, "path": of.path}


class Url(HasTls, TakesUrl, CountsLoad):
    counter_reader = StubStatus
    counted_programs = ("nginx",)
    counted_title = "nginx"
    measured_as = ("nginx", "url")
    name = "url"
    title = "web server"
    driver = "http"
    dialect = "http"
    language = "http"
    usual_workload = "page"
    foreign = True
    loads = False
    urls = 2
    tls_resumption = ("on",)
    no_old_tls = ""
    tls_weak_keys = True
    mute = ("server",)
    schemes = MappingProxyType({"https": "tls", "http": "tls"})
    refuses_clear = (*ENFORCED, *(f"status-{status}-https" for status in REDIRECTS))

    def available(self) -> Iterable[Installation]:
        return ()

    def find(self, version: str = "", *, url: str = "", bindir: str = "") -> Installation:
        self.check_url(url)
        self.check_factors("", {}, version or bindir)
        return Installation(self.name, "", "running", url)

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: ARG002
        if version:
            raise UsageError(
                "url: ciphercost can't choose the server behind an address: leave version and --bindir out"
            )

    def check_url(self, url: str) -> None:
        pair(url)

    def check_pair(self, url: str) -> None:
        schemes = {_address(one_url).scheme for one_url in url.split()}
        if missing := [scheme for scheme in PORTS if scheme not in schemes]:
            raise UsageError(
                f"--url {missing[0]}://… is missing: url:tls compares an unencrypted page with the same page encrypted, "
                "so it needs both addresses; `ciphercost prove` and --versus need one"
            )

    def install(self, version: str = "", source: str = "") -> Installation:  # noqa: ARG002
        raise MissingServer("url has nothing to install: give --url http://… --url https://…, or use nginx or apache")

    def initialise(
        self,
        installation: Installation,
        directory: Path,
        supervisor: Supervisor,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing to create."""

    def start(self, request: StartRequest) -> Server:
        return self.running(request.installation.location)

    def running(self, url: str) -> Server:
        return PairedServer(url)

    def tls_settings(self, pki: Pki, factors: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return nothing: the server's TLS is configured already."""
        return {}

    def hint(self, code: str, text: str = "") -> str:
        if wants_certificate(text) or refuses_certificate(text):
            return super().hint(code, text)
        return advice.of_code(code) or (super().hint(code) if code == "connect" else "")

    def advice(self, url: str, agent: LoadClient, arm: Arm, connection: Connection, error: AgentError) -> str:
        if wants_certificate(str(error)) or refuses_certificate(str(error)):
            return self.hint(error.code, str(error))
        plain, encrypted = pair(url)
        both = {"plain": plain, "encrypted": encrypted}
        return advice.of(
            agent,
            arm,
            connection,
            error,
            {of: f"{address.scheme}://{address.authority}{address.path}" for of, address in both.items()},
        )

    def no_control(self, url: str, code: str) -> str:
        plain, encrypted = pair(url)
        if (plain.host, plain.port) != (encrypted.host, encrypted.port) or code.endswith("-https"):
            return ""
        return (
            f"Port {plain.port} takes TLS, so an unencrypted request to it is no control and says nothing about the site's http address. "
            f"To check that one too, name it: ciphercost prove http://{plain.authority.partition(':')[0]}:PORT{plain.path} {url}"
        )

    def called(self, url: str) -> str:
        return pair(url)[1].shown

    def workload_fields(
        self,
        version: str,  # noqa: ARG002
        parameters: Mapping[str, int | str],
        *,
        encrypted: bool,
    ) -> Changes:
        return http_fields(parameters, encrypted=encrypted)

    def greet(self, agent: Agent, arm: str) -> str:
        return request_ok(agent, arm, "GET").server

    def echo(self, text: str) -> str:  # noqa: ARG002
        return "GET"

    def echoed(self, rows: list[list[str | None]], text: str) -> tuple[str, str]:  # noqa: ARG002
        """There is no canary on this server.

        Sent: the agent's own name; received: a stretch of the page that came in one piece, or else words of the response's head.
        """
        answer = Answer.of(rows[0])
        if not answer.succeeded:
            return "", ""
        stretch = re.search(r"[!-~]{8}[ -~]{8,56}", answer.stretch) or re.search(r"[ -~]{8,64}", answer.stretch)
        return AGENT, stretch[0] if stretch else answer.server or answer.type

    def said(self, connection: Connection) -> str:
        return headers.named("user-agent", connection)


ENGINE = Url()
"""Its version is what the server states in its answers."""
