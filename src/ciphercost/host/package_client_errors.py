"""package_client_errors: extracts the lines that name the cause from a package client's output. Pure."""

from __future__ import annotations

import re

TELLING = (re.compile(r"^(?:E:|\[ERROR\])"), re.compile(r"^(?:Err|W):|error|cannot|failed|no space", re.IGNORECASE))
"""Lines of package clients that show why they failed, best first."""
NOISE = re.compile(
    r"^\[ERROR\] (?:\[Help|To see the full|Re-run Maven|For more information)|^\[ERROR\]$|mmdebstrap failed to run|^E: Some index"
)
MOST_LINES = 4
LONGEST = 400
UNTRUSTED = "Java does not trust that server's certificate (Debian: apt-get install --reinstall ca-certificates-java)"


def decisive(output: str) -> str:
    """The lines of a package client's output that show why it failed. Pure.

    Maven names the failed step first, and the cause last, in the innermost exception.
    """
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines() if line.strip()]
    hint = f"\n{UNTRUSTED}" if "trustAnchors" in output or "PKIX" in output else ""
    if causes := [line for line in lines if line.startswith("Caused by: ")]:
        return _cut(re.sub(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?", "", causes[-1])) + hint
    kept_lines = [_cut(line.removesuffix(" -> [Help 1]")) for line in lines if not NOISE.search(line)]
    for pattern in TELLING:
        if telling := dict.fromkeys(line for line in kept_lines if pattern.search(line)):
            return "\n".join([*telling][:MOST_LINES]) + hint
    return "\n".join(kept_lines[-MOST_LINES:])


def _cut(line: str) -> str:
    """Shorten a long line in the middle: its start shows what failed, its end shows why."""
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 3]} … {line[-LONGEST * 2 // 3 :]}"
