"""Envoy, which forwards TCP connections and may end their TLS."""

from __future__ import annotations

from ciphercost.hops._envoy import EnvoyProgram


class Envoy(EnvoyProgram):
    name = "envoy"
    title = "Envoy"


HOP = Envoy()
