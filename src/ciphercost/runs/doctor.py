"""doctor: what this machine has and lacks for measuring. Facts and advice as data; the command line prints them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ciphercost import engines
from ciphercost.host import aes, debian, idle, leftovers, link, programs, supervisor, tools
from ciphercost.host.marks import cgroup_parents, scratch_base
from ciphercost.host.volumes import fuse, image, policy
from ciphercost.load import agent
from ciphercost.load.jdbc import java
from ciphercost.model import run_directory
from ciphercost.model.errors import CiphercostError, MissingServer
from ciphercost.model.version import VERSION
from ciphercost.report.layout import wrap
from ciphercost.runs import versions

State = Literal["ok", "warn", "missing"]
Check = tuple[str, State, str]

ENOUGH_DISK = 5 * 2**30


def checks() -> list[Check]:
    """(what, how it stands, what was found or what to do) in the order in which things are needed."""
    return [
        _python(),
        *_agent(),
        _aes(),
        _cores(),
        _governor(),
        _idle(),
        _clock(),
        _cgroups(),
        _user(),
        _disk(),
        _link(),
        *_programs(),
        _java(),
        _debian(),
        _apt(),
        _fscrypt(),
        _fuse(),
        *_engines(),
        _leftovers(),
    ]


def _python() -> Check:
    return "python", "ok", f"{platform.python_version()} ({sys.executable})"


def _agent() -> Iterator[Check]:
    try:
        path = agent.find()
    except CiphercostError as error:
        yield "agent", "missing", str(error)
        return
    try:
        hello = versions.answers(path)[0]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield "agent", "missing", f"{path} does not answer ({error}). {agent.how_to_install()}"
        return
    if hello.get("type") != "hello":
        yield "agent", "missing", f"{path} refuses: {hello.get('text')}. {agent.how_to_install()}"
        return
    if hello["version"] != VERSION:
        other = f"{path} is version {hello['version']}, and ciphercost is {VERSION}"
        yield "agent", "warn", f"{other}: use equal versions. {agent.how_to_install()}"
    yield "agent", "ok", f"{hello['agent']} {hello['version']} ({path}), speaks {hello['drivers']}"
    yield "client's TLS library", "ok", str(hello["tls_library"])


def _java() -> Check:
    try:
        found = java.find()
    except MissingServer as error:
        return "java", "warn", f"{error} Only --client jdbc needs it."
    return "java", "ok", f"Java {java.version(str(found))} ({found}), for --client jdbc"


def _aes() -> Check:
    flags: set[str] = set()
    for line in _text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags = set(value.split())
            break
    found = [name for name in ("aes", "pclmulqdq", "vaes", "vpclmulqdq", "pmull", "sha2") if name in flags]
    if "aes" in flags:
        return "AES instructions", "ok", ", ".join(found)
    return (
        "AES instructions",
        "warn",
        "this processor has none (or hides them): AES costs many times more here than elsewhere",
    )


def _cores() -> Check:
    count = len(os.sched_getaffinity(0))
    if count < 2:
        return "cores", "warn", "1: server and client share it, so the client's cost is part of every number"
    text = f"{count}"
    if count < 4:
        return "cores", "ok", f"{text}: enough for one client core beside one server core"
    return "cores", "ok", text


def _governor() -> Check:
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    if not governor:
        return "frequency governor", "ok", "none to be seen (a virtual machine has none)"
    if governor == "performance":
        return "frequency governor", "ok", governor
    advice = "the clock follows the load, which adds noise; for the run: cpupower frequency-set -g performance"
    return "frequency governor", "warn", f"{governor}: {advice}"


def _idle() -> Check:
    cpus = os.sched_getaffinity(0)
    if reason := idle.obstacle(cpus, cpus):
        return "idle cores", "warn", f"they halt, which adds wake-ups to the server's CPU time: {reason}"
    return "idle cores", "ok", "they are kept from halting while load is made"


def _clock() -> Check:
    source = _text("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    if source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        return "clock source", "ok", source
    return (
        "clock source",
        "warn",
        f"{source or 'unknown'}: reading the time may cost a system call, which adds to every operation",
    )


def _cgroups() -> Check:
    parents = cgroup_parents()
    if parents:
        return "control groups", "ok", f"the server's CPU time is counted exactly, in {parents[0]}"
    text = (
        "none may be made here: the server's CPU time is added up from its processes, and short-lived ones are missed"
    )
    return "control groups", "warn", text


def _user() -> Check:
    if os.geteuid() == 0:
        return "user", "ok", "root: servers run as 'nobody'"
    return "user", "ok", "not root: servers run as you; no file system can be mounted"


def _disk() -> Check:
    base = scratch_base()
    place = next(path for path in (base, *base.parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / 2**30:.1f} GiB free for scratch in {base}"
    if not os.access(place, os.W_OK):
        return "disk", "missing", f"{place} can't be written to. Set CIPHERCOST_SCRATCH to a directory of your own."
    if free < ENOUGH_DISK:
        return "disk", "warn", f"{text}. Large runs need more: set CIPHERCOST_SCRATCH to a larger disk."
    return "disk", "ok", text


def _link() -> Check:
    try:
        link.check_rights()
    except CiphercostError as error:
        return "link of --bandwidth, --mtu", "warn", str(error)
    return "link of --bandwidth, --mtu", "ok", "can be made"


def _programs() -> Iterator[Check]:
    """One line for each program that is missing, and one for all that are there."""
    for each in programs.PROGRAMS:
        if not each.found():
            yield each.name, "warn", each.missing()
    if found := [each.found() for each in programs.PROGRAMS if each.found()]:
        yield "programs", "ok", ", ".join(found)


def _debian() -> Check:
    if reason := debian.debian_possible():
        return "debian", "warn", f"servers can't be fetched from Debian's suites: {reason}"
    try:
        debian.mirror()
    except CiphercostError as error:
        return "debian", "warn", str(error)
    client = "mmdebstrap" if debian.mmdebstrap_possible() else "apt-get, without root"
    return "debian", "ok", f"servers can be fetched from the Debian mirror that apt uses, by {client}"


def _apt() -> Check:
    if reason := debian.apt_possible():
        return "apt", "warn", f"servers of this system's own release can't be fetched: {reason}"
    return "apt", "ok", f"servers of this system's own release ({debian.release()}) can be fetched, without root"


def _fscrypt() -> Check:
    name = "fscrypt"
    try:
        image.check_rights()
        with supervisor.Guard(run_directory.new_id()) as made:
            place = supervisor.scratch(made.run_id, made) / "try"
            with image.mounted(made, place, 0):
                (place / "directory").mkdir()
                mode = policy.MODES["aes-256-xts"]
                policy.make(place / "directory", mode, policy.add_key(place, os.urandom(policy.KEY_BYTES)))
                if reason := policy.why_no_file(place / "directory"):
                    return name, "warn", f"no file can be made with {mode.words}: {reason}"
    except CiphercostError as error:
        return name, "warn", str(error)
    used = aes.kernel(mode.kernel)
    return name, "warn" if used.warning() else "ok", f"loop device and policy work; {used.warning() or used.words()}"


def _fuse() -> Check:
    try:
        fuse.check_rights()
        found = tools.tool("gocryptfs", fetch=False)
    except MissingServer:
        if reason := debian.debian_possible():
            return "gocryptfs", "warn", f"not found, and can't be fetched: {reason}"
        return "gocryptfs", "ok", "will be fetched from Debian when it is first needed"
    except CiphercostError as error:
        return "gocryptfs", "warn", str(error)
    return "gocryptfs", "ok", str(found)


def _engines() -> Iterator[Check]:
    for name in engines.names():
        if engines.get(name).foreign:
            continue
        try:
            found = list(engines.get(name).available())
        except CiphercostError as error:
            yield name, "warn", str(error)
            continue
        if not found:
            yield name, "warn", f"none found. `ciphercost install {name}` fetches one."
        for each in found:
            version = f"{each.version} " if each.version else ""
            yield name, "ok", f"{version}from {each.source}: {each.location}"


def _leftovers() -> Check:
    try:
        found = leftovers.leftovers()
    except CiphercostError as error:
        return "leftovers", "warn", str(error)
    if not found:
        return "leftovers", "ok", "none"
    return "leftovers", "warn", f"{len(found)} of runs that were killed; `ciphercost clean` removes them"


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def doctor() -> str:
    """Everything the machine has or lacks, one line each."""
    marks = {"ok": "ok     ", "warn": "mind   ", "missing": "MISSING"}
    return "\n".join(
        line for name, state, text in checks() for line in wrap(f"{marks[state]} {name}: {text}", "", " " * 8)
    )
