"""wire_crypt: Firebird's own encryption of the connection. One server for both arms; each connection says whether it is encrypted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ciphercost.engines import Engine
from ciphercost.mechanisms import Factor, Mechanism
from ciphercost.model.spec import Arm

PLUGINS = {"chacha64": "ChaCha64", "chacha": "ChaCha", "arc4": "Arc4"}
OP_CRYPT = b"\0\0\0\x60"
KEY = b"\0\0\0\x09Symmetric"
PADDING = b"[\0 ]"
"""Up to four bytes: by the server's own library of zeros, by Jaybird of spaces."""


class WireCrypt(Mechanism):
    name = "wire-crypt"
    title = "Firebird's wire encryption"
    layer = "transit"
    engines = ("firebird",)
    witnesses = ("server", "wire", "client")
    protects = (
        "data on the network: reading it between client and server; not changing it, and the server is not verified"
    )
    factors = (Factor("cipher", tuple(PLUGINS), "wire encryption plugin, the only one asked for"),)

    def promises(self, factors: Mapping[str, str]) -> dict[str, str]:
        return {"cipher": PLUGINS[factors["cipher"]]} if factors.get("cipher") else {}

    def connection(self, engine: Engine, arm: Arm, factors: Mapping[str, str], secrets: Path) -> dict[str, object]:  # noqa: ARG002
        """Only a cipher that is given is pinned, so that a server of the user's own may have any."""
        self.check(factors)
        if arm == "plain":
            return {"wire_crypt": "off"}
        given = [PLUGINS[factors["cipher"]]] if factors.get("cipher") else PLUGINS.values()
        return {"wire_crypt": "require", "wire_crypt_plugins": ",".join(given)}

    def sign(self, sent: bytes, received: bytes) -> tuple[bool, str]:
        """The packet op_crypt, and behind it bytes that are no packet any more."""
        for plugin in PLUGINS.values():
            name = plugin.encode()
            begin = re.escape(OP_CRYPT + len(name).to_bytes(4) + name) + PADDING * (-len(name) % 4)
            packet = re.search(begin + re.escape(KEY) + PADDING * (-len("Symmetric") % 4), sent)
            if packet is None:
                continue
            behind = sent[packet.end() :]
            if not behind or not received:
                return False, f"nothing follows the request to encrypt with {plugin}"
            # Every packet in clear begins with three zero bytes and an operation.
            if behind.startswith(b"\0\0\0"):
                return False, f"packets in clear follow the request to encrypt with {plugin}"
            return True, f"encrypted with {plugin} from byte {packet.end()} of {len(sent)} sent"
        return False, "no request to encrypt was sent"


MECHANISM = WireCrypt()
