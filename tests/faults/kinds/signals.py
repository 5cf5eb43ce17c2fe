"""Signals from the terminal."""

from __future__ import annotations

import signal
from functools import partial

from faults.world import Fault, Going, send


def sent(number: signal.Signals, going: Going) -> bool:
    return send(going.controllers(), number)


FAULTS = (
    Fault("Ctrl-C", partial(sent, signal.SIGINT)),
    Fault("Ctrl-C twice", partial(sent, signal.SIGINT), times=2),
    Fault("hang-up (SIGHUP)", partial(sent, signal.SIGHUP)),
    Fault("SIGTERM", partial(sent, signal.SIGTERM)),
)
