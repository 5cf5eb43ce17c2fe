"""A process that may use little more memory than Python itself needs, to show that an input can't fill it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MOST = 400 << 20
"""Bytes of address space: what Python and the libraries that it has loaded need, and about 200 MB."""
BEGIN = """
import resource, sys
from pathlib import Path
from ciphercost.model.errors import UsageError
{imports}
resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))
try:
    {code}
except UsageError as error:
    print(error)
"""


def run(code: str, *args: Path, imports: str = "", most: int = MOST) -> str:
    """Run a line of Python with these arguments, and return what it prints, or the words of the UsageError that it raises."""
    script = BEGIN.format(imports=imports, code=code, most=most)
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
