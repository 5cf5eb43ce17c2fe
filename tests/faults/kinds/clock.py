"""The machine's clock is set while a run goes on, as a time service does after a long wait: every process sees it."""

from __future__ import annotations

import os
import time
from functools import partial

from faults.world import WHILE, Fault, Going

STEP = 3600.0
"""Seconds; certificates of a run are valid from an hour before it."""


def stepped(by: float, _: Going) -> bool:
    began, right = time.monotonic(), time.time()
    time.clock_settime(time.CLOCK_REALTIME, right + by)
    try:
        time.sleep(WHILE)
    finally:
        time.clock_settime(time.CLOCK_REALTIME, right + time.monotonic() - began)
    return True


def may_be_set(_: str) -> bool:
    return os.geteuid() == 0


FAULTS = (
    Fault("clock an hour ahead for 2 s", partial(stepped, STEP), suits=may_be_set, alone=True),
    Fault("clock an hour behind for 2 s", partial(stepped, -STEP), suits=may_be_set, alone=True),
)
