"""What the abstract leaves open, and what this repetition can't have either. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ciphercost.model.result import Cell
from ciphercost.studies.pq_tls import ways

Ours = Mapping[tuple[str, str], Cell]
LIMITS = (
    'The abstract gives limits ("below 5 %", "under 15 %") and no interval. A limit that holds says neither how large a difference is nor whether there '
    "is one; a figure of its own has an interval here, and each limit is held against it."
)
TOGETHER = (
    "It gives one figure for ML-KEM and ML-DSA together. Here the key exchange alone has a row of its own: browsers and servers adopt it first, and "
    "what is left is the certificate's."
)
FIRST_BYTE = (
    "The abstract has 32 % for the time to the first byte; the eprint's abstract calls the same figure the handshake time. Beside it stands a file of 1 KB, "
    "whose last byte arrives with its first. It also contains the TCP connection and the request, so its percentage is lower than a handshake's."
)
CONGESTION = (
    "It also says that the slowdown drops below 10 % at 200 KiB even when congestion control affects the connection. That is not repeated: here a relay adds "
    "the delay, so a sender's congestion window opens as fast as on the bare link, and an answer of many packets waits for fewer round trips than over "
    "a real long path. Lossy links are not repeated either."
)
UNPROVEN = (
    "Nothing in the abstract says that a connection was checked for what it negotiated. Here the client's library names group and key of each, the process "
    "witness names the server's OpenSSL, and a capture shows that no file crosses the link in clear."
)
ONE_MACHINE = (
    "The published time is one client's, on an idle server. How many handshakes a busy server still makes is another question; `--workload connect` "
    "with many clients answers it."
)


def findings(ours: Ours) -> list[str]:
    """Findings of a few sentences each."""
    return [each for each in (LIMITS, size(ours), TOGETHER, FIRST_BYTE, CONGESTION, UNPROVEN, ONE_MACHINE) if each]


def size(ours: Ours) -> str:
    """How many more bytes the post-quantum handshake has here, and how long they take over the slow link."""
    said = []
    for (group, way), cell in ours.items():
        reference = ours.get((group, ways.REFERENCE))
        if way != ways.BOTH or reference is None or "1KB" not in group or not (cell.overhead and reference.overhead):
            continue
        extra = cell.arms["encrypted"]["wire_bytes_per_op"] - reference.arms["encrypted"]["wire_bytes_per_op"]
        said.append(extra)
    if not said:
        return ""
    return (
        f"ML-KEM and ML-DSA add {said[-1] / 1e3:.1f} KB to a connection here, whatever the file: a percentage of the time to the last byte falls with "
        "the file's size and rises with a link's slowness, and says more about both than about the algorithms."
    )
