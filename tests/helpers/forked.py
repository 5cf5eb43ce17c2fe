"""What a process that forks for each command does: import everything once, and end each fork like Python, but sooner."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import pkgutil
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn


def import_everything() -> None:
    """Every module of ciphercost."""
    import ciphercost

    # A missing package must not be hidden here: tests/repository/test_wheel.py imports the same modules without those of development.
    for each in pkgutil.walk_packages(ciphercost.__path__, "ciphercost."):
        if not each.name.endswith("__main__"):
            importlib.import_module(each.name)


def leave(main: Callable[[], NoReturn]) -> NoReturn:
    """Call it and exit like Python, but without freeing memory: tearing down all modules is most of a short command's work."""
    try:
        main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        status = 1
    for each in threading.enumerate():
        if each is not threading.current_thread() and not each.daemon:
            each.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError, OSError):  # closed, or nobody reads it
            stream.flush()
    os._exit(status)
