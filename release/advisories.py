"""Ask pip-audit for known vulnerabilities of the packages in a lock. Run by `make audit`.

Exit status 0: none is known. 1: one is known, or pip-audit failed. 3: the package index answered for no package, as where only
a mirror without that service can be reached; pip-audit itself ends with 0 then.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

NONE_KNOWN, KNOWN, NO_ANSWER = 0, 1, 3


def status(answer: str) -> tuple[int, list[str]]:
    """The exit status, and lines to print, for what `pip-audit -f json` printed. Raises ValueError if that is no answer."""
    packages: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    lines = [
        f"{each['name']} {each['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no version'}"
        for each in packages
        for found in each.get("vulns", [])
    ]
    if lines:
        return KNOWN, lines
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    if len(unknown) == len(packages):
        return NO_ANSWER, []
    # A few packages without an answer are as good as a missing check.
    return (KNOWN, [f"{name}: the package index has no answer" for name in unknown]) if unknown else (NONE_KNOWN, [])


def main(lock: str) -> int:
    # The lock has every package in one version with its hashes: nothing is left to resolve, and pip is not needed.
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--format", "json", "-r", lock]
    done = subprocess.run([*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    try:
        code, lines = status(done.stdout)
    except (ValueError, KeyError):
        offline = re.search(r"^requests\.exceptions\.\w+|ConnectionError|Could not connect", done.stderr, re.MULTILINE)
        code, lines = (NO_ANSWER, []) if offline else (KNOWN, [done.stderr.strip()])
    print("\n".join(lines), end="\n" if lines else "")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
