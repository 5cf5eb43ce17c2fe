"""socket_memory: memory that the kernel holds for TCP sockets. Reads /proc/net/sockstat.

It counts buffers with data in them, of both ends of every connection of the machine, in pages. The fixed part of a socket (about 3 kB for
each end) is not in it; it is the same for encrypted connections and others.
"""

from __future__ import annotations

import os
from pathlib import Path

SOCKSTAT = Path("/proc/net/sockstat")
PAGE = os.sysconf("SC_PAGE_SIZE")


def tcp_bytes(path: Path = SOCKSTAT) -> int:
    """Bytes of all TCP socket buffers of this machine; 0 if the kernel does not say."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if name == "TCP" and "mem" in words[:-1]:
            return int(words[words.index("mem") + 1]) * PAGE
    return 0
