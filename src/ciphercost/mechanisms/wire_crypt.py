"""Firebird's own wire encryption. One server serves both arms; each connection chooses whether it is encrypted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ciphercost.engines import Engine
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model.connection import Changes
from ciphercost.model.spec import Arm

PLUGINS = {"chacha64": "ChaCha64", "chacha": "ChaCha", "arc4": "Arc4"}
OP_CRYPT = b"\0\0\0\x60"
KEY = b"\0\0\0\x09Symmetric"
PADDING = b"[\0 ]"
"""Up to four bytes: zeros from the server's own client library, spaces from Jaybird."""


class WireCrypt(Mechanism):
    name = "wire-crypt"
    title = "Firebird's wire encryption"
    layer = "transit"
    engines = ("firebird",)
    decided_settings = MappingProxyType({"wirecryptplugin": "cipher", "wirecrypt": ""})
    witnesses = ("server", "wire", "client")
    protects = "data on the network from being read between client and server; not from being changed, and the client does not verify the server"
    factors = (
        Factor(
            "cipher", tuple(PLUGINS), "wire encryption plugin, the only one that the client offers", acts="operation"
        ),
    )

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:
        return {"cipher": PLUGINS[factors["cipher"]]} if factors.get("cipher") else {}

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> Changes:  # noqa: ARG002
        """Pin the cipher only if it is given, so that a server you already run may use any."""
        self.check(factors)
        if arm == "plain":
            return {"wire_crypt": "off"}
        given = [PLUGINS[factors["cipher"]]] if factors.get("cipher") else PLUGINS.values()
        return {"wire_crypt": "require", "wire_crypt_plugins": ",".join(given)}

    def sign(self, sent: bytes, received: bytes) -> tuple[bool, str]:
        """Look for the packet op_crypt, followed by bytes that are no longer packets."""
        for plugin in PLUGINS.values():
            name = plugin.encode()
            begin = re.escape(OP_CRYPT + len(name).to_bytes(4) + name) + PADDING * (-len(name) % 4)
            packet = re.search(begin + re.escape(KEY) + PADDING * (-len("Symmetric") % 4), sent)
            if packet is None:
                continue
            behind = sent[packet.end() :]
            if not behind or not received:
                return False, f"nothing follows the request to encrypt with {plugin}"
            # Every unencrypted packet begins with three zero bytes and an operation.
            if behind.startswith(b"\0\0\0"):
                return False, f"unencrypted packets follow the request to encrypt with {plugin}"
            return True, f"encrypted with {plugin} from byte {packet.end()} of {len(sent)} sent"
        return False, "the client sent no request to encrypt"


MECHANISM = WireCrypt()
