"""`python own_server.py ENGINE PORT CA FILE ARGUMENT…`: ciphercost with these arguments, where connections with TLS to a
server that it starts go to PORT and must trust CA (empty: the server's own). FILE gets the server's own port.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ciphercost import engines
from ciphercost.commands import main


def redirect(start: Callable[..., Any], port: int, ca: str, kept: Path) -> Callable[..., Any]:
    def redirected(*arguments: Any, **named: Any) -> Any:
        server = start(*arguments, **named)
        if "tls" in server.other_ports:
            kept.write_text(str(server.other_ports["tls"]["port"]))
            server.other_ports["tls"] = {"port": port} | ({"tls_ca": ca} if ca else {})
        return server

    return redirected


if __name__ == "__main__":
    name, port, ca, kept, *arguments = sys.argv[1:]
    engine = engines.get(name)
    engine.start = redirect(engine.start, int(port), ca, Path(kept))  # type: ignore[method-assign]
    sys.argv = ["ciphercost", *arguments]
    main()
