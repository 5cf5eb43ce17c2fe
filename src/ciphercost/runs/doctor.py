"""Checks of this machine: what it has and lacks for measuring, with advice. `doctor` formats them as text."""

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
from ciphercost.host import aes, confinement, cpu_quota, debian, idle, leftovers, link, programs, supervisor, tools
from ciphercost.host.run_ownership import cgroup_parents, scratch_base
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
    """(subject, state, what was found or what to do), in the order in which a run needs them."""
    return [
        _python(),
        *_agent(),
        _aes(),
        _cores(),
        _governor(),
        _idle(),
        _clock(),
        _congestion(),
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
        _sandbox(),
        _links(),
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
        yield "agent", "missing", f"{path} does not answer: {error}. {agent.how_to_install()}"
        return
    if hello.get("type") != "hello":
        yield "agent", "missing", f"{path} refuses the protocol: {hello.get('text')}. {agent.how_to_install()}"
        return
    if hello["version"] != VERSION:
        other = f"{path} is version {hello['version']}, and ciphercost is {VERSION}"
        yield "agent", "warn", f"{other}: use equal versions. {agent.how_to_install()}"
    yield "agent", "ok", f"{hello['agent']} {hello['version']} ({path}), with drivers for {hello['drivers']}"
    yield "client's TLS library", "ok", str(hello["tls_library"])


def _java() -> Check:
    try:
        program = java.find()
    except MissingServer as error:
        return "java", "warn", f"{error} Only --client jdbc and h2 need Java."
    return "java", "ok", f"Java {java.version(str(program))} ({program}), for --client jdbc and h2"


def _aes() -> Check:
    flags: set[str] = set()
    for line in _text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags = set(value.split())
            break
    instructions = [name for name in ("aes", "pclmulqdq", "vaes", "vpclmulqdq", "pmull", "sha2") if name in flags]
    if "aes" in flags:
        return "AES instructions", "ok", ", ".join(instructions)
    return (
        "AES instructions",
        "warn",
        "none (or hidden): AES costs many times more here than on CPUs that have them",
    )


def _cores() -> Check:
    count = len(os.sched_getaffinity(0))
    if quota := cpu_quota.tightest(os.getpid()):
        what = f"{count}, of which a CPU quota allows {quota.cores:.3g} ({quota.group})"
        return (
            "cores",
            "warn",
            f"{what}: it caps rates and stretches latencies in both arms; measure without it if you can",
        )
    if count < 2:
        return "cores", "warn", "1: server and client share it, so every figure includes the client's cost"
    text = f"{count}"
    if count < 4:
        return "cores", "ok", f"{text}: enough for one client core and one server core"
    return "cores", "ok", text


def _governor() -> Check:
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    if not governor:
        return "frequency governor", "ok", "none visible (virtual machines have none)"
    if governor == "performance":
        return "frequency governor", "ok", governor
    advice = "the CPU frequency follows the load, which adds noise. Before a run: cpupower frequency-set -g performance"
    return "frequency governor", "warn", f"{governor}: {advice}"


def _idle() -> Check:
    cpus = os.sched_getaffinity(0)
    if reason := idle.obstacle(cpus, cpus):
        return "idle cores", "warn", f"they halt under load, so the server's CPU time includes wake-ups: {reason}"
    return "idle cores", "ok", "ciphercost keeps them from halting under load"


def _links() -> Check:
    """Whether the kernel follows another user's symbolic links in a shared directory such as /tmp, for programs that write there blindly."""
    value = _text("/proc/sys/fs/protected_symlinks").strip()
    if value == "0":
        advice = "another user's link in /tmp can lead what a program writes there to any file. As root: sysctl -w fs.protected_symlinks=1"
        return "symbolic links", "warn", f"fs.protected_symlinks is 0: {advice}"
    return "symbolic links", "ok", "protected in shared directories" if value else "not known"


def _congestion() -> Check:
    control = _text("/proc/sys/net/ipv4/tcp_congestion_control").strip()
    if control != "bbr":
        return "TCP congestion control", "ok", control or "not known"
    advice = "it paces connections to this machine itself, so large responses are slow without encryption too. Before a run: sysctl -w "
    return "TCP congestion control", "warn", f"bbr: {advice}net.ipv4.tcp_congestion_control=cubic"


def _clock() -> Check:
    source = _text("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    if source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        return "clock source", "ok", source
    return (
        "clock source",
        "warn",
        f"{source or 'unknown'}: reading the time may need a system call, which slows every operation",
    )


def _cgroups() -> Check:
    parents = cgroup_parents()
    if parents:
        return "control groups", "ok", f"available in {parents[0]}, so ciphercost counts the server's CPU time exactly"
    text = (
        "none can be created, so ciphercost adds up the CPU time of the server's processes and misses short-lived ones"
    )
    return "control groups", "warn", text


def _user() -> Check:
    if os.geteuid() == 0:
        return "user", "ok", "root: servers run as 'nobody'"
    return "user", "ok", "not root: servers run as you, and ciphercost can't mount file systems"


def _disk() -> Check:
    base = scratch_base()
    place = next(path for path in (base, *base.parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / 2**30:.1f} GiB free for temporary data in {base}"
    if not os.access(place, os.W_OK):
        return "disk", "missing", f"{place} is not writable. Set CIPHERCOST_SCRATCH to a directory of your own."
    if free < ENOUGH_DISK:
        return "disk", "warn", f"{text}. Large runs need more; set CIPHERCOST_SCRATCH to a directory on a larger disk."
    return "disk", "ok", text


def _link() -> Check:
    try:
        link.check_rights()
    except CiphercostError as error:
        return "link of --bandwidth, --mtu, --loss", "warn", str(error)
    return "link of --bandwidth, --mtu, --loss", "ok", "available"


def _programs() -> Iterator[Check]:
    """Return one line for each missing program, and one for all that are present."""
    for program in programs.PROGRAMS:
        if not program.found():
            yield program.name, "warn", program.missing()
    if paths := [program.found() for program in programs.PROGRAMS if program.found()]:
        yield "programs", "ok", ", ".join(paths)


def _debian() -> Check:
    if reason := debian.debian_possible():
        return "debian", "warn", f"ciphercost can't fetch servers from Debian's suites: {reason}"
    try:
        debian.mirror()
    except CiphercostError as error:
        return "debian", "warn", str(error)
    client = "mmdebstrap" if debian.mmdebstrap_possible() else "apt-get, without root"
    return "debian", "ok", f"ciphercost can fetch servers from the Debian mirror that apt uses, with {client}"


def _apt() -> Check:
    if reason := debian.apt_possible():
        return "apt", "warn", f"ciphercost can't fetch servers of this system's own release: {reason}"
    return "apt", "ok", f"ciphercost can fetch servers of this system's own release ({debian.release()}), without root"


def _fscrypt() -> Check:
    name = "fscrypt"
    try:
        image.check_rights()
        with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
            place = supervisor.scratch(run_supervisor.run_id, run_supervisor) / "try"
            with image.mounted(run_supervisor, place, 0):
                (place / "directory").mkdir()
                mode = policy.MODES["aes-256-xts"]
                policy.make(place / "directory", mode, policy.add_key(place, os.urandom(policy.KEY_BYTES)))
                if reason := policy.why_no_file(place / "directory"):
                    return name, "warn", f"can't create a file with {mode.words}: {reason}"
    except CiphercostError as error:
        return name, "warn", str(error)
    used = aes.kernel(mode.kernel)
    return name, "warn" if used.warning() else "ok", f"loop device and policy work; {used.warning() or used.words()}"


def _fuse() -> Check:
    try:
        fuse.check_rights()
        path = tools.tool("gocryptfs", fetch=False)
    except MissingServer:
        if reason := debian.debian_possible():
            return "gocryptfs", "warn", f"not found, and ciphercost can't fetch it: {reason}"
        return "gocryptfs", "ok", "not installed; ciphercost fetches it from Debian when a run needs it"
    except CiphercostError as error:
        return "gocryptfs", "warn", str(error)
    return "gocryptfs", "ok", str(path)


def _engines() -> Iterator[Check]:
    for name in engines.names():
        if engines.get(name).foreign:
            continue
        try:
            installations = list(engines.get(name).available())
        except CiphercostError as error:
            yield name, "warn", str(error)
            continue
        if not installations:
            yield name, "warn", f"not found. `ciphercost install {name}` fetches it."
        for installation in installations:
            version = f"{installation.version} " if installation.version else ""
            yield name, "ok", f"{version}from {installation.source}: {installation.location}"


def _sandbox() -> Check:
    version = confinement.abi()
    restrictions = "; ".join(confinement.restricts(version))
    text = f"servers and agents get: {restrictions}"
    if len(confinement.restricts(version)) == len(confinement.restricts(confinement.COMPLETE)):
        return "sandbox", "ok", text
    why = f"this kernel's Landlock is version {version}" if version else "this kernel has no Landlock"
    return "sandbox", "warn", f"{text} ({why}; Linux 6.12 restricts more)"


def _leftovers() -> Check:
    try:
        remains = leftovers.leftovers()
    except CiphercostError as error:
        return "leftovers", "warn", str(error)
    if not remains:
        return "leftovers", "ok", "none"
    return "leftovers", "warn", f"{len(remains)} from killed runs; `ciphercost clean` removes them"


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def doctor() -> str:
    """The checks as text, one entry for each."""
    marks = {"ok": "ok     ", "warn": "WARN   ", "missing": "MISSING"}
    return "\n".join(
        line for name, state, text in checks() for line in wrap(f"{marks[state]} {name}: {text}", "", " " * 8)
    )
