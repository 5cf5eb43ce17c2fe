"""deferred_signals: keeps signals until a fork is over."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def signals_delayed() -> Iterator[None]:
    """Delay signals until the end of this block: Python would silently drop an exception that a handler raises during a
    fork.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = [each for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if callable(signal.getsignal(each))]
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in came:
            signal.raise_signal(number)
