"""fips: OpenSSL's FIPS provider, the configuration that makes a server use it, and what shows that a process does.

The provider is a module, `fips.so`, beside the two libraries of `tls_library`. A configuration file names the providers that are
loaded. In FIPS mode these are `fips` and `base`, which has no algorithms, so nothing but the module computes; otherwise it is
`default`. Nothing else differs between the two files.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Mapping
from pathlib import Path

from ciphercost.host import run_in_place, tls_library
from ciphercost.host.debian import empty_directory, unpack_suite
from ciphercost.host.environment import child_environment
from ciphercost.host.installation import Installation
from ciphercost.host.package_cache import RECEIPT, Receipt, Work, cache, keep
from ciphercost.host.ports import mapped
from ciphercost.host.procfs import tree
from ciphercost.model.errors import MissingServer

LIBRARY = "openssl-3.5"
"""The library of `tls_library.SUITES` that has a provider here: a package of the same suite, so of the same version."""
NAME = f"fips-{LIBRARY}-debian"
PACKAGE = "openssl-provider-fips"
ON, OFF = "on", "off"
MODULE = "fips.so"
INSTALLED = "fipsmodule.cnf"
"""The provider's own settings and its checksum. `openssl fipsinstall` writes it after the module has passed its self-tests."""
CONFIGURATION = """\
config_diagnostics = 1
openssl_conf = ciphercost
[ciphercost]
ssl_conf = ssl
providers = providers
{more}[ssl]
system_default = connections
[connections]
Groups = {group}
"""
DEFAULT = """\
[providers]
default = default_sect
[default_sect]
activate = 1
"""
ALONE = """\
[algorithms]
default_properties = fips=yes
[providers]
fips = fips_sect
base = base_sect
[base_sect]
activate = 1
"""


def provider(*, fetch: bool = True) -> Path:
    """Return the directory with the module and its settings. Fetches it once.

    Raises MissingServer if it can't be fetched or (`fetch` false) is not here.
    """
    if not fetch and not (cache() / tls_library.KEPT / NAME / RECEIPT).exists():
        raise MissingServer(f"the FIPS provider of {LIBRARY} was not fetched")
    return Path(_kept().location)


@functools.cache
def _kept() -> Installation:
    suite, _ = tls_library.SUITES[LIBRARY]

    def make(work: Work) -> Receipt:
        unpack_suite(suite, [PACKAGE, "openssl"], work)
        module = next(work.path.glob(f"usr/lib/*/ossl-modules/{MODULE}"), None)
        if module is None:
            raise MissingServer(f"the package {PACKAGE} of {suite} contains no {MODULE}")
        openssl = [*run_in_place.with_loader(work.path), str(work.path / "usr" / "bin" / "openssl")]
        env = child_environment({"OPENSSL_CONF": "/dev/null", "OPENSSL_MODULES": str(module.parent)})
        failure = f"the FIPS provider of {suite} does not pass its self-tests on this machine"
        settings = work.path / INSTALLED
        work.run([*openssl, "fipsinstall", "-module", str(module), "-out", str(settings)], failure, env)
        configured = work.path / "openssl.cnf"
        configured.write_text(_alone(settings.read_text(), "P-256"))
        listed = work.run([*openssl, "list", "-providers"], failure, env | {"OPENSSL_CONF": str(configured)})
        version = re.search(r"FIPS Provider\s+version: (\S+)", listed)
        contents = {MODULE: module.read_bytes(), INSTALLED: settings.read_bytes()}
        empty_directory(work.path)
        for name, content in contents.items():
            (work.path / name).write_bytes(content)
        return Receipt(tls_library.KEPT, version[1] if version else "", "debian", ".")

    return keep(tls_library.KEPT, NAME, make)


def configuration(mode: str, group: str) -> str:
    """Return OpenSSL's configuration for a server in FIPS mode (`mode` ON) or out of it, with this key exchange group alone."""
    if mode == OFF:
        return CONFIGURATION.format(more="", group=group) + DEFAULT
    return _alone((provider() / INSTALLED).read_text(), group)


def _alone(installed: str, group: str) -> str:
    """The configuration that loads the provider and no other that has algorithms. `installed`: what `fipsinstall` wrote. Pure."""
    return CONFIGURATION.format(more="alg_section = algorithms\n", group=group) + ALONE + installed


def variables(configured: Path) -> dict[str, str]:
    """Environment variables that make a server read this configuration and find the module."""
    return {"OPENSSL_CONF": str(configured), "OPENSSL_MODULES": str(provider())}


def module_proof(pid: int, mode: str) -> tuple[bool, str]:
    """Whether a server, or a process that it started, has ciphercost's FIPS module mapped (`mode` ON), or none has any."""
    seen = sorted({path for process in tree(pid) for path in _modules(process)})
    if mode == OFF:
        return (False, f"a process of the server has {seen[0]} mapped") if seen else (True, "no FIPS module is mapped")
    wanted = (provider() / MODULE).resolve()
    if not seen:
        return False, f"no process of the server has the FIPS module {MODULE} mapped"
    if strange := [path for path in seen if Path(path) != wanted]:
        return False, f"a process of the server has {strange[0]} mapped, which is not {wanted}"
    return True, f"the FIPS module {wanted} is mapped: version {_kept().version or 'unknown'}"


def _modules(pid: int) -> list[str]:
    """The FIPS modules that a process has mapped; empty if it has ended."""
    with contextlib.suppress(OSError):
        return [path for path in mapped(pid) if Path(path).name == MODULE]
    return []


def environment_proof(pid: int, wanted: Mapping[str, str]) -> tuple[bool, str]:
    """Whether a process was started with these words in these variables: {GODEBUG: fips140=on}."""
    try:
        lines = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError as error:
        return False, f"the server's environment can't be read: {error.strerror}"
    given = dict(line.partition("=")[::2] for line in lines)
    for name, word in wanted.items():
        if word not in given.get(name, "").split(","):
            return False, f"the server was started without {word} in {name}"
    words = " and ".join(f"{word} in {name}" for name, word in wanted.items())
    return True, f"the server was started with {words}"
