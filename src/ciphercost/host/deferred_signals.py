"""deferred_signals: keeps signals until a fork is over, and SIGTERM until a finished run is written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Self


@contextlib.contextmanager
def signals_delayed() -> Iterator[None]:
    """Delay signals until the end of this block: Python would silently drop an exception that a handler raises during a
    fork.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = [
        number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if callable(signal.getsignal(number))
    ]
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
        for number in came:
            signal.raise_signal(number)


class Termination:
    """Within it SIGTERM does not end the process, because what was measured is still to be written and printed."""

    def __init__(self) -> None:
        self._came = self._cuttable = False

    def __enter__(self) -> Self:
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, _number: int, _frame: object) -> None:
        self._came = True
        if self._cuttable:
            self._cuttable = False
            raise _Cut

    @contextlib.contextmanager
    def cuts(self) -> Iterator[bool]:
        """A part that SIGTERM cuts short. Yields whether it came before; then the part is better left out."""
        with contextlib.suppress(_Cut):
            self._cuttable = not self._came
            yield self._came
        self._cuttable = False


class _Cut(BaseException):
    """SIGTERM came. Like KeyboardInterrupt no error, so that nothing on the way handles it as one."""
