"""perf_text: reads what `perf script` prints: samples with their stacks. Pure.

A sample is a line with process and time, then a line per frame, innermost first, then an empty line:

    nginx 3197/3197 12345.678901234:
            ffffffff8200ec5b tcp_sendmsg ([kernel.kallsyms])
                      104875 write (/usr/lib/x86_64-linux-gnu/libc.so.6)

Everything else, such as perf's warnings, is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ciphercost.model.profile import KERNEL, NAMELESS, SEPARATOR

_HEAD = re.compile(r"^\s*(\S.*?)\s+(-?\d+)/(-?\d+)\s+(?:\[\d+\]\s+)?(\d+)\.(\d{1,9}):\s*(.*)$")
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.+?)(?:\+0x[0-9a-f]+)? \((.*)\)\s*$")
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?.*?\blost\s+(\d+)")
_FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")
"""Child and parent."""
_SUFFIX = re.compile(r"(?:\.(?:isra|part|constprop|cold|llvm|lto_priv)(?:\.\d+)*|@@?[A-Za-z_][\w.]*|::h[0-9a-f]{16})+$")
_JIT = re.compile(r"/(?:perf-\d+\.map|jitted-\d+-\d+\.so)$")
NOWHERE = f"memory{SEPARATOR}{NAMELESS}"
"""The frame of an address outside of every file, in code that was compiled at run time, or none at all."""
_JAVA = re.compile(r"^(?:\S+ )*([\w.$<>/-]+)\(.*$")
"""The method in a signature: `void com.sun.crypto.provider.AESCrypt.init(boolean, byte[])`."""
LONGEST = 120
"""Longest symbol, in characters: names of templates and lambdas can fill pages."""
DEEPEST = 96
"""Frames of a stack that are kept, from the inside."""
ROOTS = frozenset(
    {
        "_start",
        "__libc_start_main",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "start_thread",
        "thread_start",
        "ret_from_fork",
        "ret_from_fork_asm",
        "std::sys::backtrace::__rust_begin_short_backtrace",
    }
)


class Sample(NamedTuple):
    """One sample."""

    process: str
    """Name of the process or thread, at most 15 characters."""
    pid: int
    at_ns: int
    """On CLOCK_MONOTONIC."""
    frames: tuple[str, ...]
    """`LIBRARY`SYMBOL`, innermost first; neighbours without a name in the same library are one frame."""

    @property
    def whole(self) -> bool:
        """Whether the stack reaches the start of its thread. There the C library's functions have no name in stripped builds."""
        if not self.frames:
            return False
        library, _, symbol = self.frames[-1].partition(SEPARATOR)
        return symbol in ROOTS or library.startswith(("libc.so", "libc-", "libpthread", "ld-linux", "ld-musl"))


class Forked(NamedTuple):
    """A process that another one started."""

    parent: int
    child: int


class Lost(NamedTuple):
    """Samples that perf could not keep."""

    samples: int


def read(lines: Iterable[str]) -> Iterator[Sample | Lost | Forked]:
    """The samples, in the order of the text, and what else is needed to count them."""
    head: tuple[str, int, int] | None = None
    frames: list[str] = []
    for line in lines:
        if head is not None and (match := _FRAME.match(line)):
            frame = name(match[3], match[2])
            if not (frames and frames[-1] == frame and frame.endswith(SEPARATOR + NAMELESS)) and len(frames) < DEEPEST:
                frames.append(frame)
            continue
        if head is not None:
            yield _sample(head, frames)
            head, frames = None, []
        if lost := _LOST.search(line):
            yield Lost(int(lost[1]))
        elif forked := _FORK.search(line):
            if forked[1] != forked[2]:  # otherwise a thread
                yield Forked(int(forked[2]), int(forked[1]))
        elif (match := _HEAD.match(line)) and "PERF_RECORD" not in match[6]:
            head = match[1], int(match[2]), int(match[4]) * 10**9 + int(match[5].ljust(9, "0"))
    if head is not None:
        yield _sample(head, frames)


def with_descendants(pids: Iterable[int], read_: Iterable[Sample | Lost | Forked]) -> set[int]:
    """These processes, and those that they and their children started."""
    family = set(pids)
    for record in read_:
        if isinstance(record, Forked) and record.parent in family:
            family.add(record.child)
    return family


def _sample(head: tuple[str, int, int], frames: list[str]) -> Sample:
    """Without what the unwinder takes for callers beyond the thread's start: addresses outside of every file."""
    while len(frames) > 1 and frames[-1] == NOWHERE:
        frames.pop()
    return Sample(*head, tuple(frames))


def name(place: str, symbol: str) -> str:
    """`LIBRARY`SYMBOL` of a frame: the file without its directory, the symbol without what compilers append to it."""
    library = place.removesuffix(" (deleted)").rsplit("/", 1)[-1]
    if place.startswith(("[kernel", "[guest.kernel")):
        library = KERNEL
    elif _JIT.search(place):
        library = "JIT"
    elif place.startswith("[") and place.endswith("]") and "/" not in place and place not in ("[unknown]", "[vdso]"):
        library = f"{KERNEL} {place}"  # a module
    elif place in ("[unknown]", "//anon", "") or not library:
        library = "memory"
    if library == "JIT":
        symbol = _JAVA.sub(r"\1", symbol)
    if symbol in ("[unknown]", ""):
        symbol = NAMELESS
    else:
        symbol = _SUFFIX.sub("", symbol) or symbol
    return f"{_plain(library)}{SEPARATOR}{_plain(symbol)}"


def _plain(text: str) -> str:
    """One line without the characters that have a meaning in a folded stack."""
    kept = "".join(letter if letter.isprintable() and letter not in ";`" else " " for letter in text)
    return kept if len(kept) <= LONGEST else kept[: LONGEST - 1] + "…"
